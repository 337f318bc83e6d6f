"""Write traces, judgments, outcomes, scores without a step, or labels to a file.

stepsight export labels my-campaign labels.jsonl --format prm800k
stepsight export judgments mr-math-invalid judgments.csv --format csv --gold error
stepsight export outcomes mr-math-invalid outcomes.csv --format csv --mode online
stepsight export left-out strict-prmbench left-out.parquet --format parquet
stepsight export traces mr-math-invalid errors.jsonl --gold error
"""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd

from stepsight.app.commands.labelling.conditions import add_conditions, read_conditions
from stepsight.app.options.shared import add_db
from stepsight.core.files.atomic import atomic_file
from stepsight.storage.browse.browse import list_matching
from stepsight.storage.browse.outcomes import outcome_table
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.exports.frames import judgment_frames, named_evaluators
from stepsight.storage.exports.judgment_folders import NAME as FOLDER
from stepsight.storage.exports.judgment_folders import write_judgments
from stepsight.storage.exports.left_out_frames import left_out_frames
from stepsight.storage.exports.table_files import (
    TABLE_FORMATS,
    TRACE_FORMATS,
    frame_parts,
    table_parts,
    trace_lines,
)
from stepsight.storage.judgments.evaluators import with_distinct_names
from stepsight.storage.labelling.files.export_labels import FORMAT_NAMES, export_labels
from stepsight.storage.traces.queries import find_dataset

_FORMAT = f"the format of the file; {FOLDER}: a folder with a card, for datasets.load_dataset"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    whats = parser.add_subparsers(dest="what", required=True, metavar="WHAT")
    labels = whats.add_parser("labels", help="the labels of a campaign", description=_LABELS)
    labels.add_argument("campaign", metavar="CAMPAIGN", help="a campaign of the store")
    labels.add_argument("path", metavar="FILE", help="the file to write")
    labels.add_argument("--format", required=True, choices=FORMAT_NAMES, help="the format of the file")
    labels.add_argument(
        "--per-annotator", action="store_true", help="the labels of each annotator instead of the consensus"
    )
    judgments = whats.add_parser("judgments", help="the judgments of a dataset", description=_JUDGMENTS)
    traces = whats.add_parser("traces", help="the traces of a dataset, with their gold", description=_TRACES)
    left_out = whats.add_parser("left-out", help="the scores of a dataset without a step", description=_LEFT_OUT)
    outcomes = whats.add_parser("outcomes", help="the outcomes of a dataset", description=_OUTCOMES)
    for one in (judgments, outcomes, left_out, traces):
        one.add_argument("dataset", metavar="DATASET", help="a dataset of the store")
        one.add_argument("path", metavar="FILE", help="the file to write")
        add_conditions(one)
    judgments.add_argument("--format", required=True, choices=(*TABLE_FORMATS, FOLDER), help=_FORMAT)
    traces.add_argument(
        "--format",
        default=TRACE_FORMATS[0],
        choices=TRACE_FORMATS,
        help="the plain format, or TRL's stepwise supervision, with shares if a trace has any (default: jsonl)",
    )
    for one in (outcomes, left_out):
        one.add_argument("--format", required=True, choices=TABLE_FORMATS, help="the format of the file")
    for one in (judgments, outcomes, left_out):
        one.add_argument(
            "--by", action="append", default=[], metavar="NAME", help="an evaluator; may be repeated (default: all)"
        )
    for one in (labels, judgments, outcomes, left_out, traces):
        one.add_argument("--force", action="store_true", help="replace an existing file")
        add_db(one)


_LABELS = (
    "Write the consensus of a campaign into a file. A decision comes before a majority, and a tie or unsure is"
    " unlabelled. events lose nothing and are read back by: stepsight import labels FILE"
)
_JUDGMENTS = (
    "Write stored judgments as a tidy table: a row per trace, step, sub-step, evaluator and mode. Values that an"
    " evaluator does not give are empty. Parquet has the rows of stepsight.frame with substeps=True."
)
_LEFT_OUT = (
    "Write stored scores without a step as a tidy table: a row per trace, evaluator, gap, missing sub-step and each"
    " other one. Parquet has the rows of stepsight.left_out_frame."
)
_OUTCOMES = (
    "Write a table with a row per trace: what gold says of it, and the outcome of each evaluator, such as right or"
    " missed, in the given mode and for the given kind of error. Unknown outcomes are empty."
)
_TRACES = "Write traces as JSON Lines, which are read back by: stepsight import jsonl FILE"


_FRAMES: dict[str, Callable[..., Iterator[pd.DataFrame]]] = {
    "judgments": judgment_frames,
    "left-out": left_out_frames,
}


def run(args: argparse.Namespace) -> None:
    """Write the file, all or nothing, and print a summary."""
    with open_store(args.db) as store:
        print(_export_labels(args, store) if args.what == "labels" else _export_selection(args, store))


def _export_labels(args: argparse.Namespace, store: Store) -> object:
    return export_labels(
        store,
        args.campaign,
        args.path,
        args.format,
        per_annotator=args.per_annotator,
        force=args.force,
    )


def _export_selection(args: argparse.Namespace, store: Store) -> str:
    where, _ = read_conditions(args, store)
    dataset = find_dataset(store, args.dataset)
    ids = list_matching(store, dataset.id, where)
    by = [] if args.what == "traces" else args.by
    named = named_evaluators(store, dataset, by or None)
    chosen = {one.id for one in named} if by else None
    counts: list[int] = []

    def frames() -> Iterator[pd.DataFrame]:
        for frame in _FRAMES[args.what](store, args.dataset, ids, chosen):
            counts.append(len(frame))
            yield frame

    if args.what == "judgments" and args.format == FOLDER:
        written = write_judgments(store, Path(args.path), args.dataset, ids, chosen)
        return f"{args.path}: {', '.join(f'{count:,} rows of {name}' for name, count in written.items())}."
    if args.what == "traces":
        parts = trace_lines(store, ids, args.format)
    elif args.what == "outcomes":
        evaluators = {one.name: one.id for one in with_distinct_names(named)}
        parts = table_parts(*outcome_table(store, dataset.id, where, ids, evaluators), args.format)
    else:
        parts = frame_parts(frames(), args.format)
    with atomic_file(args.path, replace=args.force) as partial, open(partial, "wb") as file:
        file.writelines(parts)
    rows = sum(counts)
    of = f"{rows:,} {'row' if rows == 1 else 'rows'} of " if args.what in _FRAMES else ""
    return f"{args.path}: {of}{len(ids):,} {'trace' if len(ids) == 1 else 'traces'}."
