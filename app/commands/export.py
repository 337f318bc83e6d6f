"""The commands `export` and `patch`: traces, judgments, outcomes, labels and accepted disputes as files.

stepsight export labels my-campaign labels.jsonl --format prm800k
stepsight export judgments mr-math-invalid judgments.csv --format csv --gold error
stepsight export outcomes mr-math-invalid outcomes.csv --format csv --mode online
stepsight export left-out strict-prmbench left-out.parquet --format parquet
stepsight export traces mr-math-invalid errors.jsonl --gold error
stepsight patch export mr-math-invalid fixes.json
"""

import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import get_args

import pandas as pd

from stepsight.app.options.command import (
    FORCE,
    Command,
    Parser,
    describe,
    flag,
    open_output,
    option,
    read_fields,
    repeated,
)
from stepsight.core.errors import counted
from stepsight.core.files.label_patch import format_patch, read_patch
from stepsight.core.files.whole_files import atomic_file
from stepsight.core.validation import validate
from stepsight.storage.browse.browse import list_matching
from stepsight.storage.browse.filters import NamedFilter, TraceFilter
from stepsight.storage.browse.outcomes import outcome_table
from stepsight.storage.database.store import Store
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
from stepsight.storage.judgments.evaluators import find_by_name, with_distinct_names
from stepsight.storage.labelling.disputes import DisputeState, make_patch
from stepsight.storage.labelling.files.label_formats import FORMAT_NAMES, export_labels
from stepsight.storage.traces.queries import Dataset, find_dataset

_ABOUT = {"evaluator": "the evaluator whose verdicts, changes and scores are meant"}


def add_conditions(parser: Parser) -> None:
    """Add an option for each field of `NamedFilter`."""
    conditions = parser.add_argument_group("which traces", "Those that meet every condition, as in Browse.")
    for name, field in NamedFilter.model_fields.items():
        about = _ABOUT.get(name) or str(field.description)
        text = f"{about[0].lower()}{about[1:]}".rstrip(".")
        # The filter parses numbers itself, with better messages.
        kind = field.annotation if get_args(field.annotation) else str
        option = f"--{name.replace('_', '-')}"
        conditions.add_argument(option, **describe(option, kind, text, field.default))


def read_conditions(args: Namespace, store: Store) -> tuple[TraceFilter, int | None]:
    """Return the filter given by the options, and the database id of `--evaluator`, or None without it. Raises
    `UserError` if a value is invalid or an evaluator does not exist."""
    where = validate(NamedFilter, read_fields(args, NamedFilter.model_fields))
    named = (where.evaluator, where.against, where.other)
    ids = [find_by_name(store, name).id if name else None for name in named]
    return where.with_ids(*ids), ids[0]


_FILE = option("path FILE", "the file to write")
_SELECTION = (option("dataset DATASET", "a dataset of the store"), _FILE, add_conditions)
_TABLE = option("--format", "the format of the file", required=True, choices=TABLE_FORMATS)
_BY = repeated("--by NAME", "an evaluator; may be repeated (default: all)", default=[])

export_command = Command(None, (), "Write labels, judgments or traces of the store to a file.", "what")


@export_command.action(
    "labels",
    "the labels of a campaign",
    option("campaign CAMPAIGN", "a campaign of the store"),
    _FILE,
    option("--format", "the format of the file", required=True, choices=FORMAT_NAMES),
    flag("--per-annotator", "the labels of each annotator instead of the consensus"),
    FORCE,
    description="Write the consensus of a campaign to a file. A decision comes before a majority, and a tie or"
    " unsure is unlabelled. events lose nothing and are read back by: stepsight import labels FILE",
)
def _export_labels(args: Namespace, store: Store) -> None:
    print(
        export_labels(
            store, args.campaign, args.path, args.format, per_annotator=args.per_annotator, force=args.force
        )
    )


@export_command.action(
    "judgments",
    "the judgments of a dataset",
    *_SELECTION,
    option(
        "--format",
        f"the format of the file; {FOLDER}: a folder with a card, for datasets.load_dataset",
        required=True,
        choices=(*TABLE_FORMATS, FOLDER),
    ),
    _BY,
    FORCE,
    description="Write stored judgments as a tidy table: a row per trace, step, sub-step, evaluator and mode."
    " Values that an evaluator does not give are empty. Parquet has the rows of stepsight.frame with"
    " substeps=True.",
)
def _export_judgments(args: Namespace, store: Store) -> None:
    if args.format != FOLDER:
        _export_frames(args, store, judgment_frames)
        return
    dataset, ids = _select(store, args)
    chosen = {row.id for row in named_evaluators(store, dataset, args.by)} if args.by else None
    written = write_judgments(store, Path(args.path), args.dataset, ids, chosen)
    rows = ", ".join(f"{counted(count, 'row')} of {name}" for name, count in written.items())
    print(f"{args.path}: {rows}.")


@export_command.action(
    "traces",
    "the traces of a dataset, with their gold",
    *_SELECTION,
    option(
        "--format",
        "the plain format, or TRL's stepwise supervision, with shares if a trace has any (default: jsonl)",
        default=TRACE_FORMATS[0],
        choices=TRACE_FORMATS,
    ),
    FORCE,
    description="Write traces as JSON Lines, which are read back by: stepsight import jsonl FILE",
)
def _export_traces(args: Namespace, store: Store) -> None:
    _, ids = _select(store, args)
    _write(args, trace_lines(store, ids, args.format))
    print(f"{args.path}: {_count(ids)}.")


@export_command.action(
    "left-out",
    "the leave-one-out scores of a dataset",
    *_SELECTION,
    _TABLE,
    _BY,
    FORCE,
    description="Write stored scores without a step as a tidy table: a row per trace, evaluator, gap, missing"
    " sub-step and each other one. Parquet has the rows of stepsight.left_out_frame.",
)
def _export_left_out(args: Namespace, store: Store) -> None:
    _export_frames(args, store, left_out_frames)


@export_command.action(
    "outcomes",
    "the outcomes of a dataset",
    *_SELECTION,
    _TABLE,
    _BY,
    FORCE,
    description="Write a table with a row per trace: what gold says about it, and the outcome of each evaluator,"
    " such as right or missed, in the given mode and for the given kind of error. Unknown outcomes are empty.",
)
def _export_outcomes(args: Namespace, store: Store) -> None:
    where, _ = read_conditions(args, store)
    dataset, ids = _select(store, args)
    named = with_distinct_names(named_evaluators(store, dataset, args.by or None))
    table = outcome_table(store, dataset.id, where, ids, {row.name: row.id for row in named})
    _write(args, table_parts(*table, args.format))
    print(f"{args.path}: {_count(ids)}.")


def _export_frames(args: Namespace, store: Store, read: Callable[..., Iterator[pd.DataFrame]]) -> None:
    rows = 0
    dataset, ids = _select(store, args)
    chosen = {row.id for row in named_evaluators(store, dataset, args.by)} if args.by else None

    def frames() -> Iterator[pd.DataFrame]:
        nonlocal rows
        for frame in read(store, args.dataset, ids, chosen):
            rows += len(frame)
            yield frame

    _write(args, frame_parts(frames(), args.format))
    print(f"{args.path}: {rows:,} {'row' if rows == 1 else 'rows'} of {_count(ids)}.")


def _select(store: Store, args: Namespace) -> tuple[Dataset, list[int]]:
    where, _ = read_conditions(args, store)
    dataset = find_dataset(store, args.dataset)
    return dataset, list_matching(store, dataset.id, where)


def _write(args: Namespace, parts: Iterable[bytes]) -> None:
    """Write the file, all or nothing."""
    with atomic_file(args.path, replace=args.force) as partial, open(partial, "wb") as file:
        file.writelines(parts)


def _count(ids: list[int]) -> str:
    return f"{len(ids):,} {'trace' if len(ids) == 1 else 'traces'}"


patch_command = Command(None, (), "Export accepted disputes as a label patch, and show one.")


@patch_command.action(
    "export",
    "write the disputes of a dataset as a label patch",
    option("dataset DATASET"),
    option("file FILE", "- is standard output"),
    option(
        "--state",
        "the state of the disputes (default: %(default)s)",
        choices=[state.value for state in DisputeState],
        default="accepted",
    ),
)
def _export_patch(args: Namespace, store: Store) -> None:
    """Write the patch, all or nothing, and print its size and the disputes left out of it."""
    dataset = find_dataset(store, args.dataset)
    patch, changed = make_patch(store, dataset, DisputeState(args.state), Path(args.file).name)
    with open_output(args.file) as file:
        file.write(format_patch(patch))
    for dispute in changed:
        print(f"left out: dispute {dispute.id}, whose trace {dispute.trace!r} has changed since", file=sys.stderr)
    print(f"{dataset.name}: {patch.size}, digest {patch.digest}", file=sys.stderr)


@patch_command.action("show", "show the changes of a label patch", option("file FILE"))
def _show_patch(args: Namespace) -> None:
    """Print where a patch comes from and each label that it changes."""
    patch = read_patch(args.file)
    print(f"{patch.name}: {patch.size}")
    print(f"dataset {patch.dataset} (SHA-256 {patch.sha256[:12]}…), written {patch.moment}")
    print(f"digest {patch.digest}")
    for change in patch.changes:
        print(f"\n{change.place}: {change.old or 'unlabelled'} -> {change.new or 'unlabelled'}")
        sources = [f"dispute {change.dispute}"] if change.dispute is not None else []
        print(f"  {change.reason}")
        print(f"  {', '.join([*sources, change.by, change.moment])}")
