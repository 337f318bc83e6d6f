"""Reproducing the published figure of a model, for `stepsight evaluators verify`."""

import argparse
import random
from collections.abc import Iterable, Iterator, Sequence
from math import isnan

from stepsight.app.options.shared import print_left_out, progress, read_placement
from stepsight.core.errors import UserError
from stepsight.core.evaluators.loading import load_fetched
from stepsight.core.evaluators.opening import open_placement
from stepsight.core.files.jsonl import open_input
from stepsight.core.hubs.hub_cache import find_fetched
from stepsight.core.hubs.public import BenchmarkPart, PublicEvaluator, find_public
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import StepScores
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from stepsight.storage.database.store import NotFoundError, Store
from stepsight.storage.importers import find_kind, read_traces
from stepsight.storage.judgments.evaluators import register_loaded
from stepsight.storage.judgments.judgments import read_many, save_judgments, standing
from stepsight.storage.traces.queries import StoredTrace, find_dataset, iterate_traces
from stepsight.training.evaluate.verification import agrees, measure_f1

# The number of traces whose judgments are read in one query.
_TOGETHER = 200


def verify(store: Store, args: argparse.Namespace) -> None:
    """Measure a fetched model on a part of ProcessBench, and print the result beside the published figure."""
    if args.limit is not None and args.limit < 1:
        raise UserError(f"--limit is {args.limit}, expected more than 0.")
    part, place = BenchmarkPart(args.part), read_placement(args)
    fetched = find_fetched(args.repo)
    if fetched is None:
        raise UserError(f"{args.repo} is not here.", f"Fetch it first: stepsight evaluators fetch {args.repo}")
    public = find_public(args.repo)
    threshold = _threshold(args.threshold, public, args.repo, part)
    place = open_placement(fetched, place)
    traces = list(_traces(store, part, args.input))
    whole = args.limit is None or args.limit >= len(traces)
    if not whole:
        traces = random.Random(0).sample(traces, args.limit)
    evaluator = load_fetched(fetched, place)
    judged = _judge(store, Scorer(evaluator), traces)
    f1, at = measure_f1(judged, threshold)
    published = public.processbench.of(part) if public and public.processbench else None
    verdict = {True: "agrees", False: "differs", None: "cannot be compared"}[agrees(f1, published)]
    beside = "nothing is published" if published is None else f"published {published:.1f}: {verdict}"
    ends = "" if isnan(f1.low) else f" ({100 * f1.low:.1f} to {100 * f1.high:.1f})"
    print(f"{evaluator.name} at {fetched.revision}, {place.dtype}")
    of = f"{len(judged):,} traces{'' if whole else ' of it'}"
    print(f"ProcessBench {part.value} ({of}): F1 {100 * f1.number:.1f}{ends} at threshold {at:.4g}, {beside}")
    if public and public.processbench:
        print(f"Published in: {public.processbench.source}")
    if len(judged) < len(traces):
        print(f"{len(traces) - len(judged):,} of {len(traces):,} traces are left out as too long.")


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
    known: dict[int, StepScores] = {}
    for start in range(0, len(stored), _TOGETHER):
        part = stored[start : start + _TOGETHER]
        for trace, some in zip(part, read_many(store, part, row.id), strict=True):
            one = standing(some, Mode.OFFLINE)
            if one is not None and one.offline is not None:
                known[trace.trace_id] = one.offline
    missing = [one for one in traces if not (isinstance(one, StoredTrace) and one.trace_id in known)]
    judged: list[tuple[Trace, StepScores]] = [(one, known[one.trace_id]) for one in stored if one.trace_id in known]

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
