"""The gallery: its gold, its equations, and that it is not in the training data."""

import re

import pytest

from stepsight.core.equations.evaluator import checks_of, faults
from stepsight.core.trace import Label
from stepsight.training.evaluate.strength import CLEAN, CLEARED, EXPOSED, KINDS, VISIBLE, read_gallery
from stepsight.training.synth.corpus import generate
from tests.cases import each

TRACES = {trace.id: trace for trace in read_gallery()}
ERRORS = {
    "arithmetic slip",
    "misread quantity",
    "wrong operation",
    "sign",
    "dropped term",
    "wrong formula",
    "wrong unit",
    "invalid inference",
    "skipped case",
    "wrong final answer",
}
EVIDENCE = {"failing check", "passing check", "contradiction", "self-correction", "implausible result"}
every = each("trace", TRACES.values())


def of_kind(*kinds):
    return [trace for trace in TRACES.values() if trace.meta["kind"] in kinds]


def test_every_kind_is_there_and_in_variety():
    assert len(TRACES) == len(read_gallery()) >= 24
    counts = {kind: len(of_kind(kind)) for kind in KINDS}
    assert sum(counts.values()) == len(TRACES)
    assert counts[EXPOSED] >= 12
    assert min(counts.values()) >= 4
    assert {trace.meta["error"] for trace in TRACES.values()} - {None} == ERRORS
    assert {trace.meta["evidence_kind"] for trace in TRACES.values()} - {None} == EVIDENCE
    assert len({trace.meta["topic"] for trace in TRACES.values()}) >= 15
    latex = ["$" in trace.substeps[-1] and "\\" in "".join(trace.substeps) for trace in TRACES.values()]
    assert min(sum(latex), len(latex) - sum(latex)) >= 10
    assert any(Label.NEU in trace.labels for trace in of_kind(CLEAN))


def test_the_evidence_is_not_always_in_the_next_step():
    distances = [trace.meta["evidence"] - trace.meta["focus"] for trace in of_kind(EXPOSED)]
    assert sum(distance > 1 for distance in distances) >= 10
    assert max(distances) >= 3


@every
def test_title_and_note(trace):
    assert len(trace.meta["title"]) <= 50
    note = trace.meta["note"]
    assert note.endswith(".")
    assert note.count(". ") == 0
    # The Browse page shows no longer ones.
    assert len(note) <= 160
    named = {int(number) for number in re.findall(r"(?:[Ss]teps?|and) (\d+)", note)}
    assert all(1 <= number <= len(trace.steps) for number in named)
    if trace.meta["evidence"] is not None:
        assert named >= {trace.meta["focus"] + 1, trace.meta["evidence"] + 1}


@every
def test_labels_follow_the_first_error(trace):
    meta = trace.meta
    kind, focus, evidence = meta["kind"], meta["focus"], meta["evidence"]
    assert trace.first_error == (focus if kind in (EXPOSED, VISIBLE) else None)
    assert (meta["error"] is not None) == (trace.first_error is not None)
    assert (evidence is not None) == (meta["evidence_kind"] is not None) == (kind in (EXPOSED, CLEARED))
    assert (meta["evidence_kind"] == "passing check") == (kind == CLEARED)
    assert (focus is None) == (kind == CLEAN)
    if evidence is not None:
        assert focus < evidence < len(trace.steps)
    # After an error only the step that states the mistake is labelled, and it is correct.
    for i, label in enumerate(trace.labels):
        if trace.first_error is None or i < trace.first_error:
            assert label in (Label.POS, Label.NEU)
        elif i > trace.first_error:
            assert label == (Label.POS if i == evidence else None)


@every
def test_every_equation_outside_the_wrong_step_is_true(trace):
    """Also where it follows from an error."""
    for i, checks in enumerate(checks_of(trace)):
        assert i == trace.first_error or faults(checks) == [], trace.substeps[i]


def test_the_equations_are_found():
    counts = [sum(len(checks) for checks in checks_of(trace)) for trace in TRACES.values()]
    assert sum(counts) > 150
    assert sum(count == 0 for count in counts) <= 2


@pytest.mark.slow
def test_it_is_not_in_the_training_data():
    """No problem is one of the generator's with other numbers."""
    generated = {_masked(trace.problem) for trace in generate(1, 3000)}
    assert len(generated) > 100
    assert {_masked(trace.problem) for trace in TRACES.values()} & generated == set()


def _masked(problem):
    return re.sub(r"\d+(?:\.\d+)?", "0", problem.replace("$", "")).lower()
