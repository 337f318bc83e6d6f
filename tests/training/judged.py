"""A small store with two evaluators whose figures are worked out by hand in the tests."""

import numpy as np

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import Hindsight, Outputs, StepScores
from stepsight.core.trace import Trace
from stepsight.storage.judgments.evaluators import evaluators_of, register_evaluator
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.evaluate.evaluation import MODES, GoldView, evaluate
from stepsight.training.evaluate.judging import with_thresholds
from tests.storage.samples import add

NAME = "three_way"
GOLDS = (["pos", "neg", "pos"], ["pos", "neu", "pos"], ["neu", "pos", "neg"], ["pos", "pos", "pos"])

# Probabilities of neg, neu, pos: surely pos; neu; neg; pos with some neu; neg with some neu.
POS, NEU, NEG = (0.1, 0.1, 0.8), (0.2, 0.7, 0.1), (0.7, 0.2, 0.1)
SOME, DOUBT = (0.1, 0.3, 0.6), (0.6, 0.3, 0.1)

# What the evaluator says once all is seen. Decided by argmax: pos neg pos, pos pos pos, neu pos pos, pos neu pos.
OFFLINE = ((POS, NEG, POS), (POS, SOME, POS), (NEU, POS, POS), (POS, NEU, POS))
# Before it, only the second steps of the first two traces are judged otherwise: validity 0.9 falls to 0.3, and 0.4
# rises to 0.9.
ONLINE = ((POS, POS, POS), (POS, DOUBT, POS), (NEU, POS, POS), (POS, NEU, POS))


def fill(store, golds=GOLDS, name=NAME):
    """The traces, judged in hindsight by `one_mind` and with verdicts by `words`, offline."""
    made = [Trace.of(f"q{i}", ["s"] * len(labels), list(labels), id=str(i)) for i, labels in enumerate(golds)]
    traces = add(store, made, dataset=name)
    mind = register_evaluator(
        store, name="one_mind", fingerprint="f1", format="stepsight", attention="bidirectional"
    )
    verdicts = {"outputs": Outputs.VERDICT.value}
    words = register_evaluator(
        store, name="words", fingerprint="f2", format="imported", attention="unknown", info=verdicts
    )
    save_judgments(store, mind.id, [
        Judgment(trace, Mode.HINDSIGHT, hindsight(before, after))
        for trace, before, after in zip(traces, ONLINE, OFFLINE, strict=True)
    ])  # fmt: skip
    said = StepScores(np.array([[0, 0, 1]] * 3, np.float32))
    save_judgments(store, words.id, [Judgment(trace, Mode.OFFLINE, said, 1.0) for trace in traces[:3]])
    return find_dataset(store, name)


def hindsight(online, offline):
    """A triangle with that diagonal above that last row."""
    n = len(online)
    rows = [[offline[i] if j == n - 1 else online[i] for i in range(j + 1)] for j in range(n)]
    return Hindsight(tuple(np.array(row, np.float32) for row in rows))


def measure(store, dataset, draws=50):
    return measure_stored(store, dataset, evaluators_of(store, dataset.id), draws=draws)


def measure_stored(store, dataset, evaluators, *, force=False, draws=50, modes=MODES, **view):
    """`evaluate` of stored evaluators at the thresholds in force."""
    measured = [with_thresholds(store, dataset, one, force) for one in evaluators]
    return evaluate(store, GoldView(dataset, **view), measured, modes, draws, force)


def row_of(found, mode, errors="invalid", evaluator="one_mind"):
    (row,) = [r for r in found.rows if (r.evaluator, r.mode, r.errors) == (evaluator, mode, errors)]
    return row
