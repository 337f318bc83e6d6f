from stepsight.storage.importers import KINDS
from stepsight.storage.labelling.files.formats.label_format import InexpressibleError
from stepsight.storage.labelling.files.formats.stepwise import format_row
from tests.messages import refused
from tests.storage.labelling.files.formats.made import labelled


def test_valid_is_true() -> None:
    row = format_row(labelled("pos", "neu", "neg"))
    assert row == {
        "prompt": "What?",
        "completions": ["First.", "Second.\nStill.", "Third."],
        "labels": [True, True, False],
    }
    assert [step.valid for step in KINDS["stepwise"].read(row).steps] == [True, True, False]


def test_unlabelled_is_null() -> None:
    assert format_row(labelled("neg", None, None))["labels"] == [False, None, None]
    with refused(InexpressibleError):
        format_row(labelled(None, None, None))
