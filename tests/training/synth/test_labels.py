"""The labels of traces, derived anew from their texts, where they are the same.

All families, those held out of training among them, and a fifth of the traces on larger numbers. The test reads the
first 600 of the 10,000 traces that

    python -m tests.training.synth.test_labels

reads, which is a part of `make bench`.
"""

import random
import sys
from collections import Counter
from dataclasses import dataclass, field

import pytest

from stepsight.core.label import Label
from stepsight.training.synth.corpus import generate
from stepsight.training.synth.families import FAMILIES, QUADRATIC, read_family
from stepsight.training.synth.mistakes import ErrorKind
from stepsight.training.synth.planner import plan_story
from stepsight.training.synth.solution import assemble_trace
from stepsight.training.synth.story import Story
from tests.training.synth.checker import objections

SHARES = [(seed, seed % 5 == 4) for seed in range(10)]


@dataclass
class Outcome:
    """Of one share: what was objected to, and what it was that was checked."""

    traces: int = 0
    objections: list[str] = field(default_factory=list)
    families: Counter[str] = field(default_factory=Counter)
    errors: Counter[str | None] = field(default_factory=Counter)
    evidence: Counter[str] = field(default_factory=Counter)
    labels: Counter[Label | None] = field(default_factory=Counter)
    redundant: Counter[str] = field(default_factory=Counter)


def examine(seed: int, larger: bool, size: int) -> Outcome:
    """The first `size` traces of a share; those of a smaller size are the beginning of those of a larger one."""
    outcome = Outcome()
    for trace in generate(1000 + seed, size, FAMILIES, larger):
        outcome.traces += 1
        outcome.objections += objections(trace)
        outcome.families[trace.meta["family"]] += 1
        outcome.errors[trace.meta["error"]] += 1
        outcome.labels.update(trace.labels)
        outcome.redundant.update(role for role in trace.meta["roles"] if role in ("restating", "detour", "aside"))
        if trace.meta["evidence"]:
            outcome.evidence[trace.meta["evidence"]["kind"]] += 1
    return outcome


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    return [examine(*share, 60) for share in SHARES]


def test_the_traces_have_the_labels_that_their_texts_have(outcomes):
    assert sum(outcome.traces for outcome in outcomes) == 600
    objected = [text for outcome in outcomes for text in outcome.objections]
    assert not objected, f"{len(objected)} objections, first: " + "\n".join(objected[:20])


def test_they_hold_every_kind_of_family_error_evidence_and_label(outcomes):
    families, errors, evidence, labels, redundant = (
        sum((getattr(outcome, name) for outcome in outcomes), Counter())
        for name in ("families", "errors", "evidence", "labels", "redundant")
    )
    assert set(families) == set(FAMILIES)
    assert len(families) >= 20
    assert min(families.values()) >= 5
    assert set(errors) == {*ErrorKind, None}
    assert min(errors.values()) >= 3
    assert len([kind for kind, count in evidence.items() if count >= 2]) >= 8
    assert set(labels) == {None, *Label}
    assert set(redundant) == {"restating", "detour", "aside"}


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != QUADRATIC])
def test_the_counterparts_of_mistakes_are_true(family):
    """Each of them, as a right solution and as a wrong one, on numbers of training and on larger ones."""
    for story in read_family(family, dict[str, Story]).values():
        for number, counterpart in enumerate(story.counterparts):
            for wrong in (False, True):
                rng = random.Random(f"{counterpart.problems[0]}:{wrong}")
                plan = plan_story(counterpart, wrong, rng, larger=number % 2 == 1)
                assert not objections(assemble_trace(plan, family, "counterpart", rng))


def main() -> int:
    """Read all 10,000, which takes a minute; returns the exit code."""
    outcomes = [examine(*share, 1000) for share in SHARES]
    objected = [text for outcome in outcomes for text in outcome.objections]
    print(f"{sum(outcome.traces for outcome in outcomes):,} traces, {len(objected)} objections")
    print("\n".join(objected[:20]), end="")
    return bool(objected)


if __name__ == "__main__":
    sys.exit(main())
