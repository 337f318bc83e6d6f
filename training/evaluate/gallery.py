"""The gallery: shipped traces that show what later steps can reveal. It can be used to test an evaluator.

    python -m stepsight.training.evaluate.gallery mini-bidir

This prints a JSON object. The object counts the errors whose validity falls below the threshold once the later step
that exposes them is visible, and the correct steps called wrong. It also holds the results for traces of the other
kinds, and a row per trace. Shares are `[value, low, high]`, with 95 % bootstrap intervals over traces.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from stepsight.core.errors import UserError
from stepsight.core.files.jsonl import parse_trace, read_file
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.label import Label
from stepsight.core.metrics.bootstrap import resamples
from stepsight.core.models.evaluator_base import Evaluator
from stepsight.core.paths import asset
from stepsight.core.trace import Trace

GALLERY = asset("traces", "gallery.jsonl")
DATASET = GALLERY.stem
EXPOSED, CLEARED, VISIBLE, CLEAN = "exposed later", "cleared later", "visible at once", "no error"
KINDS = (EXPOSED, CLEARED, VISIBLE, CLEAN)

# In one trace: the number of steps that meet a condition, and the number to which it applies.
Count = tuple[int, int]


@cache
def read_gallery() -> tuple[Trace, ...]:
    """Return the traces of the gallery, in order.

    The meta of each trace holds these values:

    - `title`, `topic` and `evidence_kind`
    - `note`: a sentence that says which later step exposes or clears which earlier step
    - `kind`: one of `KINDS`
    - `focus`: the 0-based index of the step that is exposed, cleared or visibly wrong, or null
    - `evidence`: the 0-based index of the later step that exposes or clears the step in focus, or null
    - `error`: the kind of the error, or null
    """
    return tuple(parse_trace(row, f"{GALLERY.name} line {number}") for number, row in read_file(GALLERY))


def measure(evaluator: Evaluator) -> dict[str, Any]:
    """Measure an evaluator on the gallery, at its own validity threshold. Each figure is a share.

    - `crossed`: first errors exposed later that are judged valid online but invalid offline. There are two more
      shares, for errors exposed by the very next step and for errors exposed further on.
    - `called wrong`: steps labelled pos or neu that are judged invalid
    - `cleared`: steps cleared by a later step that are judged valid offline
    - `found`: immediately visible errors that are judged invalid in both modes
    - `passed`: traces without an error in which no step is judged invalid
    """
    # It brings PyTorch, and pages only read the gallery.
    from stepsight.core.scoring.scorer import Scorer

    threshold = evaluator.thresholds.validity
    judged = [_Judged(judgment, threshold) for judgment in Scorer(evaluator).score(read_gallery(), Mode.HINDSIGHT)]
    exposed, cleared, visible, clean = ([item for item in judged if item.kind == kind] for kind in KINDS)
    right = cleared + clean
    return {
        "evaluator": evaluator.name,
        "fingerprint": evaluator.fingerprint,
        "threshold": threshold,
        EXPOSED: {
            "crossed": _share(exposed, _Judged.crossed),
            "crossed, evidence in the next step": _share([i for i in exposed if i.distance == 1], _Judged.crossed),
            "crossed, evidence further on": _share([i for i in exposed if i.distance > 1], _Judged.crossed),
            "valid online": _share(exposed, lambda item: item.focus_is(online=True)),
            "invalid offline": _share(exposed, lambda item: item.focus_is(offline=False)),
        },
        "called wrong": {
            "online": _share(judged, lambda item: item.called_wrong(item.online)),
            "offline": _share(judged, lambda item: item.called_wrong(item.offline)),
        },
        CLEARED: {"cleared": _share(cleared, lambda item: item.focus_is(offline=True))},
        VISIBLE: {"found": _share(visible, lambda item: item.focus_is(online=False, offline=False))},
        "without an error": {
            "passed online": _share(right, lambda item: (int(item.online.all()), 1)),
            "passed offline": _share(right, lambda item: (int(item.offline.all()), 1)),
        },
        "traces": [item.row() for item in judged],
    }


class _Judged:
    """A judged trace of the gallery, with the validity scores and verdicts of its steps in both modes."""

    def __init__(self, judgment: Judgment, threshold: float) -> None:
        assert judgment.hindsight is not None
        self.trace = judgment.trace
        self.kind: str = self.trace.meta["kind"]
        self.focus: int | None = self.trace.meta["focus"]
        both = judgment.hindsight.online, judgment.hindsight.offline
        self.scores = [scores.by_step(self.trace.owners).validity for scores in both]
        self.online, self.offline = (scores >= threshold for scores in self.scores)

    @property
    def distance(self) -> int:
        """The number of steps from the step in focus to the evidence, or 0 if there is no evidence."""
        evidence = self.trace.meta["evidence"]
        return 0 if self.focus is None or evidence is None else int(evidence - self.focus)

    def focus_is(self, online: bool | None = None, offline: bool | None = None) -> Count:
        """Return (1, 1) if the step in focus has the given validity in each mode, and (0, 1) otherwise. A mode for
        which None is given is ignored."""
        assert self.focus is not None
        verdicts = ((self.online[self.focus], online), (self.offline[self.focus], offline))
        return int(all(valid == wanted for valid, wanted in verdicts if wanted is not None)), 1

    def crossed(self) -> Count:
        return self.focus_is(online=True, offline=False)

    def called_wrong(self, valid: np.ndarray) -> Count:
        correct = [i for i, label in enumerate(self.trace.labels) if label in (Label.POS, Label.NEU)]
        return sum(not valid[i] for i in correct), len(correct)

    def row(self) -> dict[str, Any]:
        """Return the trace's row of the result.

        Steps are numbered from 1. `called wrong` holds the number of correct steps called wrong, online and
        offline.
        """
        online, offline = ([round(float(value), 3) for value in scores] for scores in self.scores)
        evidence = self.trace.meta["evidence"]
        row: dict[str, Any] = {
            "id": self.trace.id,
            "kind": self.kind,
            "step": None if self.focus is None else self.focus + 1,
            "evidence": None if evidence is None else evidence + 1,
            "online": online,
            "offline": offline,
            "called wrong": [self.called_wrong(valid)[0] for valid in (self.online, self.offline)],
        }
        return row | ({"crossed": bool(self.crossed()[0])} if self.kind == EXPOSED else {})


def _share(items: Sequence[_Judged], count: Callable[[_Judged], Count]) -> dict[str, Any]:
    """Add up the counts of all traces. Return the sums, the share and its interval. The share is null if the total
    is 0."""
    counts = np.array([count(item) for item in items]).reshape(-1, 2)
    hits, total = counts.sum(axis=0)
    if not total:
        return {"count": 0, "of": 0, "share": None}
    drawn = resamples(len(counts)) @ counts
    low, high = np.percentile(drawn[:, 0] / drawn[:, 1], [2.5, 97.5])
    return {
        "count": int(hits),
        "of": int(total),
        "share": [round(float(value), 4) for value in (hits / total, low, high)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure an evaluator on the gallery.")
    parser.add_argument("evaluator", help="a shipped name or a folder")
    args = parser.parse_args()
    from stepsight.core.evaluators.loading import load_evaluator

    try:
        measured = measure(load_evaluator(args.evaluator))
    except UserError as error:
        parser.error(str(error))
    print(json.dumps(measured, indent=1))


if __name__ == "__main__":
    main()
