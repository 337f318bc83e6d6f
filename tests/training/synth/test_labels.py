"""The labels of 10,000 traces, derived anew from their texts and found the same.

All families, those held out of training among them, and a fifth of the traces on larger numbers.
"""

from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context

import pytest

from core.label import Label
from tests.training.synth.checker import objections
from training.synth.corpus import generate
from training.synth.families import FAMILIES
from training.synth.plant import KINDS

SHARES = [(seed, 1000, seed % 5 == 4) for seed in range(10)]


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


def examine(share: tuple[int, int, bool]) -> Outcome:
    seed, size, larger = share
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
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        return list(pool.map(examine, SHARES))


def test_ten_thousand_traces_have_the_labels_that_their_texts_have(outcomes):
    assert sum(outcome.traces for outcome in outcomes) == 10_000
    found = [text for outcome in outcomes for text in outcome.objections]
    assert not found, f"{len(found)} objections, first: " + "\n".join(found[:20])


def test_they_hold_every_kind_of_family_error_evidence_and_label(outcomes):
    families, errors, evidence, labels, redundant = (
        sum((getattr(outcome, name) for outcome in outcomes), Counter())
        for name in ("families", "errors", "evidence", "labels", "redundant")
    )
    assert set(families) == set(FAMILIES)
    assert len(families) >= 20
    assert min(families.values()) >= 50
    assert set(errors) == {*KINDS, None}
    assert min(errors.values()) >= 50
    assert len([kind for kind, count in evidence.items() if count >= 20]) >= 8
    assert set(labels) == {None, *Label}
    assert set(redundant) == {"restating", "detour", "aside"}
