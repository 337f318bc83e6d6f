"""What an evaluator reaches on synthetic traces it was not trained on.

python -m training.held_out mini-bidir

prints a JSON object: step AUC online and offline, over all traces, those in which a later step exposes or clears
the one that matters, and those in which none does; with 95 % bootstrap intervals over traces.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tqdm import tqdm

from core.errors import UserError
from core.evaluator import Evaluator
from core.judgment import Judgment, Mode
from core.loading import load_evaluator
from core.metrics import auc, step_validity
from core.scorer import Scorer
from core.trace import Trace
from training.synth.corpus import generate

SEED = 20_000
SIZE = 1000
_DRAWS = 200

_GROUPS: dict[str, Callable[[Trace], bool]] = {
    "all": lambda trace: True,
    "later evidence": lambda trace: trace.meta["evidence"] is not None,
    "no later evidence": lambda trace: trace.meta["evidence"] is None,
}


def measure(evaluator: Evaluator, size: int = SIZE, seed: int = SEED) -> dict[str, Any]:
    """Step AUC of validity per group and mode, and offline minus online, each as [value, low, high].

    `seed` must not be one that the evaluator was trained with. A group with one class only gives NaN.
    """
    judgments = list(tqdm(Scorer(evaluator).score(generate(seed, size), Mode.HINDSIGHT), total=size, disable=None))
    result: dict[str, Any] = {"traces": size, "seed": seed}
    for name, belongs in _GROUPS.items():
        chosen = [judgment for judgment in judgments if belongs(judgment.trace)]
        result[name] = {"traces": len(chosen)} | _intervals(chosen)
    return result


def _intervals(judgments: Sequence[Judgment]) -> dict[str, list[float]]:
    pairs = [_scored(judgment) for judgment in judgments]
    rng = np.random.default_rng(0)
    draws = [rng.integers(0, len(pairs), len(pairs)) for _ in range(_DRAWS)]
    values = np.array([_aucs([pairs[i] for i in draw]) for draw in [range(len(pairs)), *draws]])
    low, high = np.nanpercentile(values[1:], [2.5, 97.5], axis=0)
    names = ("online", "offline", "offline - online")
    return {name: [round(float(v[i]), 4) for v in (values[0], low, high)] for i, name in enumerate(names)}


def _scored(judgment: Judgment) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Online scores, offline scores and gold of the steps that have one."""
    assert judgment.online is not None
    assert judgment.offline is not None
    online, gold = step_validity([(judgment.trace, judgment.online)])
    offline, _ = step_validity([(judgment.trace, judgment.offline)])
    return online, offline, gold


def _aucs(pairs: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> tuple[float, float, float]:
    online, offline, gold = (np.concatenate(column) for column in zip(*pairs, strict=True))
    before, after = auc(online, gold), auc(offline, gold)
    return before, after, after - before


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Measure an evaluator on held-out synthetic traces.")
    parser.add_argument("evaluator", help="a shipped name or a folder")
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument("--seed", type=int, default=SEED)
    args = parser.parse_args()
    try:
        evaluator = load_evaluator(args.evaluator)
    except UserError as error:
        parser.error(str(error))
    print(json.dumps(measure(evaluator, args.size, args.seed), indent=1))


if __name__ == "__main__":
    main()
