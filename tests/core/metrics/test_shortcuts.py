"""Baselines that do not read the steps, by hand."""

import json

import numpy as np
import pytest

from stepsight.core.judgment import Mode
from stepsight.core.metrics.binary import auc
from stepsight.core.metrics.reasoneval import Errors, Level, items
from stepsight.core.metrics.shortcuts import (
    BASELINES,
    baselines_of,
    find_baseline,
)
from stepsight.core.metrics.table import build_table
from stepsight.core.metrics.ternary import classify
from stepsight.core.scores import Outputs
from stepsight.core.trace import Label, Step, Trace
from stepsight.storage.importers import KINDS
from tests.messages import refused

TRACE = Trace("t", "q", (Step(("abcd", "efg")), Step(("12",)), Step(("the answer is 3",))))


def validity(name, trace=TRACE, mode=Mode.OFFLINE):
    return find_baseline(f"baseline:{name}").score(trace, mode).validity.tolist()


def test_constant_and_position():
    assert validity("constant") == [0.5] * 4
    # Two sub-steps of step 0, then steps 1 and 2: 1 / (1 + i / 10).
    assert validity("position") == pytest.approx([1, 1, 10 / 11, 10 / 12])


def test_length_counts_the_substeps_joined_by_newlines():
    # "abcd\nefg" has 8 characters, "12" two, "the answer is 3" fifteen.
    assert validity("length") == pytest.approx([500 / 508, 500 / 508, 500 / 502, 500 / 515])


def test_last_step_blames_a_trace_that_ends_without_an_answer():
    assert validity("last-step") == [1, 1, 1, 1]
    cut = Trace("t", "q", TRACE.steps[:2])
    assert validity("last-step", cut) == [1, 1, 0]
    # Online every step is the last that is seen.
    assert validity("last-step", TRACE, Mode.ONLINE) == [0, 0, 0, 1]
    assert validity("last-step", Trace.of("q", ["# Answer\n\n5"])) == [1]
    assert validity("last-step", Trace.of("q", [r"So \boxed{5}"])) == [1]


def test_substeps_are_read_by_themselves():
    # "abcd", "efg", "12" and "the answer is 3": 1 / (1 + i / 10), and 500 / (500 + characters).
    assert validity("substep-position") == pytest.approx([1, 10 / 11, 10 / 12, 10 / 13])
    assert validity("substep-length") == pytest.approx([500 / 504, 500 / 503, 500 / 502, 500 / 515])
    split = Trace("t", "q", (Step(("abcd",)), Step(("the answer is 3", "So."))))
    # The step ends with an answer in it, its last sub-step does not.
    assert validity("last-step", split) == [1, 1, 1]
    assert validity("last-substep", split) == [1, 1, 0]
    assert validity("last-substep", split, Mode.ONLINE) == [0, 1, 0]


def test_baselines_of_substeps_equal_those_of_steps_without_substeps():
    plain = Trace.of("q", ["abcd", "efg", "the answer is 3"])
    pairs = (("position", "substep-position"), ("length", "substep-length"), ("last-step", "last-substep"))
    for of_steps, of_substeps in pairs:
        assert validity(of_steps, plain) == validity(of_substeps, plain)
    assert [one.name for one in baselines_of(has_substeps=False)] == list(BASELINES)
    assert len(baselines_of(has_substeps=True)) == 7


def test_an_unknown_baseline():
    with refused():
        find_baseline("baseline:luck")


def judged(path, kind, name):
    lines = path.read_text(encoding="utf-8").splitlines()
    traces = [KINDS[kind].parse(json.loads(line), "here") for line in lines]
    return build_table((trace, find_baseline(name).score(trace, Mode.OFFLINE)) for trace in traces)


@pytest.mark.parametrize(
    ("name", "expected"), [("length", 0.607), ("substep-length", 0.574), ("position", 0.498), ("constant", 0.5)]
)
def test_step_auc_on_mr_math_invalid(data, name, expected):
    table = judged(data / "mr-math" / "mr-math_invalid_errors.json", "mr-math-invalid", f"baseline:{name}")
    found = auc(items(table, Errors.INVALID, Level.STEP, Outputs.VALIDITY))
    assert round(found.number, 3) == expected


def test_the_last_step_gives_away_prm800k_as_labelled(data):
    table = judged(data / "prm800k" / "test.jsonl", "prm800k", "baseline:last-step")
    found = auc(classify(table).against_rest(Label.NEG))
    assert round(found.number, 3) == 0.988
    assert np.isfinite(table.validity).all()
