import json

import pytest

from stepsight.core.errors import UserError
from stepsight.training.experiments.filtering.output import MANIFEST
from stepsight.training.experiments.finetuning.examples import read_subset

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
    ("row", "message"),
    [
        ({"query": "2 + 2?"}, "line 2: the field 'response' is missing"),
        ({"response": "4"}, "line 2: the field 'query' is missing"),
        ({"query": "2 + 2?", "response": " \n"}, "line 2: .*response.*"),
        ({"query": "2 + 2?", "response": None}, "line 2: .*response.*"),
        ({"query": ["2 + 2?"], "response": "4"}, "line 2: .*query.*"),
    ],
)
def test_a_row_without_an_answer_is_named(tmp_path, row, message):
    with pytest.raises(UserError, match=message):
        read_subset(write(tmp_path / "red.jsonl", ROW, row))


def test_an_empty_file_is_refused(tmp_path):
    with pytest.raises(UserError, match="there is no row to learn from"):
        read_subset(write(tmp_path / "red.jsonl"))
    with pytest.raises(UserError, match="cannot be read"):
        read_subset(tmp_path / "none.jsonl")
