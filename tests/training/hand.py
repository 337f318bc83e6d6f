"""Four judged traces whose every figure can be worked out by hand.

| step | gold | neg, neu, pos    | s_val | valid | redundant |
|------|------|------------------|-------|-------|-----------|
| A 1  | pos  | 0.10, 0.00, 0.90 | 0.90  | yes   | no        |
| A 2  | neg  | 0.39, 0.20, 0.41 | 0.61  | yes   | yes       |
| A 3  | pos  | 0.05, 0.00, 0.95 | 0.95  | yes   | no        |
| B 1  | pos  | 0.20, 0.10, 0.70 | 0.80  | yes   | no        |
| B 2  | pos  | 0.60, 0.05, 0.35 | 0.40  | no    | no        |
| C 1  | neu  | 0.30, 0.15, 0.55 | 0.70  | yes   | yes       |
| C 2  | pos  | 0.10, 0.30, 0.60 | 0.90  | yes   | yes       |
| D 1  | neg  | 0.90, 0.00, 0.10 | 0.10  | no    | no        |
| D 2  | pos  | 0.00, 0.00, 1.00 | 1.00  | yes   | no        |
"""

import numpy as np

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import StepScores
from stepsight.core.trace import Trace
from stepsight.storage.judgments.judgments import save_judgments

GOLDS = {"A": ["pos", "neg", "pos"], "B": ["pos", "pos"], "C": ["neu", "pos"], "D": ["neg", "pos"]}
SAID = {
    "A": [[0.1, 0.0, 0.9], [0.39, 0.2, 0.41], [0.05, 0.0, 0.95]],
    "B": [[0.2, 0.1, 0.7], [0.6, 0.05, 0.35]],
    "C": [[0.3, 0.15, 0.55], [0.1, 0.3, 0.6]],
    "D": [[0.9, 0.0, 0.1], [0.0, 0.0, 1.0]],
}


def traces(golds=GOLDS, kind="q"):
    """Traces without an answer at their end, by id."""
    return [
        Trace.of(
            f"{kind} {id}?", [f"step {number} of {id}" for number, _ in enumerate(labels)], list(labels), id=id
        )
        for id, labels in golds.items()
    ]


def say(store, stored, evaluator_id, said=SAID, mode=Mode.OFFLINE):
    """Store the judgments of the traces of which something is said."""
    found = [
        Judgment(trace, mode, StepScores(np.array(said[trace.id], np.float32)))
        for trace in stored
        if trace.id in said
    ]
    save_judgments(store, evaluator_id, found)


def valid(*validities):
    """Rows of those validities, without redundancy."""
    return [[1 - value, 0.0, value] for value in validities]
