"""The checker of labels objects to whatever is spoiled in a trace: a step, a label or the meta."""

import dataclasses
import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from stepsight.core.label import Label
from stepsight.core.trace import Trace
from stepsight.training.synth.corpus import generate
from stepsight.training.synth.families import FAMILIES
from tests.training.synth.checker import objections


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    return list(generate(77, 400, FAMILIES))


def spoiled(traces: list[Trace], spoil: Callable[[Trace, random.Random], Trace | None]) -> tuple[int, list[Trace]]:
    """How many traces could be spoiled, and those of them that passed nevertheless."""
    rng = random.Random(5)
    changed = [other for trace in traces if (other := spoil(trace, rng)) is not None]
    return len(changed), [trace for trace in changed if not objections(trace)]


_RESULT = re.compile(r"((?<=[\d)}] )= -?)(\d+)\b(?![./]|\s*[-+*/x×])")


def flip_a_label(trace: Trace, rng: random.Random) -> Trace | None:
    at = rng.randrange(len(trace.steps))
    other = rng.choice([label for label in (None, *Label) if label != trace.steps[at].label])
    steps = list(trace.steps)
    steps[at] = dataclasses.replace(steps[at], label=other, valid=None)
    return dataclasses.replace(trace, steps=tuple(steps))


def change_a_result(trace: Trace, rng: random.Random) -> Trace | None:
    """The result of a calculation in a step that is labelled right."""
    places = [i for i, s in enumerate(trace.steps) if s.label in (Label.POS, Label.NEU)]
    places = [i for i in places if re.search(_RESULT, trace.steps[i].text)]
    if not places:
        return None
    at = rng.choice(places)
    text = re.sub(_RESULT, lambda m: f"{m[1]}{int(m[2]) + 1}", trace.steps[at].text, count=1)
    changed = re.search(_RESULT, text)
    if changed is None or re.search(r"\b[a-z]\b[^,.]*$", text[: changed.start()]):
        # An equation in a letter is read by nobody but the relations.
        return None
    steps = list(trace.steps)
    steps[at] = dataclasses.replace(steps[at], substeps=(text,))
    return dataclasses.replace(trace, steps=tuple(steps))


def hide_the_error(trace: Trace, rng: random.Random) -> Trace | None:
    return with_meta(trace, error_step=None) if trace.meta["error"] else None


def turn_the_evidence(trace: Trace, rng: random.Random) -> Trace | None:
    evidence = trace.meta["evidence"]
    return with_meta(trace, evidence=evidence | {"passes": not evidence["passes"]}) if evidence else None


def drop_the_failing(trace: Trace, rng: random.Random) -> Trace | None:
    """The failing check says no longer that it fails."""
    evidence = trace.meta["evidence"]
    if evidence is None or evidence["passes"]:
        return None
    steps = list(trace.steps)
    steps[evidence["step"]] = dataclasses.replace(
        steps[evidence["step"]], substeps=("Check: 2 + 3 = 5, so it holds.",)
    )
    return dataclasses.replace(trace, steps=tuple(steps))


# A number that the problem does not give; a way back that does not return; an equation that is false.
_WRONG = {
    "restating": "Recall that it is 987654.",
    "detour": "987654 * 2 = 1975308; then 1975308 - 2 = 1975306.",
    "aside": "By the way, 12 + 6 = 19.",
}


def falsify_a_redundant_step(trace: Trace, rng: random.Random) -> Trace | None:
    roles = trace.meta["roles"]
    places = [i for i, step in enumerate(trace.steps) if roles[i] in _WRONG and step.label is not None]
    if not places:
        return None
    at = rng.choice(places)
    steps = list(trace.steps)
    steps[at] = dataclasses.replace(steps[at], substeps=(_WRONG[roles[at]],))
    return dataclasses.replace(trace, steps=tuple(steps))


def with_meta(trace: Trace, **changes: Any) -> Trace:
    return dataclasses.replace(trace, meta={**trace.meta, **changes})


@pytest.mark.parametrize(
    ("spoil", "least"),
    [
        (flip_a_label, 400),
        (change_a_result, 250),
        (hide_the_error, 150),
        (turn_the_evidence, 150),
        (drop_the_failing, 80),
        (falsify_a_redundant_step, 80),
    ],
)
def test_no_spoiled_trace_passes(traces, spoil, least):
    count, passed = spoiled(traces, spoil)
    assert count >= least
    assert passed == []
