"""Measuring an evaluator on synthetic traces that it was not trained on.

    python -m stepsight.training.evaluate.held_out mini-bidir

This prints a JSON object with figures for several sets of traces: generated with a new seed, from families never
trained on, and with larger numbers. Two more sets split the first one into traces with and without a later step
that exposes or clears the decisive step. The figures are macro-F1 and AUC of step validity (ReasonEval's protocol),
online, offline and as their difference, each as [value, low, high] with a 95 % bootstrap interval over traces. The
object also says how often steps of correct traces are called wrong when the trace is cut after them, and when the
rest is visible.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from stepsight.core.errors import UserError
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.metrics.binary import auc, macro_f1
from stepsight.core.metrics.bootstrap import resamples
from stepsight.core.metrics.reasoneval import Errors, Level, items
from stepsight.core.metrics.table import Items, build_table
from stepsight.core.models.evaluator_base import Evaluator
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from stepsight.training.synth.corpus import HELD_OUT, generate

SEED = 20_000
SIZE = 1000

_DRAWS = 1000
_Rows = dict[str, NDArray[np.float64]]

_SETS: dict[str, Callable[[int, int], Iterator[Trace]]] = {
    "fresh seed": lambda seed, size: generate(seed, size),
    "families never trained on": lambda seed, size: generate(seed + 1, size, HELD_OUT),
    "larger numbers": lambda seed, size: generate(seed + 2, size, larger=True),
}
_GROUPS: dict[str, Callable[[Trace], bool]] = {
    "later evidence": lambda trace: trace.meta["evidence"] is not None,
    "no later evidence": lambda trace: trace.meta["evidence"] is None,
}


def measure(evaluator: Evaluator, size: int = SIZE, seed: int = SEED) -> dict[str, Any]:
    """Return the figures listed in the module's docstring, with `size` traces per set.

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
    weights = resamples(len(judgments), _DRAWS)
    points: dict[str, _Rows] = {}
    for mode in (Mode.ONLINE, Mode.OFFLINE):
        step_items = _items(judgments, mode)
        points[mode.value] = {
            "step_f1": np.append(macro_f1(step_items).number, macro_f1.draws(step_items, weights)),
            "step_auc": np.append(auc(step_items).number, auc.draws(step_items, weights)),
        }
    online, offline = points["online"], points["offline"]
    points["offline - online"] = {name: offline[name] - online[name] for name in online}
    shown = {mode: {name: _interval(row) for name, row in rows.items()} for mode, rows in points.items()}
    return {"traces": len(judgments)} | shown


def _items(judgments: Sequence[Judgment], mode: Mode) -> Items:
    pairs = (
        (judgment.trace, judgment.online if mode == Mode.ONLINE else judgment.offline) for judgment in judgments
    )
    return items(build_table(pairs), Errors.INVALID, Level.STEP)


def endings(judgments: Sequence[Judgment], validity: float = 0.5) -> dict[str, Any]:
    """Return how often correct steps are called wrong at the end of a trace and, for comparison, before its rest.

    Only traces without an error count, and the last step of a trace does not. `cut` is the share of steps called
    wrong if the trace ends with them, `whole` is the share if the rest follows, and `cut - whole` is the
    difference. Each trace is weighted as if it were cut once, after a step chosen uniformly at random. `validity`
    is the threshold.
    """
    rates = []
    for judgment in judgments:
        triangle = judgment.hindsight
        if triangle is None or judgment.trace.first_error is not None or len(judgment.trace.steps) < 2:
            continue
        cut, whole = (scores.validity[:-1] < validity for scores in (triangle.online, triangle.offline))
        rates.append((cut.mean(), whole.mean()))
    table = np.array(rates) if rates else np.full((1, 2), np.nan)
    drawn = resamples(len(table), _DRAWS) @ table / len(table)
    cut_rate, whole_rate = (np.append(table[:, i].mean(), drawn[:, i]) for i in range(2))
    return {
        "traces": len(rates),
        "cut": _interval(cut_rate),
        "whole": _interval(whole_rate),
        "cut - whole": _interval(cut_rate - whole_rate),
    }


def _interval(row: NDArray[np.float64]) -> list[float | None]:
    """Return [value, low, high], where the first element of `row` is the value and the rest are its resamples."""
    if np.isnan(row[0]):
        return [None, None, None]
    low, high = np.nanpercentile(row[1:], [2.5, 97.5])
    return [round(float(value), 4) for value in (row[0], low, high)]


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure an evaluator on held-out synthetic traces.")
    parser.add_argument("evaluator", help="a shipped name or a folder")
    parser.add_argument("--size", type=int, default=SIZE, help="traces of each set (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=SEED, help="must not be one of training's")
    args = parser.parse_args()
    try:
        evaluator = load_evaluator(args.evaluator)
    except UserError as error:
        parser.error(str(error))
    print(json.dumps(measure(evaluator, args.size, args.seed), indent=1))


if __name__ == "__main__":
    main()
