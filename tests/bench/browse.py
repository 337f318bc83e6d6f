"""How long Browse takes to filter, count, sort and page, and whether that grows with the dataset.

    python -m tests.bench browse

Stores are generated on disk, judged by five evaluators in hindsight mode. What is timed is
`storage.browse.browse.browse` with all counts, for random combinations of conditions, orders and pages. Every
fourth has a text that was searched for before, as with somebody who looks around while a search is set. What is
paid once is told apart: reading the columns of an evaluator after a change, and searching for a new text.
"""

import random
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from stepsight.core.trace import Label
from stepsight.storage.browse.browse import browse
from stepsight.storage.browse.filters import By, Sort, TraceFilter
from stepsight.storage.database.store import open_store
from stepsight.storage.judgments.evaluators import list_evaluators
from stepsight.storage.traces.queries import find_dataset
from tests.bench.figures import Figure
from tests.bench.large import DATASET, build_store

SIZES = (1_000, 100_000)
COMBINATIONS = 400
TEXTS = (
    "total",
    "3/4",
    "\\frac",
    "x^2",
    "so the",
    "= 12",
    "check",
    "apples",
    "Variant 7",
    "per hour",
    "equation",
    "ea",
)
FIELDS: dict[str, tuple[Any, ...]] = {
    "gold": ("error", "clean", "missing"),
    "error_at": ("early", "middle", "late"),
    "verdict": ("valid", "invalid", "redundant", "unjudged"),
    "mistake": ("missed", "false-alarm", "wrong-step", "right"),
    "modes": ("agree", "disagree"),
    "change": (0.1, 0.25, 0.3, 0.5),
    "cell": tuple(f"{gold.text}-{called.text}" for gold in Label for called in Label),
}
ORDERS: tuple[By, ...] = ("position", "validity", "redundancy", "change", "steps", "error")


Call = tuple[TraceFilter, Sort, int]


def figures():
    """Measure every size; the sizes take turns, so that whatever else the machine does meets all of them."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        stores = {}
        for size in SIZES:
            path, start = Path(name) / f"{size}.db", time.perf_counter()
            build_store(path, size)
            print(f"{size:>9,}  built in {time.perf_counter() - start:.0f} s, {path.stat().st_size / 1e6:,.0f} MB")
            stores[size] = stack.enter_context(open_store(str(path)))
        p95 = measure(stores)
    small, large = SIZES
    what = f"Browse of {large:,} traces and five evaluators, any filter with all counts, p95"
    yield Figure(what, 1000 * p95[large], "ms", 15)
    yield Figure(f"the same, against {small:,} traces", p95[large] / p95[small], "x", 3)


def measure(stores):
    """Print what stores of so many traces take; returns p95 of the combinations in seconds, by size."""
    dataset_ids = {size: find_dataset(store, DATASET).id for size, store in stores.items()}
    evaluators = [row.id for row in list_evaluators(next(iter(stores.values())))]

    def show(size: int, where: TraceFilter, sort: Sort, offset: int) -> None:
        browse(stores[size], dataset_ids[size], where, sort, limit=50, offset=offset)

    print(f"{'traces':>9}  {'':36}{'p50 ms':>9}{'p95 ms':>9}{'max ms':>9}")
    first = [(TraceFilter(evaluator=id), Sort(), 0) for id in evaluators]
    _report(stores, "an evaluator's columns read anew", show, first)
    new = [(TraceFilter(text=text), Sort(), 0) for text in TEXTS]
    _report(stores, "a text searched for the first time", show, new)
    return _report(stores, "any combination, with all counts", show, list(_combinations(evaluators, COMBINATIONS)))


def _report(sizes, what, timed, calls):
    seconds: dict[int, list[float]] = {size: [] for size in sizes}
    for call in calls:
        for size, times in seconds.items():
            start = time.perf_counter()
            timed(size, *call)
            times.append(time.perf_counter() - start)
    for size, times in seconds.items():
        p50, p95, most = (float(value) * 1e3 for value in np.percentile(times, [50, 95, 100]))
        print(f"{size:>9,}  {what:36}{p50:>9.1f}{p95:>9.1f}{most:>9.1f}", flush=True)
    return {size: float(np.percentile(times, 95)) for size, times in seconds.items()}


def _combinations(evaluators, count):
    rng = random.Random(0)
    for _ in range(count):
        chosen = {name: rng.choice(FIELDS[name]) for name in rng.sample(list(FIELDS), rng.randint(0, 4))}
        evaluator, other = rng.sample(evaluators, 2)
        if rng.random() < 0.2:
            chosen["against"] = other
        if rng.random() < 0.25:
            chosen["text"] = rng.choice(TEXTS)
        where = TraceFilter(evaluator=evaluator, mode=rng.choice(("online", "offline")), **chosen)
        yield where, Sort(rng.choice(ORDERS), rng.random() < 0.5), rng.choice((0, 0, 50, 500))
