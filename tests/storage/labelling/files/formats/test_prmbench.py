import pytest

from stepsight.core.label import Label
from stepsight.storage.importers.benchmarks import prmbench as importer
from stepsight.storage.labelling.files.formats.label_format import InexpressibleError
from stepsight.storage.labelling.files.formats.prmbench import format_row
from tests.messages import refused
from tests.storage.labelling.files.formats.made import annotation, labelled

WRONG = ("pos", "neg", "neg")


def test_error_steps_are_of_the_class_named_most_often() -> None:
    annotations = [
        annotation(WRONG, errors={1: "deception", 2: "confidence"}),
        annotation(WRONG, "ben", errors={2: "confidence"}),
        # What was said of a step as one that is redundant says nothing of an error.
        annotation(WRONG, "cyd", errors={1: "circular", 2: "circular"}),
    ]
    row = format_row(labelled(*WRONG, annotations=annotations))
    assert (row["error_steps"], row["classification"], row["idx"]) == ([2, 3], "confidence", "7")
    trace = importer.parse(row, "row 1")
    assert [step.valid for step in trace.steps] == [True, False, False]


@pytest.mark.parametrize(
    ("labels", "errors", "kind"),
    [(("pos", "neu", "pos"), [2], "redundency"), (("pos", "pos", "pos"), [], "multi_solutions")],
)
def test_solutions_without_an_error(labels: tuple, errors: list, kind: str) -> None:
    row = format_row(labelled(*labels))
    assert (row["error_steps"], row["classification"]) == (errors, kind)
    trace = importer.parse(row, "row 1")
    assert [step.label for step in trace.steps] == [Label.NEU if n in errors else None for n in (1, 2, 3)]


def test_labels_that_prmbench_cannot_express_are_left_out() -> None:
    with refused(InexpressibleError):
        format_row(labelled("pos", "neg", None))
    with refused(InexpressibleError):
        format_row(labelled(*WRONG, annotations=[annotation(WRONG, errors={1: "redundency"})]))


def test_kinds_of_error_of_a_campaign_s_own_are_no_classes():
    for errors in ({1: "calculation"}, {1: "other", 2: "missing case"}):
        with refused(InexpressibleError):
            format_row(labelled(*WRONG, annotations=[annotation(WRONG, errors=errors)]))
    mixed = [annotation(WRONG, errors={1: "calculation", 2: "deception"})]
    assert format_row(labelled(*WRONG, annotations=mixed))["classification"] == "deception"
