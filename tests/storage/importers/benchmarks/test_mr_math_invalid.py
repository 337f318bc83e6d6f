from typing import Any

import pytest

from stepsight.core.label import Label
from stepsight.storage.importers.benchmarks.mr_math_invalid import parse
from tests.cases import each
from tests.messages import refused
from tests.storage.samples import invalid_row


def test_the_first_error_is_one_based_and_splits_the_steps() -> None:
    trace = parse(invalid_row(), "row 1")
    assert (trace.id, trace.problem) == ("7", "What is 1 + 1?")
    assert trace.substeps == ("A sum.", "So 3.", "Yes.", "Done.")
    assert trace.owners.tolist() == [0, 1, 1, 2]
    # Step 2 of the file is index 1: valid before it, wrong at it, nothing said after it.
    assert trace.first_error == 1
    assert [step.valid for step in trace.steps] == [True, False, None]
    assert trace.labels == (None, Label.NEG, None)


def test_a_correct_solution_is_valid_throughout_without_labels() -> None:
    row = invalid_row(model_output_solution_correctness="correct", model_output_solution_first_error_step="N/A")
    trace = parse(row, "row 1")
    assert [step.valid for step in trace.steps] == [True, True, True]
    assert trace.labels == (None, None, None)
    assert trace.first_error is None
    assert trace.has_gold


def test_everything_else_is_kept() -> None:
    assert parse(invalid_row(note=None), "row 1").meta == {
        "ground_truth_answer": "2",
        "generator": "Abel13B-001",
        "model_output": "1. A sum. 2. So 3.",
        "model_output_answer_correctness": "correct",
        "model_output_solution_correctness": "wrong",
        "note": None,
    }


@each(
    "change",
    [
        {"model_output_solution_first_error_step": 0},
        {"model_output_solution_first_error_step": 4},
        {"model_output_solution_first_error_step": True},
        {"model_output_solution_first_error_step": 2.5},
        {"model_output_solution_first_error_step": "N/A"},
        {"model_output_solution_correctness": "correct"},
        {"model_output_solution_correctness": "Wrong"},
        {"model_output_solution_correctness": None},
        {"question": ""},
        {"question": 1},
        {"id": None},
        {"model_output_step_format": []},
        {"model_output_step_format": [["a"], []]},
        {"model_output_step_format": ["a", "b"]},
        {"model_output_step_format": None},
    ],
)
def test_bad_rows_are_refused(change: dict[str, Any]) -> None:
    with refused():
        parse(invalid_row(**change), "row 1")


@pytest.mark.parametrize("key", sorted(set(invalid_row()) - set(parse(invalid_row(), "").meta)))
def test_a_missing_field(key: str) -> None:
    row = invalid_row()
    del row[key]
    with refused():
        parse(row, "row 1")
