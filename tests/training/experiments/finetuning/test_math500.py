import json
import shutil
from dataclasses import replace

import pytest

from stepsight.training.evaluate.grading import Grader
from stepsight.training.experiments.finetuning.math500 import Math500Settings, measure, output_names, read_problems
from stepsight.training.experiments.finetuning.results import FILE, read_result
from stepsight.training.experiments.finetuning.run import CARD
from tests.messages import refused
from tests.training.experiments.finetuning.small import RECIPE

SETTINGS = Math500Settings("transformers", tokens=8, batch=2)


@pytest.fixture
def problems(tmp_path):
    path = tmp_path / "problems.jsonl"
    path.write_text("".join(json.dumps({"problem": f"{n} + {n}?", "answer": str(2 * n)}) + "\n" for n in range(5)))
    return read_problems(path)


@pytest.fixture
def model(start, tmp_path):
    """A folder as a fine-tuning run leaves it."""
    folder = shutil.copytree(start, tmp_path / "red-42")
    card = {"prompt": RECIPE.prompt, "seed": 42, "data": {"name": "red", "rows": 24, "scorer": "mini-bidir"}}
    (folder / CARD).write_text(json.dumps(card))
    return folder


@pytest.fixture(scope="module")
def grader():
    with Grader() as opened:
        yield opened


def test_a_model_is_asked_graded_and_told(model, problems, tmp_path, grader):
    output = tmp_path / "out"
    result = measure(str(model), problems, output, SETTINGS, grader)
    assert (result.model, result.subset, result.scorer, result.rows, result.seed) == (
        "red-42", "red", "mini-bidir", 24, 42
    )  # fmt: skip
    assert len(result.correct) == len(result.tokens) == 5
    rows = [json.loads(line) for line in (output / "answers.jsonl").read_text().splitlines()]
    assert [row["tokens"] for row in rows] == list(result.tokens)
    assert result.cut == sum(not row["ended"] for row in rows)
    assert read_result(output / FILE) == result
    written = json.loads((output / FILE).read_text())
    assert written["pass@1"] == sum(result.correct) / 5
    assert written["mean_tokens"] == sum(result.tokens) / 5
    # What is done is read.
    before = {path: path.stat().st_mtime_ns for path in output.iterdir()}
    assert measure(str(model), problems, output, SETTINGS, grader) == result
    assert {path: path.stat().st_mtime_ns for path in output.iterdir()} == before


def test_answers_that_are_there_are_graded(model, problems, tmp_path, grader):
    output = tmp_path / "out"
    measure(str(model), problems, output, SETTINGS, grader)
    (output / FILE).unlink()
    # Problems 1 and 4 get their right answers, the others that of problem 2.
    rows = [
        {"problem": n + 1, "text": text, "tokens": n, "ended": True}
        for n, text in enumerate(["0", "2", "2", "6", "2"])
    ]
    (output / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = measure(str(model), problems, output, SETTINGS, grader)
    assert result.correct == (True, True, False, True, False)
    assert (result.accuracy, result.length, result.cut) == (0.6, 2.0, 0)


@pytest.mark.parametrize("settings", [replace(SETTINGS, tokens=9), replace(SETTINGS, prompt="{query} = ")])
def test_a_folder_with_another_run_is_refused(model, problems, tmp_path, grader, settings):
    output = tmp_path / "out"
    measure(str(model), problems, output, SETTINGS, grader)
    with refused():
        measure(str(model), problems, output, settings, grader)


def test_a_folder_that_is_not_a_language_model_is_refused(tmp_path, problems, grader):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text('{"architectures": ["BertForMaskedLM"]}')
    with refused():
        measure(str(tmp_path / "model"), problems, tmp_path / "out", SETTINGS, grader)
    assert not (tmp_path / "out").exists()


def test_each_model_has_a_folder(model, tmp_path):
    other = shutil.copytree(model, tmp_path / "below" / "red-42")
    assert output_names([str(model)]) == ["red-42"]
    with refused():
        output_names([str(model), str(other)])


@pytest.mark.parametrize("changes", [{"tokens": 0}, {"prompt": "Q"}])
def test_meaningless_options_are_refused(changes):
    with refused():
        replace(SETTINGS, **changes)
