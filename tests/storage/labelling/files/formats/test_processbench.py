import pytest

from stepsight.storage.importers.benchmarks import processbench as importer
from stepsight.storage.labelling.files.formats.label_format import InexpressibleError
from stepsight.storage.labelling.files.formats.processbench import format_row
from tests.messages import refused
from tests.storage.labelling.files.formats.made import labelled


@pytest.mark.parametrize(
    ("labels", "label"),
    [(("pos", "neu", "pos"), -1), (("neg", None, None), 0), (("pos", "neg", "neg"), 1), (("neu", "pos", "neg"), 2)],
)
def test_the_first_error(labels: tuple, label: int) -> None:
    row = format_row(labelled(*labels))
    assert (row["id"], row["label"]) == ("7", label)
    assert importer.parse(row, "row 1").first_error == (None if label == -1 else label)


@pytest.mark.parametrize("labels", [(None, "neg", None), ("pos", "pos", None), (None, None, None)])
def test_one_that_cannot_be_told(labels: tuple) -> None:
    with refused(InexpressibleError):
        format_row(labelled(*labels))


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({}, None),
        ({"final_answer_correct": False}, False),
        ({"model_output_answer_correctness": "correct"}, True),
        ({"model_output_answer_correctness": "wrong"}, False),
    ],
)
def test_the_final_answer_is_taken_from_the_source(meta: dict, expected: bool | None) -> None:
    assert format_row(labelled("pos", "pos", "pos", **meta))["final_answer_correct"] is expected
    assert format_row(labelled("pos", "pos", "pos", generator="hand"))["generator"] == "hand"
