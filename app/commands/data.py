"""The commands `import`, `import-scores` and `synth`: data for the store, from files and made up.

stepsight import mr-math-invalid mr-math_invalid_errors.json
stepsight import mr-math-invalid --download
stepsight import auto FOLDER
stepsight import any table.csv --fields problem=question,steps=solution
stepsight import any OWNER/NAME --revision main --part train --fields problem=question,steps=steps,labels=labels
stepsight import prm800k phase2_train.jsonl --where is_quality_control_question=false
stepsight import labels events.jsonl
stepsight import-scores mr-math-invalid gpt4_eval_results.json --evaluator GPT-4
stepsight synth --size 1000 --seed 7 --output traces.jsonl
"""

import argparse
import json
import re
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tqdm import tqdm

from stepsight.app.options.command import DB, MODES, command, flag, open_output, option, positive, repeated
from stepsight.core.errors import UserError, counted
from stepsight.core.files.jsonl import format_trace
from stepsight.core.files.row_conditions import parse_conditions
from stepsight.core.judgment import Mode
from stepsight.core.trace import Trace
from stepsight.core.validation import validate
from stepsight.storage.database.location import folder_of
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.importers import find_kind
from stepsight.storage.importers.benchmarks.prm800k import KIND as PRM800K_KIND
from stepsight.storage.importers.benchmarks.prm800k import beside_the_paper
from stepsight.storage.importers.catalogue import fetch, find_published, public_file
from stepsight.storage.importers.column_mapping import LABELS as LABEL_FORMS
from stepsight.storage.importers.column_mapping import NAME as COLUMNS
from stepsight.storage.importers.column_mapping import ColumnMap
from stepsight.storage.importers.data_files import DataFiles, fetch_data, find_data, is_hub_id
from stepsight.storage.jobs.import_folder import find_files, import_inspected
from stepsight.storage.jobs.imports import fetch_benchmark
from stepsight.storage.judgments.score_files import import_scores
from stepsight.storage.labelling.files.import_labels import import_labels
from stepsight.storage.people.users import local_user
from stepsight.storage.traces.imports import ImportSummary, import_file, import_table
from stepsight.training.data.transforms import NOT_CONTINUED, continue_trace
from stepsight.training.runs.progress import progress
from stepsight.training.synth.corpus import generate

# Kinds in addition to those of trace files.
LABELS = "labels"
AUTO = "auto"
ANY = ("any", COLUMNS)


def _sha256(text: str) -> str:
    if not re.fullmatch("[0-9a-fA-F]{64}", text):
        raise argparse.ArgumentTypeError(f"{text!r} found, expected 64 hexadecimal digits")
    return text.lower()


@command(
    option(
        "kind",
        "such as mr-math-invalid or jsonl; an unknown kind lists them all; or auto: whatever a file or a folder"
        " holds; any: a table whose columns --fields names; labels: people's labels",
    ),
    option(
        "path",
        "the file; with any also a folder, or OWNER/NAME of a dataset on the model hub; with --download one of"
        " its published names",
        nargs="?",
    ),
    option("--dataset NAME", "the dataset's name (default: its kind)"),
    flag("--skip-bad", "leave out bad rows and list them in a file"),
    option("--skipped FILE", "that file (default: the imported file's name with .skipped.jsonl, beside the store)"),
    flag("--download", "fetch the published file into STEPSIGHT_CACHE, once"),
    flag("--scores", "with --download: also the scores published for the benchmark"),
    option(
        "--fields NAME=COLUMN,…",
        "with any: the columns of problem and steps, and of labels and id; a.b is the field b of a;"
        f" labels_as is one of {', '.join(LABEL_FORMS)}; thoughts=judged judges thinking before a solution too,"
        " with chats and logs of Inspect as well",
    ),
    option("--split TEXT", r"with any: the text between the steps of a solution that is one text, such as '\n\n'"),
    option("--part NAME", "with any: the part of a folder or of a dataset, such as train"),
    option("--revision REV", "with any: the commit, branch or tag of a dataset on the model hub"),
    repeated(
        "--where CONDITION",
        "only traces with FIELD=VALUE, FIELD=VALUE,VALUE or FIELD!=VALUE in their metadata; may be repeated",
        default=[],
    ),
    flag(
        "--continued",
        "with prm800k: traces include the rest of the solution beyond their labels, if the file has it",
    ),
    option("--sha256 HEX", "the expected hash of the published file", type=_sha256),
    option("--campaign NAME", "with labels: the campaign to put them into (default: the file's)"),
    option("--annotator NAME", "with labels: the annotator of Label Studio's tasks (default: the one they name)"),
    DB,
    lambda parser: parser.set_defaults(parser=parser),
)
def import_command(args: Namespace) -> None:
    """Store the traces of a file, or people's labels.

    A bad row leaves the store unchanged, unless `--skip-bad` is given.
    """
    if args.path is None and not args.download:
        args.parser.error("give the path of the file, or --download.")
    _check_combination(args)
    if args.kind == LABELS:
        _import_labels(args)
        return
    if args.kind == AUTO:
        _import_recognised(args)
        return
    if args.scores or (args.download and args.kind not in ANY and _is_in_parts(args)):
        _fetch_benchmark(args)
        return
    path = _fetch(args.kind, args.path, args.sha256) if args.download else Path(args.path)
    listing = None
    if args.skip_bad:
        listing = Path(args.skipped) if args.skipped else folder_of(args.db) / f"{path.stem}.skipped.jsonl"
    summary = _import(args, path, listing)
    print(summary)
    if summary.kind == PRM800K_KIND.name:
        print(f"Read: {beside_the_paper(summary.read, summary.labelled)}.")
    if summary.left_out:
        print(f"The rows left out are listed in {listing}.", file=sys.stderr)


def _check_combination(args: Namespace) -> None:
    """Raise `UserError` if options are given that do not go together."""
    kind, labels_file = args.kind, f"stepsight import {LABELS} FILE"
    if args.where and (kind in (LABELS, AUTO) or args.scores):
        raise UserError("--where is only for one file of traces.", "stepsight import KIND FILE --where FIELD=VALUE")
    if args.continued and (kind != PRM800K_KIND.name or args.scores):
        raise UserError("--continued requires prm800k.", "stepsight import prm800k FILE --continued")
    if kind == LABELS and (args.download or args.skip_bad):
        raise UserError("Labels cannot be downloaded, nor imported in part.", labels_file)
    if args.scores and not args.download:
        raise UserError("--scores requires --download.", "Give both.")
    if (args.fields is not None) != (kind in ANY) and (kind == AUTO or not _thoughts(args)) and kind != LABELS:
        message = f"{kind} needs --fields." if args.fields is None else f"--fields requires {ANY[0]}."
        raise UserError(message, f"stepsight import {ANY[0]} FILE --fields problem=A,steps=B")
    if kind not in ANY and (args.split, args.part, args.revision) != (None, None, None):
        raise UserError(f"--split, --part and --revision require {ANY[0]}.", "Leave them out.")
    if kind != LABELS and (args.campaign is not None or args.annotator is not None):
        raise UserError("--campaign and --annotator require labels.", labels_file)
    if args.skipped is not None and not args.skip_bad:
        raise UserError("--skipped requires --skip-bad.", "Give both.")
    if args.sha256 is not None and not args.download:
        raise UserError("--sha256 requires --download.", "Give both.")
    if kind == AUTO and (args.download or args.dataset is not None or args.skipped is not None):
        raise UserError(f"--download, --dataset and --skipped cannot be used with {AUTO}.", "Leave them out.")


def _import_recognised(args: Namespace) -> None:
    """Detect the kind of every file in a folder, and import the files. Files that cannot be imported are reported,
    and all others are stored. If there were files that could not be imported, `UserError` is raised at the end."""
    files, unread = find_files(Path(args.path))
    refused = 0
    if unread:
        print(f"Not read: {unread}.", file=sys.stderr)
    with open_store(args.db) as store:
        for file in tqdm(files, delay=2, disable=not sys.stderr.isatty(), unit="file"):
            try:
                print(import_inspected(store, file, folder_of(args.db) if args.skip_bad else None))
            except UserError as error:
                refused += 1
                print(f"Not imported: {error}", file=sys.stderr)
    if refused:
        raise UserError(f"{refused:,} of {len(files):,} files were not imported.", "The reasons are above.")


def _is_in_parts(args: Namespace) -> bool:
    """True if the file is the index of a published benchmark, which only lists the files that hold the traces."""
    benchmark = find_published(args.kind, args.path)
    return benchmark is not None and bool(benchmark.parts)


def _fetch_benchmark(args: Namespace) -> None:
    benchmark = find_published(args.kind, args.path)
    if benchmark is None:
        name = public_file(args.kind, args.path).name
        raise UserError(f"No scores are published for {name}.", "Leave --scores out.")
    what = "--scores" if args.scores else benchmark.title
    if args.sha256 is not None or args.skip_bad:
        raise UserError(f"--sha256 and --skip-bad cannot be used with {what}.", "Its hashes are known.")
    if args.where:
        raise UserError(f"--where cannot be used with {what}.", "Leave it out.")
    if args.dataset not in (None, benchmark.dataset):
        raise UserError(f"With {what}, the dataset is always {benchmark.dataset}.", "Leave --dataset out.")
    with open_store(args.db) as store, _bar() as bar:

        def show(received: int, size: int) -> None:
            bar.set_description_str(f"{received / 1e6:,.1f} MB", refresh=False)
            bar.update(min(1.0, received / size) - bar.n if size else 0)

        print(fetch_benchmark(store, benchmark, show, scores=args.scores).summary)


def _fields(args: Namespace) -> dict[str, str]:
    # A column's name may contain a comma.
    pairs = [part.partition("=") for part in re.split(r",(?=\s*\w+\s*=)", args.fields)]
    return {name.strip(): column.strip() for name, _, column in pairs}


def _thoughts(args: Namespace) -> str:
    """Return the treatment of thoughts if the fields contain nothing else, and otherwise ""."""
    chosen = _fields(args) if args.fields is not None else {}
    return chosen["thoughts"] if chosen.keys() == {"thoughts"} else ""


def _columns(args: Namespace) -> ColumnMap:
    # The meaning of labels is not guessed if it was not given.
    named = {"labels_as": ""} | _fields(args)
    if args.split is not None:
        # Shells do not replace these pairs of characters with the character they stand for.
        named["split"] = args.split.replace("\\n", "\n").replace("\\t", "\t").replace("\\r", "\r")
    return validate(ColumnMap, named, "--fields")


def _data(args: Namespace) -> DataFiles:
    path = Path(args.path)
    if path.exists() or not is_hub_id(args.path):
        if args.revision is not None:
            raise UserError("--revision requires a dataset on the model hub.", "Give OWNER/NAME, or leave it out.")
        return find_data(path, args.part or "")
    return fetch_data(args.path, args.revision or "", args.part or "")


def _import_labels(args: Namespace) -> None:
    """Import the labels of a file. If there is a mistake in the file, no label is imported."""
    with open_store(args.db) as store:
        person = local_user(store)
        print(
            import_labels(
                store,
                args.path,
                person,
                campaign=args.campaign,
                dataset=args.dataset,
                annotator=args.annotator,
            )
        )


def _import(args: Namespace, path: Path, listing: Path | None) -> ImportSummary:
    with open_store(args.db) as store, _bar() as bar:

        def show(traces: int, fraction: float) -> None:
            bar.set_description_str(f"{traces:,} traces", refresh=False)
            bar.update(fraction - bar.n)

        where = parse_conditions(args.where)
        if args.kind not in ANY:
            change = _continue_trace if args.continued else None
            kind = find_kind(args.kind, _thoughts(args))
            return import_file(store, kind, path, args.dataset or args.kind, show, listing, where, change)
        columns, data = _columns(args), _data(args)
        return import_table(store, columns, data, args.dataset or data.stem, show, listing, where)


def _continue_trace(trace: Trace) -> Trace | None:
    """Return a trace with its whole solution. The given trace ends at its last labelled step. Returns None if the
    rest of the solution is unknown."""
    whole, done = continue_trace(trace)
    return None if done == NOT_CONTINUED else whole


def _fetch(kind: str, name: str | None, sha256: str | None) -> Path:
    file = public_file(kind, name, sha256)
    with _bar() as bar:

        def show(received: int, size: int | None) -> None:
            bar.set_description_str(f"{received / 1e6:,.1f} MB of {file.name}", refresh=False)
            bar.update(received / size - bar.n if size else 0)

        return fetch(file, show)


@contextmanager
def _bar() -> "Iterator[tqdm[Any]]":
    """Show a progress bar on stderr, whose values run from 0 to 1. The bar appears after two seconds, and only in a
    terminal."""
    shown = sys.stderr.isatty()
    bar: tqdm[Any] = tqdm(total=1.0, delay=2, disable=not shown, bar_format="{percentage:3.0f}%|{bar}| {desc}")
    with bar:
        yield bar


@command(
    option("dataset", "a dataset of the store"),
    option("path", "the score file, JSON Lines or a JSON array"),
    option("--evaluator NAME", "the evaluator's name (default: as in the file, or as published)"),
    option(
        "--mode",
        "whether steps were scored with the whole solution or no later step in view, if the file does not say"
        " (default: %(default)s)",
        choices=MODES,
        default=MODES[0],
    ),
)
def import_scores_command(args: Namespace, store: Store) -> None:
    """Store the scores of a file as judgments of a dataset of the store. The file is one that stepsight score
    --output wrote, or a released one, whose rows have an id and scores: three numbers or one per sub-step, one per
    solution, or a verdict in words with the step it blames."""
    print(import_scores(store, args.dataset, args.path, args.evaluator, Mode(args.mode)))


@command(
    option("--size N", "the number of traces (default: %(default)s)", type=positive(int), default=100),
    option("--seed", "the same seed gives the same traces", type=int, default=0),
    option("--families NAME", "problem families (default: all)", nargs="+"),
    option("--output FILE", "default: standard output", default="-"),
)
def synth_command(args: Namespace) -> None:
    """Write synthetic traces with planted errors as JSON Lines."""
    with open_output(args.output) as out:
        for trace in progress(generate(args.seed, args.size, args.families), args.size, "traces"):
            out.write(json.dumps(format_trace(trace), ensure_ascii=False) + "\n")
    if args.output != "-":
        print(f"{counted(args.size, 'trace')} written to {args.output}.", file=sys.stderr)
