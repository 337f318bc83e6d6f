"""What a file is, told by its content."""

import json

import pytest

from stepsight.storage.importers import KINDS
from stepsight.storage.importers.catalogue import benchmarks, find_benchmark, find_file, list_parts
from stepsight.storage.importers.recognition import BEGINNING, recognise
from tests.messages import refused
from tests.storage.samples import invalid_row, plain_row


def look(content, name="file.jsonl", sha256=""):
    return recognise(content[:BEGINNING], content.splitlines(keepends=True), name, sha256)


def test_traces_are_known_by_the_fields_of_their_kind():
    row = json.dumps(invalid_row()).encode()
    found = look(row)
    assert (found.holds, found.kind, found.dataset) == ("traces", "mr-math-invalid", "mr-math-invalid")
    # It may be read as a table all the same.
    assert "model_output_step_format" in found.names
    assert look(b"\n [" + row + b"]", "x.json").kind == "mr-math-invalid"
    mine = look(json.dumps(plain_row(1)).encode(), "mine.jsonl")
    assert (mine.holds, mine.kind, mine.dataset, mine.known) == ("traces", "plain", "mine", False)
    published = find_benchmark("mr-math-invalid")
    known = look(row, "mine.jsonl", published.file.sha256)
    assert (known.kind, known.dataset, known.evaluator, known.known) == (
        published.kind,
        published.dataset,
        "",
        True,
    )
    score = published.scores[0]
    known = look(row, "mine.jsonl", score.file.sha256)
    assert (known.holds, known.dataset, known.evaluator) == ("scores", published.dataset, score.evaluator)


@pytest.mark.parametrize(
    ("row", "kind", "dataset"),
    [
        ({"data": {"dataset": "sums", "problem": "?", "steps": []}, "annotations": []}, "Label Studio", "sums"),
        ({"format": "stepsight-events", "campaign": {"dataset": "sums"}}, "StepSight", "sums"),
    ],
)
def test_labels_by_people_are_known_by_the_form_of_their_program(row, kind, dataset):
    found = look(json.dumps(row).encode())
    assert (found.holds, found.kind, found.dataset) == ("labels", kind, dataset)


@pytest.mark.parametrize(
    "row",
    [
        {"annotation_id": 1, "annotator": 1, "problem": "?", "steps": []},
        {"fields": {"step": "1"}, "metadata": {"dataset": "sums"}, "responses": {}},
    ],
)
def test_labels_in_forms_that_are_not_read_name_what_is(row):
    with refused():
        look(json.dumps(row).encode())


def test_the_parts_of_a_benchmark_become_datasets_of_their_own():
    row = b'{"question": {"problem": "?"}, "label": {"steps": []}}'
    assert look(row, "train.jsonl").dataset == "prm800k-train"


@pytest.mark.parametrize(
    "row",
    [
        {"id": 1, "scores": [0.5]},
        {"scores": [[0.1, 0.2, 0.7]]},
        {"problem_id": "p", "candidate_index": 0, "step_scores": [0.5]},
        {"problem_id": "p", "candidate_index": 0, "clean_step_scores": [0.5], "modified_step_scores": []},
        {"id": 1, "gpt4": {"correctness_pred": "wrong", "error_step_pred": "2"}},
    ],
)
def test_scores_are_known_by_their_form(row):
    found = look(json.dumps(row).encode(), "my-model_eval_results.json")
    assert (found.holds, found.dataset, found.evaluator) == ("scores", "", "my-model")


def test_a_file_of_records_names_its_evaluator():
    record = {"format": "stepsight-judgment", "version": 1, "id": "a", "evaluator": "mini-bidir"}
    found = look(json.dumps(record).encode())
    assert (found.holds, found.evaluator) == ("scores", "mini-bidir")


def test_any_other_table_asks_for_its_columns():
    found = look(b"question,response\n1,2\n", "t.csv")
    assert (found.holds, found.kind, found.dataset, found.names) == (
        "traces",
        "columns",
        "t",
        ("question", "response"),
    )
    assert found.columns is not None
    assert (found.columns.problem, found.columns.steps) == ("question", "response")
    assert look(b'{"x": 1}').names == ("x",)


@pytest.mark.parametrize(
    "content",
    [
        b"PK\x03\x04rest",
        b"%PDF-1.7",
        b"\x00\x01\x02",
        b" \n",
        b"plain words\nof a text\n",
        b"{broken\n",
        b"[1, 2]",
        b"id,problem,annotation_id,annotator,label_0\n1,What?,5,1,pos\n",
    ],
)
def test_an_unimportable_file_is_refused_by_its_name(content):
    with refused():
        look(content)


def test_every_benchmark_of_the_catalogue_is_one_of_a_known_file():
    assert len({one.dataset for one in benchmarks()}) == len(benchmarks())
    assert {one.kind for one in benchmarks()} <= set(KINDS)
    first = benchmarks()[0]
    assert (first.dataset, len(first.scores), first.traces) == ("mr-math-invalid", 12, 159)
    assert {len(one.scores) for one in benchmarks()} == {0, 2, 12, 21}
    for one in benchmarks():
        assert one.licence
        assert one.source.startswith("https://")
        assert len({(score.evaluator, score.file.name) for score in one.scores}) == len(one.scores)
        assert all(score.file.digest and score.file.url.startswith("https://") for score in one.scores)
    with refused():
        find_benchmark("odd")
    assert find_file("0" * 64) is None


def test_a_list_of_files_without_those_of_a_part_is_refused():
    with refused():
        list_parts(find_benchmark("strict-prmbench"), f"{'0' * 64}  ./README.md\n")


def test_the_real_files_are_known_by_their_hash(data):
    import hashlib

    known = {}
    for path in sorted((data / "mr-math").rglob("*.json")):
        found = find_file(hashlib.sha256(path.read_bytes()).hexdigest())
        assert found is not None, path
        benchmark, score = found
        known[path.relative_to(data / "mr-math").as_posix()] = (benchmark.dataset, score and score.evaluator)
    assert known["mr-math_redundant_errors.json"] == ("mr-math-redundant", None)
    assert known["scores/invalid/gpt4_eval_results.json"] == ("mr-math-invalid", "GPT-4")
    assert known["scores/redundant/reasoneval_wizardmath-7b-v1.1_eval_results.json"] == (
        "mr-math-redundant",
        "ReasonEval-WizardMath-7B-V1.1",
    )
    assert len(known) == 12
