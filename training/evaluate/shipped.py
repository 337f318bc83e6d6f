"""Measuring an evaluator on synthetic traces that it was not trained on, and on the gallery: the figures of the
shipped evaluators' model cards.

    python -m stepsight.training.evaluate.shipped mini-bidir

This prints a JSON object. `held out` has figures for several sets of synthetic traces: generated with a new seed,
from families never trained on, and with larger numbers. Two more sets split the first one into traces with and
without a later step that exposes or clears the decisive step. The figures are macro-F1 and AUC of step validity
(ReasonEval's protocol), online, offline and as their difference; and how often steps of correct traces are called
wrong when the trace is cut after them, and when the rest is visible. `gallery` counts the errors whose validity
falls below the threshold once the later step that exposes them is visible, the correct steps called wrong, and the
results for traces of the other kinds. Figures are `[value, low, high]`, with a 95 % bootstrap interval over traces.
"""

import argparse
import json
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from tqdm import tqdm

from stepsight.core.arrays import Bools
from stepsight.core.errors import UserError
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.metrics.binary import auc, macro_f1
from stepsight.core.metrics.bootstrap import Value, mean, resamples
from stepsight.core.metrics.reasoneval import Errors, Level, items
from stepsight.core.metrics.table import build_table
from stepsight.core.models.evaluator_base import Evaluator
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Label, Trace
from stepsight.training.evaluate.evaluation import minus
from stepsight.training.evaluate.strength import CLEARED, EXPOSED, KINDS, VISIBLE, read_gallery
from stepsight.training.synth.corpus import HELD_OUT, generate

SEED = 20_000
SIZE = 1000

_SETS: dict[str, Callable[[int, int], Iterator[Trace]]] = {
    "fresh seed": lambda seed, size: generate(seed, size),
    "families never trained on": lambda seed, size: generate(seed + 1, size, HELD_OUT),
    "larger numbers": lambda seed, size: generate(seed + 2, size, larger=True),
}
_GROUPS: dict[str, Callable[[Trace], bool]] = {
    "later evidence": lambda trace: trace.meta["evidence"] is not None,
    "no later evidence": lambda trace: trace.meta["evidence"] is None,
}
_FIGURES = {"step_f1": macro_f1, "step_auc": auc}

Shown = list[float | None]


def _shown(value: Value) -> Shown:
    numbers = (value.number, value.low, value.high)
    return [None if math.isnan(number) else round(number, 4) for number in numbers]


def measure_held_out(evaluator: Evaluator, size: int = SIZE, seed: int = SEED) -> dict[str, Any]:
    """Return the figures on synthetic traces, with `size` traces per set.

    `seed` must differ from the seeds of the evaluator's training data. An undefined figure is null.
    """
    scorer = Scorer(evaluator)
    result: dict[str, Any] = {"traces": size, "seed": seed}
    judged: list[Judgment] = []
    for name, draw in _SETS.items():
        judgments = list(tqdm(scorer.score(draw(seed, size), Mode.HINDSIGHT), name, size, disable=None))
        judged = judged or judgments
        result[name] = compare_modes(judgments)
    for name, belongs in _GROUPS.items():
        result[name] = compare_modes([judgment for judgment in judged if belongs(judgment.trace)])
    return result | {"right traces called wrong": endings(judged)}


def compare_modes(judgments: Sequence[Judgment]) -> dict[str, Any]:
    """Return step macro-F1 and AUC online, offline, and as the difference offline minus online. The intervals of
    all three are over the same resamples."""
    weights, measured = resamples(len(judgments)), {}
    for mode in (Mode.ONLINE, Mode.OFFLINE):
        table = build_table((each.trace, getattr(each, mode.value)) for each in judgments)
        steps = items(table, Errors.INVALID, Level.STEP)
        measured[mode.value] = {name: figure(steps, weights) for name, figure in _FIGURES.items()}
    measured["offline - online"] = minus(measured["offline"], measured["online"])
    shown = {of: {name: _shown(value) for name, value in figures.items()} for of, figures in measured.items()}
    return {"traces": len(judgments), **shown}


def endings(judgments: Sequence[Judgment]) -> dict[str, Any]:
    """Return how often correct steps are called wrong at the end of a trace and, for comparison, before its rest.

    Only traces without an error count, and the last step of a trace does not. `cut` is the share of steps called
    wrong if the trace ends with them, `whole` is the share if the rest follows, and `cut - whole` is the
    difference. Each trace is weighted as if it were cut once, after a step chosen uniformly at random. A step is
    wrong below a validity of 0.5.
    """
    rates = []
    for judgment in judgments:
        triangle = judgment.hindsight
        if triangle is None or judgment.trace.first_error is not None or len(judgment.trace.steps) < 2:
            continue
        cut, whole = (scores.validity[:-1] < 0.5 for scores in (triangle.online, triangle.offline))
        rates.append((cut.mean(), whole.mean(), cut.mean() - whole.mean()))
    weights, columns = resamples(len(rates)), np.array(rates).reshape(-1, 3).T
    shares = (mean(column, np.arange(len(rates)), weights, "no trace is right") for column in columns)
    return {"traces": len(rates), **dict(zip(("cut", "whole", "cut - whole"), map(_shown, shares), strict=True))}


def measure_gallery(evaluator: Evaluator) -> dict[str, Any]:
    """Measure an evaluator on the gallery, at its own validity threshold. Each figure is a share.

    - `crossed`: first errors exposed later that are judged valid online but invalid offline. There are two more
      shares, for errors exposed by the very next step and for errors exposed further on.
    - `called wrong`: steps labelled pos or neu that are judged invalid
    - `cleared`: steps cleared by a later step that are judged valid offline
    - `found`: immediately visible errors that are judged invalid in both modes
    - `passed`: traces without an error in which no step is judged invalid
    """
    threshold = evaluator.thresholds.validity
    judged = [
        JudgedTrace(judgment, threshold) for judgment in Scorer(evaluator).score(read_gallery(), Mode.HINDSIGHT)
    ]
    exposed, cleared, visible, clean = ([trace for trace in judged if trace.kind == kind] for kind in KINDS)
    right = cleared + clean
    crossed = JudgedTrace.crossed
    return {
        "threshold": threshold,
        EXPOSED: {
            "crossed": _share(exposed, crossed),
            "crossed, evidence in the next step": _share(
                [trace for trace in exposed if trace.distance == 1], crossed
            ),
            "crossed, evidence further on": _share([trace for trace in exposed if trace.distance > 1], crossed),
            "valid online": _share(exposed, lambda trace: trace.focus_is(online=True)),
            "invalid offline": _share(exposed, lambda trace: trace.focus_is(offline=False)),
        },
        "called wrong": {
            "online": _share(judged, lambda trace: trace.called_wrong(trace.online)),
            "offline": _share(judged, lambda trace: trace.called_wrong(trace.offline)),
        },
        CLEARED: {"cleared": _share(cleared, lambda trace: trace.focus_is(offline=True))},
        VISIBLE: {"found": _share(visible, lambda trace: trace.focus_is(online=False, offline=False))},
        "without an error": {
            "passed online": _share(right, lambda trace: [bool(trace.online.all())]),
            "passed offline": _share(right, lambda trace: [bool(trace.offline.all())]),
        },
        "traces": [trace.row() for trace in judged],
    }


class JudgedTrace:
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

    def focus_is(self, online: bool | None = None, offline: bool | None = None) -> list[bool]:
        """Return whether the step in focus has the given validity in each mode. A mode for which None is given is
        ignored."""
        assert self.focus is not None
        verdicts = ((self.online[self.focus], online), (self.offline[self.focus], offline))
        return [all(valid == expected for valid, expected in verdicts if expected is not None)]

    def crossed(self) -> list[bool]:
        """Return whether the step in focus is valid online and invalid offline."""
        return self.focus_is(online=True, offline=False)

    def called_wrong(self, valid: Bools) -> list[bool]:
        """Return whether each step that gold calls correct is called wrong."""
        correct = [i for i, label in enumerate(self.trace.labels) if label in (Label.POS, Label.NEU)]
        return [not valid[i] for i in correct]

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
            "called wrong": [sum(self.called_wrong(valid)) for valid in (self.online, self.offline)],
        }
        return row | ({"crossed": self.crossed()[0]} if self.kind == EXPOSED else {})


def _share(judged: Sequence[JudgedTrace], hits: Callable[[JudgedTrace], list[bool]]) -> dict[str, Any]:
    """Return the number of hits of all traces, of how many, and the share with its interval."""
    of_traces = [hits(trace) for trace in judged]
    flat = np.array([hit for some in of_traces for hit in some], np.bool_)
    owners = np.repeat(np.arange(len(judged)), [len(some) for some in of_traces])
    value = mean(flat, owners, resamples(len(judged)), "there is none")
    return {"count": int(flat.sum()), "of": len(flat), "share": _shown(value) if value.exists else None}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure an evaluator as the shipped ones were measured.")
    parser.add_argument("evaluator", help="a shipped name or a folder")
    parser.add_argument("--size", type=int, default=SIZE, help="traces of each set (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=SEED, help="must not be one of training's")
    args = parser.parse_args()
    try:
        evaluator = load_evaluator(args.evaluator)
        figures = {
            "gallery": measure_gallery(evaluator),
            "held out": measure_held_out(evaluator, args.size, args.seed),
        }
    except UserError as error:
        parser.error(str(error))
    print(json.dumps({"evaluator": evaluator.name, "fingerprint": evaluator.fingerprint, **figures}, indent=1))


if __name__ == "__main__":
    main()
