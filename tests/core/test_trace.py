from stepsight.core.trace import VALID, Label, Step, Trace
from tests.cases import each
from tests.messages import refused


def test_substeps_are_numbered_through_with_their_owners():
    trace = Trace.of("q", ["a", ["b", "c"]])
    assert trace.substeps == ("a", "b", "c")
    assert trace.owners.tolist() == [0, 1, 1]
    assert trace.steps[1].text == "b\nc"


def test_a_label_determines_validity_and_none_leaves_it_open():
    trace = Trace.of("q", ["a", "b", "c", "d"], ["pos", "neu", "neg", None])
    assert [step.valid for step in trace.steps] == [True, True, False, None]
    assert trace.labels == (Label.POS, Label.NEU, Label.NEG, None)
    assert trace.first_error == 2


def test_validity_without_a_label_is_kept():
    trace = Trace("", "q", (Step(("a",), valid=True), Step(("b",), valid=False)))
    assert trace.labels == (None, None)
    assert trace.first_error == 1
    assert trace.has_gold


def test_the_gold_of_a_step_is_one_of_five_values():
    steps = [Step(("x",), Label.NEG), Step(("x",), Label.NEU), Step(("x",), Label.POS), Step(("x",), valid=True)]
    assert [step.gold for step in [*steps, Step(("x",))]] == ["neg", "neu", "pos", VALID, None]
    # Wrong without a label is neg.
    assert Step(("x",), valid=False).gold == "neg"


def test_unlabelled_trace_has_no_gold_and_no_error():
    trace = Trace.of("q", ["a"])
    assert not trace.has_gold
    assert trace.first_error is None


def test_digest_tells_substeps_from_steps_and_depends_on_gold():
    digests = {
        Trace.of("q", ["a", "b"]).digest,
        Trace.of("q", [["a", "b"]]).digest,
        Trace.of("q", ["a", "b"], ["pos", None]).digest,
    }
    assert len(digests) == 3
    assert Trace.of("q", ["a"], id="x").digest == Trace.of("q", ["a"], id="y").digest


@each(
    "problem, steps, labels",
    [
        (" ", ["a"], None),
        ("q", [], None),
        ("q", ["a", ""], None),
        ("q", ["a", []], None),
        ("q", ["a\x00b"], None),
        ("q\ud800", ["a"], None),
        (3, ["a"], None),
        ("q", ["a", "b"], ["pos"]),
        ("q", ["a"], [0]),
    ],
)
def test_an_invalid_trace_is_refused(problem, steps, labels):
    with refused():
        Trace.of(problem, steps, labels)


def test_a_text_is_the_same_however_it_is_cut_broken_and_labelled():
    text = Trace.of("What is 1 + 1?", ["It is a sum.", ["So 3.", "Done."]], ["pos", "neg"], id="one")
    same = [
        Trace.of("What is 1 + 1?", ["It is a sum.", "So 3.\nDone."], id="other"),
        Trace.of(" What is\n1 + 1?", ["It is a  sum. So 3.", "\tDone.\n"], meta={"source": "else"}),
    ]
    assert {trace.text_digest for trace in same} == {text.text_digest}
    assert len({trace.digest for trace in (text, *same)}) == 3


def test_another_text_has_another_digest():
    texts = [
        Trace.of("What is 1 + 1?", ["It is 2."]),
        Trace.of("What is 1 + 1?", ["It is 3."]),
        Trace.of("What is 1 + 1? It", ["is 2."]),
        Trace.of("What is 1 + 1?", ["It is 2.", "Done."]),
    ]
    assert len({trace.text_digest for trace in texts}) == len(texts)
