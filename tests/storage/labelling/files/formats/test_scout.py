from dataclasses import replace

from stepsight.storage.labelling.files.formats.label_format import InexpressibleError
from stepsight.storage.labelling.files.formats.scout import format_row
from tests.cases import each
from tests.messages import refused
from tests.storage.labelling.files.formats.made import labelled


@each("labels, valid, error", [(("pos", "neu", "pos"), True, 0), (("pos", "neg", None), False, 2)])
def test_the_target_is_the_verdict_and_the_first_error(labels: tuple, valid: bool, error: int) -> None:
    assert format_row(labelled(*labels)) == {"id": "7", "target": {"valid": valid, "first_error": error}}


@each("id", ["7", "a,b", "[1]"])
def test_a_trace_without_a_verdict_or_with_an_id_that_is_read_as_several_is_left_out(id: str) -> None:
    one = labelled(*([None, "neg", "pos"] if id == "7" else ["pos", "pos", "pos"]))
    with refused(InexpressibleError):
        format_row(replace(one, trace=replace(one.trace, id=id)))
