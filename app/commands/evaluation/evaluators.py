"""List evaluators, fetch public ones, verify their published figures, and merge adapters.

stepsight evaluators
stepsight evaluators fetch Qwen/Qwen2.5-Math-PRM-7B
stepsight evaluators verify Qwen/Qwen2.5-Math-PRM-7B --part gsm8k
stepsight evaluators merge runs/qwen-7b-lora --output runs/qwen-7b --dtype bfloat16
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepsight.app.options.shared import add_db, add_placement, fraction, is_placed, read_placement
from stepsight.core.errors import UserError
from stepsight.core.evaluators.opening import describe_fetched
from stepsight.core.hubs.hub_cache import NEWEST, keep_card, list_fetched, read_card_file
from stepsight.core.hubs.hub_download import fetch, terminal_bar
from stepsight.core.hubs.hub_lookup import Remote, look_up
from stepsight.core.hubs.public import BenchmarkPart, PublicEvaluator, find_public
from stepsight.core.models.location import EQUATIONS, shipped_evaluators
from stepsight.core.models.memory import check_memory, needed_memory
from stepsight.core.models.placement import DTYPES, Placement, expected_dtype
from stepsight.core.paths import format_bytes
from stepsight.storage.database.store import open_store

if TYPE_CHECKING:
    from stepsight.app.evaluators.model_list import FetchableModel

_COLUMNS = ("id", "size", "judges", "ProcessBench", "PRMScore", "state", "memory")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_db(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    one = actions.add_parser("fetch", help="fetch one from the model hub, or resume fetching it")
    one.add_argument("repo", metavar="OWNER/NAME")
    one.add_argument("--revision", default=NEWEST, help="a commit, a branch or a tag (default: %(default)s)")
    one.add_argument(
        "--card", metavar="FILE", help="a stepsight.json for a model that has none, which says how it is read"
    )
    add_placement(one)
    one = actions.add_parser("verify", help="measure a published figure of a fetched one again")
    one.add_argument("repo", metavar="OWNER/NAME")
    one.add_argument("--part", choices=[part.value for part in BenchmarkPart], default=BenchmarkPart.GSM8K.value,
                     help="of ProcessBench (default: %(default)s)")  # fmt: skip
    one.add_argument("--input", metavar="FILE", help="the part's file (default: its dataset in the store)")
    one.add_argument("--threshold", type=fraction, metavar="T", help="wrong if s_val < T (default: its authors')")
    one.add_argument("--limit", type=int, metavar="N", help="only N of its traces, drawn at random")
    add_placement(one)
    one = actions.add_parser("merge", help="write an adapter and its base as one evaluator")
    one.add_argument("adapter", metavar="ADAPTER", help="the adapter's folder, or OWNER/NAME")
    one.add_argument("--output", metavar="FOLDER", required=True, help="a new or empty folder")
    one.add_argument("--dtype", choices=DTYPES, default=DTYPES[0], help="of the weights (default: %(default)s)")
    # --db may stand before or after the action; a default here would override a value before it.
    for action in actions.choices.values():
        action.add_argument("--db", metavar="URL", default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> None:
    """List, fetch, verify or merge evaluators."""
    if args.action == "fetch":
        card = read_card_file(Path(args.card)) if args.card else {}
        _fetch(args.repo, args.revision, read_placement(args) if is_placed(args) else Placement(), card)
        return
    if args.action == "merge":
        from stepsight.core.evaluators.merging import write_merged

        print(write_merged(args.adapter, Path(args.output), args.dtype))
        return
    if args.action == "verify":
        # It imports PyTorch.
        from stepsight.app.commands.evaluation.verifying import verify

        with open_store(args.db) as store:
            verify(store, args)
        return
    _list()


def _fetch(repo: str, revision: str, place: Placement, card: Mapping[str, Any]) -> None:
    """Fetch a model and everything it needs, with a progress bar, then load it as a check. If this machine has too
    little memory for the model, it is fetched but not loaded. A `card` is kept with it as its stepsight.json."""
    remote = look_up(repo, revision, card=card)
    lacking = _lacking(remote, find_public(repo), place)
    if lacking is not None:
        print(f"{lacking.message} It is fetched for another machine, and not loaded here.", file=sys.stderr)
    with terminal_bar(remote) as show:
        fetched = fetch(remote, show)
    if card:
        fetched = keep_card(fetched, card)
    if lacking is None:
        one = describe_fetched(fetched, place)
        told = f"{one.name}: {one.format} format, {one.attention}, inputs of up to {one.context:,} tokens."
        print(told, file=sys.stderr)
    print(fetched.folder)


def _lacking(remote: Remote, public: PublicEvaluator | None, place: Placement) -> UserError | None:
    """Return the error if this machine has too little memory for a model, or None if it has enough."""
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


def _list() -> None:
    """Print the evaluators on this machine, then the public evaluators that can be fetched."""
    from stepsight.app.evaluators.model_list import offers

    here = {one.repo: one for one in list_fetched()}
    print(f"Shipped: {', '.join([*shipped_evaluators(), EQUATIONS])}")
    for fetched in here.values():
        print(f"Fetched: {fetched.repo} at {fetched.revision[:12]}, {format_bytes(fetched.size)}")
    rows: list[Sequence[str]] = [_COLUMNS]
    notes = []
    for offer in offers(Placement(), here):
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
