"""Reproducing a published F1 on a part of ProcessBench, with the threshold chosen as the authors did.

According to ProcessBench (Zheng et al., 2024), section 4.1, the threshold of a reward model with numeric scores is
the one with the best F1 on GSM8K, which is then used for all parts. A threshold stated by the evaluator's authors
takes precedence. Importing this module loads PyTorch.
"""

import random
from contextlib import nullcontext
from tempfile import TemporaryDirectory

import numpy as np

from stepsight.core.errors import UserError
from stepsight.core.evaluators.loading import load_fetched
from stepsight.core.evaluators.opening import open_placement
from stepsight.core.hubs.hub_cache import find_fetched
from stepsight.core.hubs.public import BenchmarkPart, PublicEvaluator, find_public
from stepsight.core.judgment import Mode
from stepsight.core.metrics.bootstrap import Value
from stepsight.core.metrics.first_error import first_errors, process_bench_f1
from stepsight.core.metrics.table import StepTable
from stepsight.core.models.evaluator_base import Evaluator
from stepsight.core.models.placement import Placement
from stepsight.core.scoring.scorer import Scorer
from stepsight.storage.database.store import NotFoundError, Store, open_store
from stepsight.storage.judgments.columns import read_gold, read_table
from stepsight.storage.judgments.evaluators import register_loaded
from stepsight.storage.judgments.judgments import missing_traces, save_judgments
from stepsight.storage.traces.imports import import_file
from stepsight.storage.traces.queries import Dataset, find_dataset
from stepsight.training.evaluate.evaluation import weights_of
from stepsight.training.runs.progress import print_left_out, progress

# The largest number of thresholds to try: between neighbouring ones, F1 changes by less than its last digit.
_MOST = 2000


def verify(
    store: Store,
    repo: str,
    part: BenchmarkPart,
    place: Placement,
    path: str | None = None,
    threshold: float | None = None,
    limit: int | None = None,
) -> str:
    """Measure the fetched model `repo` on a part of ProcessBench, and return the figure beside the published one.

    The traces are those of the file `path`, or of the part's dataset in the store, and at most `limit` of them.
    Steps below the `threshold` are wrong; without one, that of the model's authors is used. Raises `UserError` if
    the model is not here, or has no threshold for this part.
    """
    fetched = find_fetched(repo)
    if fetched is None:
        raise UserError(f"{repo} has not been fetched.", f"Fetch it first: stepsight evaluators fetch {repo}")
    public = find_public(repo)
    threshold = _threshold(threshold, public, repo, part)
    place = open_placement(fetched, place)
    evaluator = load_fetched(fetched, place)
    with TemporaryDirectory() as folder, open_store(f"{folder}/file.db") if path else nullcontext(store) as used:
        if path:
            import_file(used, "processbench", path, part.dataset)
        dataset = _dataset(used, part)
        count = min(limit or dataset.traces, dataset.traces)
        table = _judge(used, dataset, evaluator, count)
    f1, threshold = measure_f1(table, threshold)
    judged = int(table.present.sum())
    published = public.processbench.of(part) if public and public.processbench else None
    verdict = {True: "agrees", False: "differs", None: "cannot be compared"}[agrees(f1, published)]
    beside = "nothing is published" if published is None else f"published {published:.1f}: {verdict}"
    ends = "" if np.isnan(f1.low) else f" [{100 * f1.low:.1f}, {100 * f1.high:.1f}]"
    measured = f"{judged:,} traces{'' if count == dataset.traces else ' of it'}"
    lines = [
        f"{evaluator.name} at {fetched.revision}, {place.dtype}",
        f"ProcessBench {part} ({measured}): F1 {100 * f1.number:.1f}{ends} at threshold {threshold:.4g}, {beside}",
    ]
    if public and public.processbench:
        lines.append(f"Published in: {public.processbench.source}")
    if judged < count:
        lines.append(f"{count - judged:,} of {count:,} traces are left out as too long.")
    return "\n".join(lines)


def _threshold(given: float | None, public: PublicEvaluator | None, repo: str, part: BenchmarkPart) -> float | None:
    """Return the threshold to verify with: the one given, or the one that the authors state.

    Returns None for GSM8K, because its verification chooses the threshold. Raises `UserError` if the threshold
    chosen there has to be given.
    """
    if given is not None:
        return given
    if public is not None and public.threshold is not None:
        return public.threshold
    if part == BenchmarkPart.GSM8K:
        return None
    raise UserError(
        f"{repo} has no threshold of its own; the one that is best on all of GSM8K is used for the other parts.",
        f"Verify that part first (stepsight evaluators verify {repo} --part {BenchmarkPart.GSM8K}), and give the"
        " threshold that it prints with --threshold.",
    )


def _dataset(store: Store, part: BenchmarkPart) -> Dataset:
    try:
        return find_dataset(store, part.dataset)
    except NotFoundError:
        raise UserError(
            f"the store has no dataset {part.dataset}.",
            "Fetch it on the Data page, or name ProcessBench's file with --input.",
        ) from None


def _judge(store: Store, dataset: Dataset, evaluator: Evaluator, wanted: int) -> StepTable:
    """Have an evaluator judge as many traces of a dataset as are wanted, drawn at random, and return their table.
    Traces that are too long are left out."""
    row, gold = register_loaded(store, evaluator), read_gold(store, dataset)
    inside = np.zeros(len(gold), np.bool_)
    inside[random.Random(0).sample(range(len(gold)), wanted)] = True
    chosen = set(gold.trace_ids[inside].tolist())
    missing = [t for t in missing_traces(store, dataset.id, row.id, Mode.OFFLINE) if t.trace_id in chosen]
    judgments = Scorer(evaluator).score(missing, Mode.OFFLINE, print_left_out)
    save_judgments(store, row.id, progress(judgments, len(missing), "traces"))
    table = read_table(store, gold, row.id, Mode.OFFLINE)
    return table.where(inside[table.trace])


def measure_f1(table: StepTable, threshold: float | None) -> tuple[Value, float]:
    """Return ProcessBench's F1 as a fraction with its interval over traces, and the threshold used.

    If `threshold` is None, the threshold with the best F1 is used. Raises `UserError` unless both traces with an
    error and traces without an error exist.
    """
    chosen = best_threshold(table) if threshold is None else threshold
    f1 = process_bench_f1(first_errors(table, chosen), weights_of(table.present))
    if not f1.exists:
        raise UserError(f"F1 cannot be computed: {f1.reason}.", "Verify with more traces.")
    return f1, chosen


def agrees(f1: Value, published: float | None) -> bool | None:
    """True if the published F1, in percent, is within the measured interval, with both rounded to one decimal. None
    if the published F1 or the interval is missing."""
    if published is None or np.isnan(f1.low):
        return None
    return round(100 * f1.low, 1) <= published <= round(100 * f1.high, 1)


def best_threshold(table: StepTable) -> float:
    """Return the threshold with the best F1, or the one nearest to 0.5 if several are equally good.

    Returns 0.5 if there are no scores.
    """
    scores = np.unique(table.validity[~np.isnan(table.validity)])
    if len(scores) > _MOST:
        scores = np.unique(np.quantile(scores, np.linspace(0, 1, _MOST)).astype(np.float32))
    # A step is wrong below the threshold, so all thresholds between two neighbouring scores are equivalent.
    between = (scores[:-1].astype(np.float64) + scores[1:]) / 2
    candidates = sorted({0.5, *between.tolist()}, key=lambda threshold: abs(threshold - 0.5))

    def f1(threshold: float) -> float:
        value = process_bench_f1(first_errors(table, threshold))
        return value.number if value.exists else -1.0

    return float(max(candidates, key=f1))
