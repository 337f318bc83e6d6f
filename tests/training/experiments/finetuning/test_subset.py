import json

import pytest

from stepsight.training.experiments.filtering.run import MANIFEST
from stepsight.training.experiments.finetuning.examples import read_subset
from tests.messages import refused

ROW = {"query": "2 + 2?", "response": "4", "source": "MATH"}


def write(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_subset_has_its_name_rows_and_scorer(tmp_path):
    path = write(tmp_path / "val+red.jsonl", ROW, ROW)
    assert read_subset(path).as_json() == {
        "name": "val+red", "rows": 2, "scorer": "", "sha256": read_subset(path).sha256
    }  # fmt: skip
    write(tmp_path / MANIFEST, {"evaluator": {"name": "mini-bidir"}})
    found = read_subset(path)
    assert (found.scorer, found.rows) == ("mini-bidir", (("2 + 2?", "4"),) * 2)


@pytest.mark.parametrize(
    "row",
    [
        {"query": "2 + 2?"},
        {"response": "4"},
        {"query": "2 + 2?", "response": " \n"},
        {"query": "2 + 2?", "response": None},
        {"query": ["2 + 2?"], "response": "4"},
    ],
)
def test_a_row_without_an_answer_is_named(tmp_path, row):
    with refused():
        read_subset(write(tmp_path / "red.jsonl", ROW, row))


def test_an_empty_file_is_refused(tmp_path):
    with refused():
        read_subset(write(tmp_path / "red.jsonl"))
    with refused():
        read_subset(tmp_path / "none.jsonl")
