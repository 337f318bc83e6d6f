"""Guesses at the columns of a table: what its names and values say, and what has to be asked."""

import json
from collections.abc import Mapping
from typing import Any

from stepsight.storage.importers.column_mapping import ColumnMap, column_names
from stepsight.storage.importers.guesses import guess_columns, rival_columns
from stepsight.storage.importers.label_guesses import ColumnReading, Guess, with_label_form
from stepsight.storage.importers.recognition import BEGINNING, recognise
from tests.cases import each

TWO = "2 + 3 = 5.\nSo 5."
LISTED = ["2 + 3 = 5.", "So 5."]
CHAT = [{"role": "user", "content": "?"}, {"role": "assistant", "content": TWO}]
BOXED = "2 + 3 = 6, so \\boxed{6}."


def guess(*rows):
    return guess_columns(column_names(rows), rows)


def look(*rows):
    lines = [f"{json.dumps(row)}\n".encode() for row in rows]
    return recognise(b"".join(lines)[:BEGINNING], lines, "table.jsonl")


def chosen(found):
    """The fields that choose the readings of what is in doubt."""
    return [",".join(one.fields.values()) for doubt in found.doubts for one in doubt.readings]


@each(
    "row, columns",
    [
        ({"uuid": "x", "Question": "?", "solution": {"steps": ["a"]}, "labels": [True]},
         ColumnMap("Question", "solution.steps", "labels", "validity", "uuid")),
        ({"problem": "?", "solution_steps": LISTED, "labels": [1.0, 0.0]},
         ColumnMap("problem", "solution_steps", "labels", "validity")),
        ({"problem": "?", "solution_steps": LISTED, "labels": ["1.0", "NaN"]},
         ColumnMap("problem", "solution_steps", "labels", "validity")),
        # As CSV has them.
        ({"query": "?", "answer": "a", "ratings": "[1, -1]"}, ColumnMap("query", "answer", "ratings", "ratings")),
        ({"question": "?", "answer": TWO, "ground_truth": TWO + "\nYes."}, ColumnMap("question", "answer")),
        # One solution twice.
        ({"question": "?", "response": TWO, "steps": LISTED}, ColumnMap("question", "steps")),
        ({"question": "?", "response": TWO, "solution": TWO}, ColumnMap("question", "solution")),
        ({"instruction": "?", "input": "", "output": TWO}, ColumnMap("instruction", "output")),
        ({"prompt": "?", "completions": ["1. 2 + 3 = 5.", "2. So 5."]}, ColumnMap("prompt", "completions")),
        ({"a": 1, "b": 2}, ColumnMap("", "")),
    ],
)  # fmt: skip
def test_names_and_values_that_leave_one_reading(row, columns):
    found = guess(row)
    assert (found.columns, found.doubts) == (columns, ())


def test_a_generic_name_is_read_with_a_sentence():
    assert guess({"question": "?", "answer": TWO, "labels": [1, 0]}).notes == (
        "'answer' is the only column that can hold the solution.",
        "'labels' is read as 1 for right and 0 for wrong steps.",
    )
    assert guess({"question": "?", "steps": LISTED, "response": "Another."}).notes == (
        "'steps' is read as the steps, and 'response' is kept as metadata.",
    )


@each(
    "row, readings",
    [
        # lm-eval's samples, Qwen's evaluation, Open-R1, best of n, one response alone.
        ({"doc": {"question": "?", "answer": TWO}, "resps": [[BOXED, TWO]]},
         ["doc.answer", "resps.0", "resps.0.0"]),
        ({"question": "?", "solution": TWO, "code": [BOXED]}, ["solution", "code", "code.0"]),
        ({"problem": "?", "solution": TWO, "generations": [BOXED, TWO]},
         ["solution", "generations", "generations.0"]),
        ({"problem": "?", "solution": TWO, "completions": [BOXED], "scores": [[0.5]]},
         ["solution", "completions", "completions.0"]),
        ({"problem": "?", "solution": TWO, "response": "6"}, ["solution", "response"]),
        ({"problem": "?", "solution": TWO, "samples": [{"text": BOXED}]}, ["solution", "samples.0.text"]),
        ({"problem": "?", "solution": TWO, "samples": [{"text": TWO + "\nYes."}]},
         ["solution", "samples.text", "samples.0.text"]),
        ({"problem": "?", "answer": TWO, "anybody_s": [TWO, BOXED]}, ["answer", "anybody_s", "anybody_s.0"]),
        # Without a reference.
        ({"problem": "?", "responses": [BOXED, TWO]}, ["responses", "responses.0"]),
        ({"instruction": "Solve it.", "input": "2 + 3?", "steps": LISTED}, ["instruction", "input"]),
    ],
)  # fmt: skip
def test_what_may_be_judged_is_asked(row, readings):
    found = look(row)
    assert (found.kind, chosen(found)) == ("columns", readings)


def test_several_solutions_under_the_names_of_stepwise_supervision():
    row = {"prompt": "?", "completions": [TWO, BOXED], "labels": [True, False]}
    found = look(row)
    # One solution out of several has no labels of steps.
    assert (found.kind, chosen(found)) == ("columns", ["completions,labels,validity", "completions.0"])
    assert look(row | {"completions": LISTED}).kind == "stepwise"


@each(
    "row, kind",
    [
        ({"question": "?", "solution": TWO, "label": True}, "columns"),
        ({"question": "?", "label": 1, "output": TWO}, "columns"),
        ({"input": "?", "output": TWO, "label": "+"}, "columns"),
        ({"input": "?", "label": 0, "output": TWO}, "columns"),
        ({"question": {"problem": "?"}, "label": {"steps": []}}, "prm800k"),
        ({"input": "? Step 1: a ки", "label": "? Step 1: a +"}, "math-shepherd"),
        ({"messages": CHAT, "answer": "1"}, "chat"),
        ({"messages": CHAT, "problem": "?", "solution": TWO, "labels": [1, 0]}, "columns"),
    ],
)
def test_generic_names_are_no_benchmark_and_labelled_columns_no_chat(row, kind):
    assert look(row).kind == kind


@each(
    "row, holds",
    [
        ({"id": 1, "scores": [0.5, 0.9]}, "scores"),
        ({"problem": "?", "steps": LISTED, "scores": [0.5, 0.9]}, "scores"),
        ({"problem": "?", "solution": TWO, "scores": 0.5}, "traces"),
        ({"problem": "?", "solution": TWO, "scores": [[0.5], [0.9, 0.1], [0.3]]}, "traces"),
        ({"problem": "?", "responses": [TWO, BOXED], "scores": [0.5, 0.9]}, "traces"),
        ({"problem": "?", "steps": LISTED, "step_labels": [1, 0]}, "traces"),
    ],
)
def test_scores_beside_solutions_are_one_for_each_step_or_no_scores(row, holds):
    assert look(row).holds == holds


@each("name, value", [("label", 1), ("label", -1), ("rating", "3"), ("labels", 0.0), ("meta.label", 1)])
def test_one_number_for_a_whole_solution_may_be_a_mark(name, value):
    first, _, within = name.partition(".")
    found = guess({"problem": "?", "steps": LISTED, first: {within: value} if within else value})
    assert (found.columns.labels, chosen(found)) == ("", [f"{name},error-from-0", f"{name},error-from-1", ""])


def test_the_readings_are_shown_on_the_first_row():
    (doubt,) = guess({"problem": "?", "steps": LISTED, "label": 1}).doubts
    assert doubt.message == (
        "'label' has one number for a whole solution: its first wrong step, or a mark such as right or wrong."
        " In row 1 it is 1:"
    )
    assert [one.shows for one in doubt.readings] == [
        "counted from 0, step 2 is the first wrong one",
        "counted from 1, step 1 is the first wrong one",
        "a mark, which says nothing of the steps and is kept as metadata",
    ]
    (doubt,) = guess({"problem": "?", "solution": TWO, "generations": [BOXED, TWO]}).doubts
    assert (
        doubt.message
        == "'solution' and 'generations' may each hold the solution that is to be judged. Row 1 is then:"
    )
    assert doubt.readings == (
        ColumnReading({"steps": "solution"}, "2 steps, '2 + 3 = 5.' …"),
        ColumnReading({"steps": "generations"}, "one solution: 2 steps, '2 + 3 = 6, so \\\\boxed{6}.' …"),
        ColumnReading(
            {"steps": "generations.0"}, "the first of 2 solutions: 1 step, '2 + 3 = 6, so \\\\boxed{6}.'"
        ),
    )


@each("mark", [True, "correct", 0.25, "A", None, ["algebra", "sums"], {"right": 1}])
def test_what_can_be_no_label_of_a_step_stays_metadata(mark):
    found = guess({"problem": "?", "steps": LISTED, "label": mark})
    assert (found.columns.labels, found.doubts) == ("", ())
    is_said = "'label' holds no label for each step and is kept as metadata." in found.notes
    # The parts of an object have names of their own.
    assert is_said == (mark is not None)


@each("name", ["first_error", "firstErrorStep", "error_index", "First wrong step", "gold_mistake_position"])
def test_a_name_that_says_so_is_a_first_error(name):
    def of(*numbers: object) -> Guess:
        return guess(*({"problem": "?", "steps": LISTED, "label": 1, name: one} for one in numbers))

    # -1 is no step counted from 1, and 2 none counted from 0.
    assert (of(1, -1.0).columns.labels, of(1, -1.0).columns.labels_as) == (name, "error-from-0")
    assert of("0", "2").columns.labels_as == "error-from-1"
    assert chosen(of(1.0, None)) == [f"{name},error-from-0", f"{name},error-from-1"]


def test_0_and_1_under_the_name_of_ratings_are_asked():
    row = {"problem": "?", "steps": LISTED, "ratings": [1, 0]}
    assert chosen(guess(row)) == ["ratings,validity", "ratings,ratings"]
    assert guess(row, row | {"ratings": [1, -1]}).columns.labels_as == "ratings"


def test_two_columns_of_labels_are_asked():
    row = {"problem": "?", "steps": LISTED, "labels": [1, 0], "ratings": [1, -1]}
    assert chosen(guess(row)) == ["labels,validity", "ratings,ratings", ""]


@each(
    "values, form, is_open",
    [
        ([0, 1, 2], "error-from-0", True),
        ([-1, 1], "error-from-0", False),
        ([0, "2"], "error-from-1", False),
        ([[1, 0]], "validity", False),
        ([["pos", "neu"]], "ratings", False),
        ([[0.5, 1]], "shares", False),
        ([None], "ratings", False),
    ],
)
def test_labels_chosen_by_hand_are_read_by_their_values(values, form, is_open):
    rows = [
        {"Aufgabe": "?", "Schritte": LISTED if 2 not in values else [*LISTED, "Ja."], "Fehler": one}
        for one in values
    ]
    found, notes = with_label_form(ColumnMap("Aufgabe", "Schritte", "Fehler", ""), rows)
    assert found.labels_as == form
    assert any("open" in note for note in notes) == is_open


def test_solutions_beside_those_of_a_column():
    row = {"problem": "?", "solution": TWO, "answer": "5", "ground_truth": TWO, "remark": TWO, "tags": ["a", "b"]}
    assert rival_columns([row], "solution") == []
    assert rival_columns([row | {"completions": [BOXED]}], "solution") == ["completions"]
    assert rival_columns([row | {"theirs": [TWO]}], "solution") == ["theirs"]
    assert rival_columns([row | {"output": TWO}], "solution") == []


@each("labels", [[1.0, 0.0], [True, False], ["+", "-"], ["correct", "wrong"]])
def test_right_and_wrong_are_never_guessed_to_be_ratings(labels):
    rows: list[Mapping[str, Any]] = [{"question": "?", "steps": LISTED, "labels": labels}]
    assert guess_columns(list(rows[0]), rows).columns.labels_as == "validity"
