"""Score the traces of a file or a dataset.

stepsight score --input FILE.jsonl --evaluator mini-bidir --mode hindsight --output OUT.jsonl
stepsight score --dataset mr-math-invalid --evaluator mini-bidir --mode hindsight
torchrun --nproc-per-node 4 -m stepsight score --dataset mr-math-invalid --evaluator FOLDER --device cuda
"""

import argparse
import sys
from collections.abc import Iterable, Iterator

from stepsight.app.commands.evaluation.critics import confirm, judge, report
from stepsight.app.commands.evaluation.evaluator_options import add_critic, add_reading, as_asked
from stepsight.app.commands.evaluation.processes import launched
from stepsight.app.options.shared import (
    add_db,
    add_evaluator,
    add_placement,
    fraction,
    open_output,
    print_left_out,
    print_note,
    progress,
    read_placement,
)
from stepsight.core.errors import UserError
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.judgment import Mode
from stepsight.core.scores import Thresholds
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from stepsight.storage.importers.plain import read_plain
from stepsight.training.evaluate.strength import concluded_record


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dataset", metavar="NAME", help="score this dataset of the store, and keep the judgments there"
    )
    parser.add_argument(
        "--input", metavar="FILE", help="traces as JSON Lines or an array (id, problem, steps); - is standard input"
    )
    parser.add_argument("--output", metavar="FILE", default="-", help="where results go (default: standard output)")
    add_evaluator(parser, ("vllm", "critic"))
    parser.add_argument("--mode", choices=[mode.value for mode in Mode], default="offline")
    parser.add_argument(
        "--validity", type=fraction, metavar="T", help="valid if s_val >= T (default: the evaluator's)"
    )
    parser.add_argument("--redundancy", type=fraction, metavar="T", help="redundant if s_red >= T")
    parser.add_argument(
        "--skip-too-long", action="store_true", help="leave out, and name, traces beyond the context"
    )
    add_reading(parser)
    add_critic(parser)
    add_placement(parser)
    add_db(parser)


def run(args: argparse.Namespace) -> None:
    if (args.dataset is None) == (args.input is None):
        raise UserError("give either --dataset or --input.", "See stepsight score --help.")
    if args.dataset is not None and (
        args.output != "-" or args.validity is not None or args.redundancy is not None
    ):
        raise UserError(
            "--output, --validity and --redundancy go with --input.",
            "The judgments of a dataset are kept in the store, without thresholds.",
        )
    with launched() as ours:
        if args.input is not None and ours.count > 1:
            raise UserError(
                "--input goes with one process, and several were launched.",
                "Import the file, and score the dataset.",
            )
        place = read_placement(args, ours.local_rank)
        (spec,) = as_asked(args, [args.evaluator])
        scorer = Scorer(load_evaluator(spec, place.device, place.dtype, place.device_map))
        if scorer.evaluator.format != "stepsight" and ours.is_main:
            print(scorer.evaluator.described, file=sys.stderr)
        if ours.is_main:
            print_note(scorer.evaluator.reading_note)
        skipped = _Skipped() if args.skip_too_long else None
        try:
            if args.dataset is not None:
                # A file is scored without a database.
                from stepsight.app.commands.evaluation.completion import score_dataset

                score_dataset(args.db, args.dataset, Mode(args.mode), scorer, skipped, ours, yes=args.yes)
            else:
                _score_file(args, scorer, skipped)
        finally:
            report(scorer.evaluator)
        count = 0 if skipped is None else ours.total(skipped.count)
        if count and ours.is_main:
            print(f"{count:,} {'trace' if count == 1 else 'traces'} left out.", file=sys.stderr)


class _Skipped:
    """A callback that reports and counts the traces that are left out."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, trace: Trace, error: UserError) -> None:
        self.count += 1
        print_left_out(trace, error)


def _score_file(args: argparse.Namespace, scorer: Scorer, skipped: _Skipped | None) -> None:
    evaluator = scorer.evaluator
    thresholds = Thresholds(
        evaluator.thresholds.validity if args.validity is None else args.validity,
        evaluator.thresholds.redundancy if args.redundancy is None else args.redundancy,
    )
    mode = Mode(args.mode)
    traces: Iterable[Trace] = _read_traces(args.input)
    if mode == Mode.HINDSIGHT:
        # All are counted before the first call.
        traces = list(traces)
        confirm(evaluator, traces, mode, yes=args.yes)
    with open_output(args.output) as out:
        judgments = judge(scorer, traces, mode, skipped)
        for judgment in progress(judgments, None, "traces"):
            out.write(concluded_record(judgment, evaluator, thresholds).model_dump_json() + "\n")


def _read_traces(path: str) -> Iterator[Trace]:
    name = "standard input" if path == "-" else path
    empty = True
    for trace in read_plain(sys.stdin.buffer if path == "-" else path, name):
        empty = False
        yield trace
    if empty:
        raise UserError(f"{name}: no trace found.", "Write one JSON object per line.")
