"""Small tables for the tests of metrics."""

from dataclasses import replace

import numpy as np

from stepsight.core.metrics.table import build_table
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


def judged_table(*rows):
    """A table of a trace with its probabilities or None, its score of the whole and its group per row, of which
    the last two may be left out."""
    traces, probs, solutions, groups = zip(*((*row, *(None, "")[len(row) - 2 :]) for row in rows), strict=True)
    scored = [None if part is None else StepScores(np.array(part, np.float32)) for part in probs]
    table = build_table(zip(traces, scored, strict=True))
    return replace(table, solution=np.array(solutions, np.float64), groups=groups)


def table(*judged, groups=()):
    """A table of (golds, validities) per trace."""
    named = [(trace(*golds, id=str(i)), scores(*validities)) for i, (golds, validities) in enumerate(judged)]
    return replace(build_table(named), groups=tuple(groups) or ("",) * len(named))


def three_way(golds, probs):
    """A table of one trace with its probabilities."""
    return judged_table((trace(*golds), probs))
