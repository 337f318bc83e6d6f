import json

import pytest

from stepsight.core.errors import UserError
from stepsight.core.label import Label
from stepsight.storage.importers import parse_row, read_traces
from stepsight.storage.importers.plain import KIND, parse, read_plain
from tests.messages import refused


def test_a_row_of_the_plain_format() -> None:
    line = b'{"id": 3, "problem": "P", "steps": ["a", ["b", "c"]], "labels": ["pos", null], "generator": "g"}\n'
    ((where, trace),) = read_traces(KIND, [b"\n", line], "f.jsonl")
    assert where == "f.jsonl line 2"
    assert (trace.id, trace.problem, trace.substeps) == ("3", "P", ("a", "b", "c"))
    assert trace.labels == (Label.POS, None)
    assert trace.meta == {"generator": "g"}


def test_labels_in_any_words_and_gaps() -> None:
    row = {"id": 3, "problem": "P", "steps": ["a", "b", "c", "d"], "labels": ["+", "Wrong", "N/A", " POS"]}
    assert [step.gold for step in parse(row, "f").steps] == ["valid", "neg", None, "pos"]
    more = row | {"labels": ["pos", None, float("nan"), ""], "valid": [None, 0, "true", float("nan")]}
    assert [step.gold for step in parse(more, "f").steps] == ["pos", None, "valid", None]
    assert parse(more, "f").steps[1].valid is False


def test_a_number_is_no_label() -> None:
    with refused():
        parse({"id": 3, "problem": "P", "steps": ["a"], "labels": [1]}, "f")


@pytest.mark.parametrize("fields", [{"problem": "nan"}, {"steps": ["a", "\u200b\ufeff"]}])
def test_a_missing_problem_and_a_step_that_shows_nothing_are_refused(fields: dict[str, object]) -> None:
    row = {"id": 3, "problem": "P", "steps": ["a"]} | fields
    with pytest.raises(UserError, match=r"nothing|missing"):
        list(read_plain([json.dumps(row).encode()], "f"))
    with refused():
        parse_row(KIND, row, "f")
