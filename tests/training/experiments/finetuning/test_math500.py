import json
import shutil
from dataclasses import replace

import pytest
import torch
from transformers import AutoModelForCausalLM

from stepsight.core.files.whole_files import write_json
from stepsight.training.experiments.finetuning import math500
from stepsight.training.experiments.finetuning.math500 import FILE, Exam, Result, measure, read_result, read_results
from stepsight.training.experiments.finetuning.recipe import CARD, PROMPT
from stepsight.training.experiments.finetuning.sft import load_text_tokenizer
from tests.messages import refused


@pytest.fixture
def exam(tmp_path):
    path = tmp_path / "problems.jsonl"
    rows = [{"problem": f"{'9' * n} + {n}?", "answer": str(2 * n), "level": 1} for n in range(5)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Exam.read(str(path), tokens=8, batch=2)


@pytest.fixture
def model(start, tmp_path):
    """A folder as a fine-tuning run leaves it."""
    folder = shutil.copytree(start, tmp_path / "red-42")
    card = {"prompt": PROMPT, "seed": 42, "data": {"name": "red", "rows": 24, "scorer": "mini-bidir"}}
    (folder / CARD).write_text(json.dumps(card))
    return folder


def greedy(model, end, ids, most):
    """The likeliest token after each, one prompt at a time and without padding or a cache."""
    written = []
    while len(written) < most and end not in written:
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([[*ids, *written]])).logits
        written.append(int(logits[0, -1].argmax()))
    return written


def test_a_model_answers_greedily_and_is_graded(model, exam, tmp_path, grader):
    output = tmp_path / "out"
    result = measure(exam, model, output, grader)
    assert (result.model, result.subset, result.scorer, result.rows, result.seed) == (
        "red-42", "red", "mini-bidir", 24, 42
    )  # fmt: skip
    tokenizer, network = load_text_tokenizer(model), AutoModelForCausalLM.from_pretrained(model)
    rows = [json.loads(line) for line in (output / "answers.jsonl").read_text().splitlines()]
    for (text, _), row in zip(exam.problems, rows, strict=True):
        ids = tokenizer(PROMPT.replace("{query}", text))["input_ids"]
        assert row["text"] == tokenizer.decode(greedy(network, tokenizer.eos_token_id, ids, 8))
    assert [row["tokens"] for row in rows] == list(result.tokens) == [8] * 5
    assert (result.cut, result.given_up) == (5, 0)
    written = json.loads((output / FILE).read_text())
    assert (written["pass@1"], written["mean_tokens"]) == (sum(result.correct) / 5, 8)
    assert written["problems"]["constant"] == {"answer": "0", "right": 1}
    # What is done is read.
    before = {path: path.stat().st_mtime_ns for path in output.iterdir()}
    assert measure(exam, model, output, grader) == result == read_result(output / FILE)
    assert {path: path.stat().st_mtime_ns for path in output.iterdir()} == before
    for other in (replace(exam, tokens=9), replace(exam, prompt="{query} = ")):
        with refused():
            measure(other, model, output, grader)
    with refused():
        measure(replace(exam, prompt="Q"), model, tmp_path / "other", grader)


def test_an_answer_ends_at_its_end_and_does_not_count_it(model, exam, tmp_path, grader, monkeypatch):
    tokenizer, network = load_text_tokenizer(model), AutoModelForCausalLM.from_pretrained(model)
    prompt = tokenizer(PROMPT.replace("{query}", exam.problems[0][0]))["input_ids"]
    first, second = greedy(network, None, prompt, 2)
    # The second token is the one that ends a text.
    monkeypatch.setattr(type(tokenizer), "eos_token_id", second, raising=False)
    measure(replace(exam, problems=exam.problems[:1]), model, tmp_path / "out", grader)
    (row,) = [json.loads(line) for line in (tmp_path / "out" / "answers.jsonl").read_text().splitlines()]
    ended = 0 if first == second else 1
    assert row == {"problem": 1, "text": tokenizer.decode([first][:ended]), "tokens": ended, "ended": True}


def test_an_interrupted_measurement_asks_for_the_missing_answers_only(model, exam, tmp_path, grader, monkeypatch):
    whole = measure(exam, model, tmp_path / "whole", grader)

    def stop(counted, done, total):
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(exam, model, tmp_path / "out", grader, stop)
    seen = []
    assert measure(exam, model, tmp_path / "out", grader, lambda counted, done, total: seen.append(done)) == whole
    assert seen == [5]
    answers = [(tmp_path / name / "answers.jsonl").read_bytes() for name in ("whole", "out")]
    assert answers[0] == answers[1]


def test_the_answers_of_a_file_are_graded(model, exam, tmp_path, grader):
    output = tmp_path / "out"
    measure(exam, model, output, grader)
    (output / FILE).unlink()
    # Problems 1 and 4 have their right answers, the others that of problem 2.
    texts = ["0", "2", "2", "6", "2"]
    rows = [{"problem": n, "text": text, "tokens": n, "ended": n > 1} for n, text in enumerate(texts, 1)]
    (output / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = measure(exam, model, output, grader)
    assert result.correct == (True, True, False, True, False)
    assert (result.accuracy, result.length, result.cut) == (0.6, 3.0, 1)


def test_a_problem_that_is_too_long_is_named(model, exam, tmp_path, grader):
    with refused():
        measure(replace(exam, problems=[("2?", "4"), ("9 " * 200, "4")]), model, tmp_path / "out", grader)


def test_problems_are_in_the_folder_of_data(tmp_path, monkeypatch):
    path = tmp_path / "math500" / "test.jsonl"
    path.parent.mkdir()
    path.write_text('{"problem": "2 + 2?", "answer": "4"}\n')
    monkeypatch.setenv("STEPSIGHT_DATA", str(tmp_path))
    exam = Exam.read()
    assert (exam.about["name"], exam.problems) == ("math500/test.jsonl", [("2 + 2?", "4")])
    monkeypatch.delenv("STEPSIGHT_DATA")
    with refused():
        Exam.read()


def test_results_are_read_however_deep(tmp_path):
    def write(folder, **changes):
        values = {"model": "m", "correct": [1, 0], "tokens": [4, 5], "problems": {"count": 2}} | changes
        write_json(tmp_path / folder / FILE, values)

    write("a/deep", seed=42)
    write("b", seed=43)
    results = read_results([tmp_path])
    assert [(result.seed, result.correct, result.length) for result in results] == [
        (42, (True, False), 4.5), (43, (True, False), 4.5)
    ]  # fmt: skip
    assert len(read_results([tmp_path / "a", tmp_path / "b" / FILE])) == 2
    for folders in ([tmp_path, tmp_path / "b"], [tmp_path / "a", tmp_path / "none"]):
        with refused():
            read_results(folders)
    write("c", seed=44, problems={"count": 3})
    with refused():
        read_results([tmp_path])
    for broken in ({"format": "other"}, {"correct": []}, {"tokens": [-1]}, {"model": 1}):
        write("b", **broken)
        with refused():
            read_result(tmp_path / "b" / FILE)
    assert (
        Result(model="m", correct=(True, False, False, False), tokens=(1,)).accuracy
        == math500.Result(model="n", correct=(True, False, False, False), tokens=(2,)).accuracy
        == 0.25
    )
