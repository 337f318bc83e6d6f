from typing import Any

import pytest

from stepsight.core.label import Label
from stepsight.storage.importers.benchmarks.mr_math_redundant import parse
from tests.cases import each
from tests.messages import refused
from tests.storage.samples import redundant_row


def test_ratings_become_labels() -> None:
    trace = parse(redundant_row(), "row 1")
    assert (trace.id, trace.problem) == ("7", "What is 1 + 1?")
    assert trace.labels == (Label.POS, Label.NEU, Label.NEG)
    assert [step.valid for step in trace.steps] == [True, True, False]
    assert trace.first_error == 2
    assert trace.substeps == ("A sum.", "Sums are nice.", "Yes.", "So 3.")
    assert trace.meta == {"ground_truth_answer": "2", "generator": "GPT-4 (PRM800K)"}


def test_ratings_may_be_words_texts_or_missing() -> None:
    for ratings in ([1, "0", " Neg"], "[1.0, 0.0, -1.0]", ["pos", "neu", "wrong"]):
        assert parse(redundant_row(rating=ratings), "").labels == (Label.POS, Label.NEU, Label.NEG)
    assert parse(redundant_row(rating=[None, "", float("nan")]), "").labels == (None, None, None)


@each(
    "change",
    [
        {"rating": [1, 0]},
        {"rating": [1, 0, 2]},
        {"rating": [1.5, 0, 0]},
        {"rating": [[1], 0, 0]},
        {"rating": 1},
        {"model_output_step_format": [], "rating": []},
    ],
)
def test_bad_rows_are_refused(change: dict[str, Any]) -> None:
    with refused():
        parse(redundant_row(**change), "row 1")


@pytest.mark.parametrize("key", ["id", "question", "model_output_step_format", "rating"])
def test_a_missing_field(key: str) -> None:
    row = redundant_row()
    del row[key]
    with refused():
        parse(row, "row 1")
