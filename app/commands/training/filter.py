"""Filter a pool of solutions into subsets to fine-tune on.

stepsight filter pool.jsonl --evaluator mini-bidir --output runs/filtered
stepsight filter MMIQC.parquet --where source=MATH --sample 10000 --evaluator runs/llada-prm-8b --output runs/mmiqc
"""

import argparse
import sys
from pathlib import Path

from stepsight.app.options.shared import (
    add_evaluator,
    add_fields,
    add_placement,
    fraction,
    read_fields,
    read_placement,
)
from stepsight.training.experiments.filtering.output import MANIFEST, summary
from stepsight.training.experiments.filtering.run import Filtering, filter_pool
from stepsight.training.experiments.filtering.subsets import BOTH, SUBSETS
from stepsight.training.runs.progress import progress_bars

# The options that set fields of the request.
_OPTIONS = {
    **dict.fromkeys(("seed", "where", "sample", "skip_bad", "scores"), ""),
    "benchmarks": "--benchmark",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Score every solution of a pool once and write subsets of one size: those that are valid and "
        "not redundant, the most valid, the least redundant, and some at random. Rows keep their fields; "
        "query and response are written under these names. Stop it when you like; the same command resumes."
    )
    parser.add_argument(
        "pool",
        nargs="+",
        type=Path,
        metavar="POOL",
        help="JSON Lines, compressed or not, or Parquet, with query and response, MMIQC's instruction and output, "
        "problem and steps, problem and solution, or question and answer",
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


def run(args: argparse.Namespace) -> None:
    """Filter the pool, or resume an interrupted run, and print the path of the manifest."""
    wanted = Filtering(
        pool=tuple(args.pool),
        output=args.output,
        evaluator=args.evaluator,
        by=tuple(args.by or SUBSETS),
        match=None if args.match == BOTH else args.match,
        validity=args.validity,
        redundancy=args.redundancy,
        fields=None if args.fields is None else (args.fields[0], args.fields[1]),
        place=read_placement(args),
        **read_fields(args, *_OPTIONS),
    )
    with progress_bars() as watch:
        manifest = filter_pool(wanted, watch)
    print(summary(manifest, args.output), file=sys.stderr)
    print(args.output / MANIFEST)


def _match(text: str) -> int | str:
    if text == BOTH:
        return text
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} found, expected a number from 1, or val+red")
    return int(text)
