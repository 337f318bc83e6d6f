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
import pandas as pd
from tqdm import tqdm

from stepsight.core.errors import UserError
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.metrics.bootstrap import Value, mean, resamples
from stepsight.core.metrics.figures import Subject, protocol
from stepsight.core.metrics.reasoneval import Errors
from stepsight.core.metrics.table import build_table
from stepsight.core.models.evaluator_base import Evaluator
from stepsight.core.scores import Outputs, Thresholds
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Label, Trace
from stepsight.training.evaluate.evaluation import minus
from stepsight.training.evaluate.strength import CLEAN, CLEARED, EXPOSED, VISIBLE, read_gallery
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
_FIGURES = ("step_f1", "step_auc")

Shown = list[float | None]


def _round(value: Value) -> Shown:
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
        subject = Subject(table, Outputs.THREE_WAY, Thresholds())
        measured[mode.value] = protocol(subject, Errors.INVALID, weights, _FIGURES)
    measured["offline - online"] = minus(measured["offline"], measured["online"])
    shown = {of: {name: _round(value) for name, value in figures.items()} for of, figures in measured.items()}
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
    return {"traces": len(rates), **dict(zip(("cut", "whole", "cut - whole"), map(_round, shares), strict=True))}


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
    judgments = list(Scorer(evaluator).score(read_gallery(), Mode.HINDSIGHT))
    steps = judged_steps(judgments, threshold)
    online, offline = steps["online"], steps["offline"]
    exposed, cleared, visible = (
        steps["in_focus"] & (steps["kind"] == kind) for kind in (EXPOSED, CLEARED, VISIBLE)
    )
    correct = steps[steps["is_correct"]]
    whole = steps[steps["kind"].isin((CLEARED, CLEAN))].groupby("trace", as_index=False)
    right = whole[["online", "offline"]].all()

    def share(chosen: pd.Series, hits: pd.Series) -> dict[str, Any]:
        return share_of(steps["trace"][chosen], hits[chosen])

    return {
        "threshold": threshold,
        EXPOSED: {
            "crossed": share(exposed, online & ~offline),
            "crossed, evidence in the next step": share(exposed & (steps["distance"] == 1), online & ~offline),
            "crossed, evidence further on": share(exposed & (steps["distance"] > 1), online & ~offline),
            "valid online": share(exposed, online),
            "invalid offline": share(exposed, ~offline),
        },
        "called wrong": {
            mode: share_of(correct["trace"], ~correct[mode], steps["trace"]) for mode in ("online", "offline")
        },
        CLEARED: {"cleared": share(cleared, offline)},
        VISIBLE: {"found": share(visible, ~online & ~offline)},
        "without an error": {
            "passed online": share_of(right["trace"], right["online"]),
            "passed offline": share_of(right["trace"], right["offline"]),
        },
        "traces": [
            trace_row(judgment, steps[steps["trace"] == number]) for number, judgment in enumerate(judgments)
        ],
    }


def judged_steps(judgments: Sequence[Judgment], threshold: float) -> pd.DataFrame:
    """Return a row for each step of traces of the gallery that were judged in hindsight.

    `trace` is the number of the trace, and `kind` its kind. `in_focus` is True for the step that is exposed,
    cleared or visibly wrong, and `distance` the number of steps from it to the evidence, or 0 without evidence.
    `is_correct` is True if gold calls the step correct. `online` and `offline` are True if the step is judged
    valid, and `online_score` and `offline_score` hold its validity.
    """
    parts = []
    for number, judgment in enumerate(judgments):
        assert judgment.hindsight is not None
        trace = judgment.trace
        focus, evidence = trace.meta["focus"], trace.meta["evidence"]
        scores = {
            mode: getattr(judgment.hindsight, mode).by_step(trace.owners).validity for mode in ("online", "offline")
        }
        part = {
            "trace": number,
            "kind": trace.meta["kind"],
            "in_focus": [place == focus for place in range(len(trace.steps))],
            "distance": 0 if focus is None or evidence is None else evidence - focus,
            "is_correct": [label in (Label.POS, Label.NEU) for label in trace.labels],
        }
        part |= {mode: validity >= threshold for mode, validity in scores.items()}
        parts.append(pd.DataFrame(part | {f"{mode}_score": validity for mode, validity in scores.items()}))
    return pd.concat(parts, ignore_index=True)


def trace_row(judgment: Judgment, steps: pd.DataFrame) -> dict[str, Any]:
    """Return the row of a trace in the result. Steps are numbered from 1. `called wrong` holds the number of
    correct steps called wrong, online and offline."""
    trace, focus, correct = judgment.trace, steps[steps["in_focus"]], steps[steps["is_correct"]]
    places = {"step": trace.meta["focus"], "evidence": trace.meta["evidence"]}
    row: dict[str, Any] = {"id": trace.id, "kind": trace.meta["kind"]}
    row |= {name: None if place is None else place + 1 for name, place in places.items()}
    for mode in ("online", "offline"):
        row[mode] = [round(float(value), 3) for value in steps[f"{mode}_score"]]
    row["called wrong"] = [int((~correct[mode]).sum()) for mode in ("online", "offline")]
    crossed = {"crossed": bool((focus["online"] & ~focus["offline"]).all())}
    return row | (crossed if row["kind"] == EXPOSED else {})


def share_of(traces: pd.Series, hits: pd.Series, drawn: pd.Series | None = None) -> dict[str, Any]:
    """Return the number of hits, of how many, and the share with its interval over the traces of the hits or, if
    they are given, over those that are `drawn`."""
    numbers = np.unique(traces if drawn is None else drawn)
    place = np.searchsorted(numbers, traces)
    value = mean(hits.to_numpy(np.bool_), place, resamples(len(numbers)), "there is none")
    return {"count": int(hits.sum()), "of": len(hits), "share": _round(value) if value.exists else None}


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
