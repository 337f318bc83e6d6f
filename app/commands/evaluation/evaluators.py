"""Evaluators that are here, public ones to fetch from the model hub, whether their published figures hold here, and
adapters as evaluators of their own.

stepsight evaluators
stepsight evaluators fetch Qwen/Qwen2.5-Math-PRM-7B
stepsight evaluators verify Qwen/Qwen2.5-Math-PRM-7B --part gsm8k
stepsight evaluators merge runs/qwen-7b-lora --output runs/qwen-7b --dtype bfloat16
"""

import argparse
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

from stepsight.app.commands.options import add_db, progress
from stepsight.app.scoring.placement_options import add_placement, is_placed, read_placement
from stepsight.core.errors import UserError
from stepsight.core.files.jsonl import open_input
from stepsight.core.hubs.hub_cache import NEWEST, Fetched, find_fetched, list_fetched
from stepsight.core.hubs.hub_download import fetch, terminal_bar
from stepsight.core.hubs.hub_lookup import Remote, look_up
from stepsight.core.hubs.public import BenchmarkPart, PublicEvaluator, find_public
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.models.location import EQUATIONS, shipped_evaluators
from stepsight.core.models.memory import check_memory, memory_of, needed_memory
from stepsight.core.models.placement import DTYPES, Placement, expected_dtype
from stepsight.core.paths import format_bytes
from stepsight.core.scores import StepScores
from stepsight.core.trace import Trace
from stepsight.storage.database.store import NotFoundError, Store, open_store
from stepsight.storage.importers import find_kind, read_traces
from stepsight.storage.judgments.evaluators import register_loaded
from stepsight.storage.judgments.judgments import read_many, save_judgments, standing
from stepsight.storage.judgments.verifications import Verification, list_verifications, save_verification
from stepsight.storage.traces.queries import StoredTrace, find_dataset, iterate_traces

if TYPE_CHECKING:
    from stepsight.app.evaluators.shelf import FetchableModel

# Traces whose judgments are read in one query.
_TOGETHER = 200
_COLUMNS = ("id", "size", "judges", "ProcessBench", "PRMScore", "state", "memory")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_db(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    one = actions.add_parser("fetch", help="fetch one from the model hub, or go on with it")
    one.add_argument("repo", metavar="OWNER/NAME")
    one.add_argument("--revision", default=NEWEST, help="a commit, a branch or a tag (default: %(default)s)")
    add_placement(one)
    one = actions.add_parser("verify", help="measure a published figure again, with one that was fetched")
    one.add_argument("repo", metavar="OWNER/NAME")
    one.add_argument("--part", choices=[part.value for part in BenchmarkPart], default=BenchmarkPart.GSM8K.value,
                     help="of ProcessBench (default: %(default)s)")  # fmt: skip
    one.add_argument("--input", metavar="FILE", help="the part's file; without, its dataset in the store")
    one.add_argument("--limit", type=int, metavar="N", help="so many of its traces, drawn at random")
    add_placement(one)
    one = actions.add_parser("merge", help="write an adapter that was trained here and its base as one evaluator")
    one.add_argument("adapter", metavar="ADAPTER", help="the adapter's folder, or OWNER/NAME")
    one.add_argument("--output", metavar="FOLDER", required=True, help="a folder that is not there, or empty")
    one.add_argument("--dtype", choices=DTYPES, default=DTYPES[0], help="of the weights (default: %(default)s)")
    # Before or after the action; a default of its own would undo the one before.
    for action in actions.choices.values():
        action.add_argument("--db", metavar="URL", default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> None:
    """List, fetch, verify or merge."""
    if args.action == "fetch":
        _fetch(args.repo, args.revision, read_placement(args) if is_placed(args) else Placement())
        return
    if args.action == "merge":
        from stepsight.core.evaluators.merging import write_merged

        print(write_merged(args.adapter, Path(args.output), args.dtype))
        return
    with open_store(args.db) as store:
        if args.action == "verify":
            _verify(store, args)
        else:
            _list(store)


def _fetch(repo: str, revision: str, place: Placement) -> None:
    """Fetch a model and all that it needs under a bar, and load it once."""
    remote = look_up(repo, revision)
    lacking = _lacking(remote, find_public(repo), place)
    if lacking is not None:
        print(f"{lacking.message} It is fetched for another machine, and not loaded here.", file=sys.stderr)
    with terminal_bar(remote) as show:
        fetched = fetch(remote, show)
    if lacking is None:
        # Loading takes PyTorch, which no other line of this does.
        from stepsight.core.evaluators.loading import describe_fetched

        one = describe_fetched(fetched, place)
        told = f"{one.name}: {one.format} format, {one.attention}, inputs of up to {one.context:,} tokens."
        print(told, file=sys.stderr)
    print(fetched.folder)


def _lacking(remote: Remote, public: PublicEvaluator | None, place: Placement) -> UserError | None:
    """The reason why this machine cannot hold it, None if it may."""
    if not place.on_processor:
        return None
    parameters = public.all_parameters if public else remote.parameters
    try:
        check_memory(
            remote.repo,
            needed_memory(parameters, expected_dtype(public.stored if public else "", place)),
            whole=True,
        )
    except UserError as error:
        return error
    return None


def _list(store: Store) -> None:
    """Print the evaluators here, then the public ones."""
    from stepsight.app.evaluators.shelf import offers

    verified = list_verifications(store)
    here = {one.repo: one for one in list_fetched()}
    print(f"Shipped: {', '.join([*shipped_evaluators(), EQUATIONS])}")
    for fetched in here.values():
        print(f"Fetched: {fetched.repo} at {fetched.revision[:12]}, {format_bytes(fetched.size)}")
    for one in verified:
        print(f"Verified: {one.repo} at {one.revision[:12]}: {_told(one)}")
    rows: list[Sequence[str]] = [_COLUMNS]
    notes = []
    for offer in offers(Placement(), {}, here):
        public = offer.public
        bench, score = public.processbench, public.prmbench
        figures = (bench.average if bench else None, score.score if score else None)
        shown = ["–" if figure is None else f"{figure:.1f}" for figure in figures]
        size, memory = f"{public.parameters / 1e9:g}B", format_bytes(offer.memory)
        rows.append((public.id, size, public.judges, *shown, _state(offer), memory))
        if offer.unreadable:
            notes.append(f"{public.id}: {offer.unreadable}")
    widths = [max(len(row[i]) for row in rows) for i in range(len(_COLUMNS))]
    print()
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    if notes:
        print("\n" + "\n".join(notes))


def _state(offer: "FetchableModel") -> str:
    if offer.is_here:
        return "here"
    return "cannot be read" if offer.unreadable else "does not fit" if offer.unfit else "can be fetched"


def _verify(store: Store, args: argparse.Namespace) -> None:
    """Score the traces, print the published figure beside ours, and store the result."""
    if args.limit is not None and args.limit < 1:
        raise UserError(f"--limit is {args.limit}, expected more than 0.")
    part, place = BenchmarkPart(args.part), read_placement(args)
    fetched = find_fetched(args.repo)
    if fetched is None:
        raise UserError(f"{args.repo} is not here.", f"Fetch it first: stepsight evaluators fetch {args.repo}")
    public = find_public(args.repo)
    # They bring PyTorch and scikit-learn.
    from stepsight.core.models.checkpoint_resolver import resolve_placement
    from stepsight.training.evaluate.verification import measure_f1

    place = resolve_placement(place, fetched.folder)
    threshold = _threshold(store, fetched, public, part, place.dtype)
    traces = list(_traces(store, part, args.input))
    whole = args.limit is None or args.limit >= len(traces)
    if not whole:
        traces = random.Random(0).sample(traces, args.limit)
    judged, name, fingerprint = _judge(store, fetched, place, traces)
    f1, at = measure_f1(judged, threshold)
    published = public.processbench.of(part) if public and public.processbench else None
    low, high = (None if isnan(end) else 100 * end for end in (f1.low, f1.high))
    done = Verification(fetched.repo, fetched.revision, fingerprint, place.dtype, part.value, len(judged), whole,
                        at, 100 * f1.number, low, high, published)  # fmt: skip
    save_verification(store, done)
    print(f"{name} at {fetched.revision}, {place.dtype}")
    print(_told(done))
    if public and public.processbench:
        print(f"Published in: {public.processbench.source}")
    if len(judged) < len(traces):
        print(f"{len(traces) - len(judged):,} of {len(traces):,} traces are left out as too long.")


def _threshold(
    store: Store, fetched: Fetched, public: PublicEvaluator | None, part: BenchmarkPart, dtype: str
) -> float | None:
    """The authors' own threshold, or GSM8K's; None if it is to be chosen now. Raises `UserError` if GSM8K has to
    come first."""
    if public is not None and public.threshold is not None:
        return public.threshold
    if part == BenchmarkPart.GSM8K:
        return None
    known = fetched.descriptions.get(dtype)
    for one in list_verifications(store, [fetched.repo]):
        same = (one.revision, one.dtype, one.part) == (fetched.revision, dtype, BenchmarkPart.GSM8K.value)
        # What another version of StepSight read in another way has another fingerprint.
        same = same and (known is None or known.fingerprint == one.fingerprint)
        if same and one.whole:
            return one.threshold
    raise UserError(
        f"{fetched.repo} has no threshold of its own: what is best on all of GSM8K holds for the other parts.",
        f"Verify that part first: stepsight evaluators verify {fetched.repo} --part {BenchmarkPart.GSM8K}",
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


def _judge(
    store: Store, fetched: Fetched, place: Placement, traces: Sequence[Trace]
) -> tuple[list[tuple[Trace, StepScores]], str, str]:
    """The offline scores of each trace that is not too long, with the evaluator's name and fingerprint. Judgments
    in the store are reused, and new ones of its traces stored."""
    from stepsight.core.evaluators.loading import load_evaluator
    from stepsight.core.scoring.scorer import Scorer

    if place.on_processor:
        check_memory(fetched.repo, memory_of(fetched, place.dtype))
    evaluator = load_evaluator(fetched.folder, place.device, place.dtype, place.device_map)
    row = register_loaded(store, evaluator)
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

    scored = noted(Scorer(evaluator).score(missing, Mode.OFFLINE, _leave_out))
    if len(stored) == len(traces):
        save_judgments(store, row.id, scored)
    else:
        for _ in scored:
            pass
    return judged, evaluator.name, evaluator.fingerprint


def _leave_out(trace: Trace, error: UserError) -> None:
    """Traces beyond the evaluator's context are left out, and counted at the end."""
    print(f"left out: {error.message}", file=sys.stderr)


def _told(one: Verification) -> str:
    """A line such as `ProcessBench gsm8k (400 traces): F1 61.2 (57.9 to 64.1) at threshold 0.5, published 59:
    differs`."""
    ends = "" if one.low is None or one.high is None else f" ({one.low:.1f} to {one.high:.1f})"
    verdict = {True: "agrees", False: "differs", None: "cannot be compared"}[one.agrees]
    beside = "nothing is published" if one.published is None else f"published {one.published:.1f}: {verdict}"
    count = f"{one.traces:,} traces{'' if one.whole else ' of it'}"
    return f"ProcessBench {one.part} ({count}): F1 {one.f1:.1f}{ends} at threshold {one.threshold:.4g}, {beside}"
