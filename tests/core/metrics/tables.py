"""Small tables for the tests of metrics."""

import numpy as np

from stepsight.core.metrics.table import TableBuilder
from stepsight.core.scores import StepScores
from stepsight.core.trace import Label, Step, Trace

VALID, WRONG, SILENT = object(), object(), object()
"""Golds of validity alone."""


def scores(*validities):
    """Rows with the given validity, a quarter of it neu."""
    return StepScores(np.array([[1 - v, v / 4, 3 * v / 4] for v in validities], np.float32))


def step(gold, substeps=1):
    texts = tuple(f"text {i}" for i in range(substeps))
    if gold in (VALID, WRONG, SILENT):
        return Step(texts, valid={VALID: True, WRONG: False, SILENT: None}[gold])
    return Step(texts, None if gold is None else Label[str(gold).upper()])


def trace(*golds, id="t"):
    return Trace(id, "q", tuple(step(gold) for gold in golds))


def table(*judged, groups=()):
    """A table of (golds, validities) per trace."""
    builder = TableBuilder()
    for number, (golds, validities) in enumerate(judged):
        group = groups[number] if groups else ""
        builder.add(trace(*golds, id=str(number)), scores(*validities), group=group)
    return builder.build()


def three_way(golds, probs):
    """A table of one trace with its probabilities."""
    builder = TableBuilder()
    builder.add(trace(*golds), StepScores(np.array(probs, np.float32)))
    return builder.build()
