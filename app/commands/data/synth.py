"""Generate synthetic traces and write them to a file.

stepsight synth --size 1000 --seed 7 --output traces.jsonl
"""

import argparse
import json
import sys

from stepsight.app.options.shared import open_output, progress
from stepsight.core.errors import UserError
from stepsight.core.files.jsonl import format_trace
from stepsight.training.synth.corpus import generate


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--size", type=int, default=100, metavar="N", help="the number of traces (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same traces")
    parser.add_argument("--families", nargs="+", metavar="NAME", help="problem families (default: all)")
    parser.add_argument("--output", metavar="FILE", default="-", help="default: standard output")


def run(args: argparse.Namespace) -> None:
    if args.size < 1:
        raise UserError(f"--size is {args.size}, expected 1 or more.")
    with open_output(args.output) as out:
        for trace in progress(generate(args.seed, args.size, args.families), args.size, "traces"):
            out.write(json.dumps(format_trace(trace), ensure_ascii=False) + "\n")
    if args.output != "-":
        print(f"{args.size:,} traces written to {args.output}.", file=sys.stderr)
