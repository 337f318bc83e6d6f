"""Filter a pool of solutions into subsets to fine-tune on.

stepsight filter pool.jsonl --evaluator mini-bidir --output runs/filtered
stepsight filter MMIQC.parquet --where source=MATH --sample 10000 --evaluator runs/llada-prm-8b --output runs/mmiqc
stepsight filter --dataset pool --evaluator mini-bidir --match 500 --output runs/smaller
"""

import argparse
import sys
from pathlib import Path

from stepsight.app.options.shared import (
    add_db,
    add_evaluator,
    add_fields,
    add_placement,
    fraction,
    positive,
    read_fields,
    read_placement,
)
from stepsight.core.errors import UserError
from stepsight.storage.database.store import open_store
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.experiments.filtering.pool import import_pool
from stepsight.training.experiments.filtering.run import MANIFEST, Filtering, filter_pool, summary
from stepsight.training.experiments.filtering.subsets import BOTH, SUBSETS
from stepsight.training.runs.progress import progress_bars

# The options that set fields of the request.
_OPTIONS = {**dict.fromkeys(("seed", "where", "sample", "skip_bad"), ""), "benchmarks": "--benchmark"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Score every solution of a pool once and write subsets of one size: those that are valid and "
        "not redundant, the most valid, the least redundant, and some at random. Rows keep their fields; "
        "query and response are written under these names. The pool is imported as a dataset of the store, which "
        "keeps the scores. Stop it when you like; the same command resumes."
    )
    parser.add_argument(
        "pool",
        nargs="*",
        type=Path,
        metavar="POOL",
        help="JSON Lines, compressed or not, CSV or Parquet, with fields such as query and response, MMIQC's "
        "instruction and output, problem and steps, problem and solution, or question and answer",
    )
    parser.add_argument(
        "--dataset",
        metavar="NAME",
        help="the dataset of the pool (default: named after the file), or one of the store",
    )
    parser.add_argument(
        "--output", type=Path, required=True, metavar="FOLDER", help="for subsets and manifest.json"
    )
    add_evaluator(parser)
    parser.add_argument(
        "--by", action="append", choices=SUBSETS, help="a subset to write; may be repeated (default: all four)"
    )
    parser.add_argument(
        "--match", type=_match, default=BOTH, metavar="N", help="solutions in each (default: as val+red has)"
    )
    add_fields(parser, Filtering, **_OPTIONS)
    parser.add_argument(
        "--validity", type=fraction, metavar="T", help="valid if s_val >= T (default: the evaluator's)"
    )
    parser.add_argument("--redundancy", type=fraction, metavar="T", help="redundant if s_red >= T")
    parser.add_argument(
        "--fields", nargs=2, metavar=("QUERY", "RESPONSE"), help="the pool's names for them (default: recognised)"
    )
    add_placement(parser)
    add_db(parser)


def run(args: argparse.Namespace) -> None:
    """Filter the pool, or resume an interrupted run, and print the path of the manifest."""
    if not args.pool and args.dataset is None:
        raise UserError("no pool to choose from.", "Name a file of solutions, or a dataset with --dataset.")
    options = Filtering(
        output=args.output,
        evaluator=args.evaluator,
        by=tuple(args.by or SUBSETS),
        match=None if args.match == BOTH else int(args.match),
        validity=args.validity,
        redundancy=args.redundancy,
        place=read_placement(args),
        **read_fields(args, *_OPTIONS),
    )
    with open_store(args.db) as store, progress_bars() as watch:
        if args.pool:
            pool = import_pool(
                store, args.pool, args.dataset, args.fields, skip_bad=options.skip_bad, where=options.where
            )
        else:
            pool = find_dataset(store, args.dataset)
        manifest = filter_pool(store, pool, options, watch)
    print(summary(manifest, args.output), file=sys.stderr)
    print(args.output / MANIFEST)


def _match(text: str) -> str | float:
    return text if text == BOTH else positive(int)(text)
