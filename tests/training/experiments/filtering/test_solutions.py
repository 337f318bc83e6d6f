import json
from datetime import date

import pytest

from stepsight.training.experiments.filtering.pool import find_fields, parse_solution
from tests.cases import each
from tests.messages import refused

MMIQC = {"instruction": "Compute 2 + 3.", "output": "We add.\nThe answer is: 5", "source": "MATH"}
FIELDS = ("instruction", "output")


def test_a_row_of_mmiqc():
    found = parse_solution(MMIQC, FIELDS, "pool line 1")
    assert found.trace.problem == "Compute 2 + 3."
    assert found.trace.substeps == ("We add.", "The answer is: 5")
    assert (found.query, found.response, found.rest) == (MMIQC["instruction"], MMIQC["output"], {"source": "MATH"})


def test_it_is_written_with_query_and_response_and_every_other_field():
    row = MMIQC | {"is_correct": True, "nested": {"a": [1, None]}, "day": date(2024, 1, 17), "sign": "é"}
    line = parse_solution(row, FIELDS, "").line
    assert "é".encode() in line
    assert json.loads(line) == {
        "query": MMIQC["instruction"],
        "response": MMIQC["output"],
        "source": "MATH",
        "is_correct": True,
        "nested": {"a": [1, None]},
        "day": "2024-01-17",
        "sign": "é",
    }


def test_half_of_a_surrogate_pair_in_another_field_is_kept():
    line = parse_solution(MMIQC | {"odd": "\ud83d"}, FIELDS, "").line
    assert json.loads(line)["odd"] == "\ud83d"


def test_steps_that_are_given_are_not_split():
    row = {"problem": "Q", "steps": ["One\nstep.", ["a", "b"]], "id": 7}
    found = parse_solution(row, ("problem", "steps"), "")
    assert [step.substeps for step in found.trace.steps] == [("One\nstep.",), ("a", "b")]
    assert json.loads(found.line) == {"query": "Q", "response": "One\nstep.\na\nb", "id": 7}


@pytest.mark.parametrize(
    ("row", "fields"),
    [
        ({"query": "q", "response": "r"}, ("query", "response")),
        (MMIQC, FIELDS),
        ({"problem": "q", "solution": "r", "answer": "5"}, ("problem", "solution")),
        ({"problem": "q", "steps": ["r"], "solution": "r"}, ("problem", "steps")),
        ({"question": "q", "answer": "r"}, ("question", "answer")),
        # The two that are written win.
        (MMIQC | {"query": "q", "response": "r"}, ("query", "response")),
    ],
)
def test_fields_are_known_by_name(row, fields):
    assert find_fields([{"else": 1}, {fields[0]: "alone"}, row]) == fields


def test_unknown_fields_are_none():
    assert find_fields([{"prompt": "q", "completion": "r"}]) is None


@each(
    "change",
    [
        {"output": ""},
        {"output": " \n\t"},
        {"output": None},
        {"output": "[]"},
        {"output": ["a", 5]},
        {"output": []},
        {"instruction": "  "},
        {"instruction": 5},
        {"output": "a\x00b"},
        {"response": "another"},
    ],
)
def test_a_row_that_is_not_a_solution_is_refused(change):
    with refused():
        parse_solution(MMIQC | change, FIELDS, "pool line 3")


def test_a_row_without_an_answer_is_refused():
    with refused():
        parse_solution({"instruction": "Q"}, FIELDS, "pool line 3")


def test_the_digest_is_of_what_is_judged():
    digests = [
        parse_solution(row, FIELDS, "").digest
        for row in (MMIQC, MMIQC | {"source": "other"}, MMIQC | {"output": "We add.\nThe answer is: 6"})
    ]
    assert digests[0] == digests[1] != digests[2]
    assert len(digests[0]) == 16
