"""Reproducing a published F1 on a part of ProcessBench, with the threshold chosen as the authors did.

According to ProcessBench (Zheng et al., 2024), section 4.1, the threshold of a reward model with numeric scores is
the one with the best F1 on GSM8K, which is then used for all parts. A threshold stated by the evaluator's authors
takes precedence. Importing this module loads PyTorch.
"""

import random
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from stepsight.core.errors import UserError
from stepsight.core.evaluators.loading import load_fetched
from stepsight.core.evaluators.opening import open_placement
from stepsight.core.files.jsonl import open_input
from stepsight.core.hubs.hub_cache import find_fetched
from stepsight.core.hubs.public import BenchmarkPart, PublicEvaluator, find_public
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.metrics.bootstrap import Value, resamples
from stepsight.core.metrics.first_error import first_errors, process_bench_f1
from stepsight.core.metrics.table import StepTable, build_table
from stepsight.core.models.placement import Placement
from stepsight.core.scores import StepScores
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from stepsight.storage.database.store import NotFoundError, Store
from stepsight.storage.importers import find_kind, read_traces
from stepsight.storage.judgments.evaluators import register_loaded
from stepsight.storage.judgments.judgments import read_many, save_judgments, standing
from stepsight.storage.traces.queries import StoredTrace, find_dataset, iterate_traces
from stepsight.training.runs.progress import print_left_out, progress

# The most thresholds to try: between neighbouring ones F1 changes by less than its last digit.
_MOST = 2000
# The number of traces whose judgments are read in one query.
_TOGETHER = 200


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
    Steps below the `threshold` are wrong; without one, that of the model's authors holds. Raises `UserError` if the
    model is not here, or has no threshold for this part.
    """
    fetched = find_fetched(repo)
    if fetched is None:
        raise UserError(f"{repo} is not here.", f"Fetch it first: stepsight evaluators fetch {repo}")
    public = find_public(repo)
    threshold = _threshold(threshold, public, repo, part)
    place = open_placement(fetched, place)
    traces = list(_traces(store, part, path))
    is_whole = limit is None or limit >= len(traces)
    if limit is not None and not is_whole:
        traces = random.Random(0).sample(traces, limit)
    evaluator = load_fetched(fetched, place)
    judged = _judge(store, Scorer(evaluator), traces)
    f1, used = measure_f1(judged, threshold)
    published = public.processbench.of(part) if public and public.processbench else None
    verdict = {True: "agrees", False: "differs", None: "cannot be compared"}[agrees(f1, published)]
    beside = "nothing is published" if published is None else f"published {published:.1f}: {verdict}"
    ends = "" if np.isnan(f1.low) else f" ({100 * f1.low:.1f} to {100 * f1.high:.1f})"
    measured = f"{len(judged):,} traces{'' if is_whole else ' of it'}"
    lines = [
        f"{evaluator.name} at {fetched.revision}, {place.dtype}",
        f"ProcessBench {part} ({measured}): F1 {100 * f1.number:.1f}{ends} at threshold {used:.4g}, {beside}",
    ]
    if public and public.processbench:
        lines.append(f"Published in: {public.processbench.source}")
    if len(judged) < len(traces):
        lines.append(f"{len(traces) - len(judged):,} of {len(traces):,} traces are left out as too long.")
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
        f"{repo} has no threshold of its own: what is best on all of GSM8K holds for the other parts.",
        f"Verify that part first (stepsight evaluators verify {repo} --part {BenchmarkPart.GSM8K}), and give the"
        " threshold that it prints with --threshold.",
    )


def _traces(store: Store, part: BenchmarkPart, path: str | None) -> Iterable[Trace]:
    if path is not None:
        with open_input(path) as file:
            return [trace for _, trace in read_traces(find_kind("processbench"), file, path)]
    try:
        dataset = find_dataset(store, part.dataset)
    except NotFoundError:
        raise UserError(
            f"the store has no dataset {part.dataset}.",
            "Fetch it on the Data page, or name ProcessBench's file with --input.",
        ) from None
    return iterate_traces(store, dataset.id)


def _judge(store: Store, scorer: Scorer, traces: Sequence[Trace]) -> list[tuple[Trace, StepScores]]:
    """Return the traces with their offline scores. Traces that are too long are left out. Stored judgments are
    reused. New ones are stored if all traces come from the store."""
    row = register_loaded(store, scorer.evaluator)
    stored = [trace for trace in traces if isinstance(trace, StoredTrace)]
    stored_scores: dict[int, StepScores] = {}
    for start in range(0, len(stored), _TOGETHER):
        part = stored[start : start + _TOGETHER]
        for trace, some in zip(part, read_many(store, part, row.id), strict=True):
            judgment = standing(some, Mode.OFFLINE)
            if judgment is not None and judgment.offline is not None:
                stored_scores[trace.trace_id] = judgment.offline
    missing = [
        trace for trace in traces if not (isinstance(trace, StoredTrace) and trace.trace_id in stored_scores)
    ]
    judged: list[tuple[Trace, StepScores]] = [
        (trace, stored_scores[trace.trace_id]) for trace in stored if trace.trace_id in stored_scores
    ]

    def noted(judgments: Iterable[Judgment]) -> Iterator[Judgment]:
        for judgment in progress(judgments, len(missing), "traces"):
            assert judgment.offline is not None
            judged.append((judgment.trace, judgment.offline))
            yield judgment

    scored = noted(scorer.score(missing, Mode.OFFLINE, print_left_out))
    if len(stored) == len(traces):
        save_judgments(store, row.id, scored)
    else:
        for _ in scored:
            pass
    return judged


def measure_f1(judged: Iterable[tuple[Trace, StepScores]], threshold: float | None) -> tuple[Value, float]:
    """Return ProcessBench's F1 as a fraction with its interval over traces, and the threshold used.

    If `threshold` is None, the threshold with the best F1 is used. Raises `UserError` unless both traces with an
    error and traces without an error exist.
    """
    table = build_table(judged)
    chosen = best_threshold(table) if threshold is None else threshold
    errors = first_errors(table, chosen)
    f1 = process_bench_f1(errors, resamples(table.traces))
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
