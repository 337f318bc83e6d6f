"""Change solutions by rule, and measure whether an evaluator's verdicts move as they must.

stepsight stress --dataset gallery --evaluator mini-bidir
stepsight stress --input traces.jsonl --evaluator FOLDER --transform number-replaced --output stress.jsonl
stepsight stress --list
"""

import argparse
from collections.abc import Sequence

from stepsight.app.commands.evaluation.critics import confirm_stress, report
from stepsight.app.commands.evaluation.evaluator_options import add_critic, add_reading, as_asked
from stepsight.app.options.shared import (
    add_db,
    add_placement,
    fraction,
    open_output,
    positive,
    print_note,
    progress,
    read_placement,
)
from stepsight.core.errors import UserError
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from stepsight.storage.database.store import open_store
from stepsight.storage.importers.plain import draw_plain
from stepsight.storage.judgments.evaluators import find_thresholds, list_evaluators
from stepsight.training.report.tables import to_text
from stepsight.training.stress.result import StressFigures, result_lines, stress_record, stress_tables
from stepsight.training.stress.stress_test import StressTest, draw_traces
from stepsight.training.stress.transforms import find_transform
from stepsight.training.stress.variant import TRANSFORMS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Make variants of solutions by rule: some have a step made wrong, so that the verdict on it must turn, and"
        " others say the same in another way, so that no verdict may move. Print how often an evaluator's verdicts"
        " did so, beside two baselines that do not read the steps."
    )
    parser.add_argument("--dataset", metavar="NAME", help="traces of this dataset of the store")
    parser.add_argument("--input", metavar="FILE", help="or traces as JSON Lines or an array (id, problem, steps)")
    parser.add_argument(
        "--evaluator",
        action="append",
        metavar="NAME",
        help="a shipped name, a folder, a model hub's OWNER/NAME, or behind a server"
        " vllm:http://HOST:8000/v1#MODEL; may be repeated (default: mini-bidir)",
    )
    parser.add_argument(
        "--transform", action="append", metavar="NAME", help="only this transform; may be repeated (default: all)"
    )
    parser.add_argument("--list", action="store_true", help="list the transforms, and do nothing else")
    parser.add_argument(
        "--traces",
        type=positive(int),
        default=200,
        metavar="N",
        help="the most traces to change, drawn at random (default: %(default)s)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of all choices (default: %(default)s)")
    parser.add_argument(
        "--validity", type=fraction, metavar="T", help="valid if s_val >= T (default: the evaluator's)"
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        help="write the figures and every variant with its scores there, as JSON Lines, for `report --stress`",
    )
    add_reading(parser)
    add_critic(parser)
    add_placement(parser)
    add_db(parser)


def run(args: argparse.Namespace) -> None:
    """Make the variants, judge them with each evaluator and the baselines, and print the tables."""
    chosen = {find_transform(name).name for name in args.transform or TRANSFORMS}
    transforms = [transform for name, transform in TRANSFORMS.items() if name in chosen]
    if args.list:
        for transform in transforms:
            print(f"{transform.name:20} {transform.demand.value:16} {transform.description}")
        return
    if (args.dataset is None) == (args.input is None):
        raise UserError("give either --dataset or --input.", "See stepsight stress --help.")
    specs = as_asked(args, list(dict.fromkeys(args.evaluator or ["mini-bidir"])))
    traces: Sequence[Trace]
    donors: Sequence[Trace] = ()
    in_force = {}
    if args.input is not None:
        traces = draw_plain(args.input, args.traces, args.seed)
    else:
        with open_store(args.db) as store:
            traces, donors = draw_traces(store, args.dataset, args.traces, args.seed)
            in_force = {row.fingerprint: find_thresholds(store, row.id) for row in list_evaluators(store)}
    test = StressTest.of(transforms, list(progress(traces, len(traces), "traces changed")), args.seed, donors)
    place = read_placement(args)
    names: dict[str, str] = {}
    figures: list[StressFigures] = []
    variants = []
    for spec in specs:
        evaluator = load_evaluator(spec, place.device, place.dtype, place.device_map)
        if (fingerprint := evaluator.fingerprint) in names:
            print_note(f"{spec} has the fingerprint of {names[fingerprint]}, and is measured once.")
            continue
        name = names[fingerprint] = evaluator.name
        if not evaluator.outputs.has_steps:
            raise UserError(
                f"{name} judges only whole solutions, and a stress test asks for verdicts on steps.",
                "Choose an evaluator that judges steps.",
            )
        print_note(evaluator.reading_note)
        confirm_stress(evaluator, test.traces, len(transforms), yes=args.yes)
        try:
            judged = test.judge(Scorer(evaluator).offline_scores)
            stressed = list(progress(judged, len(test), "variants"))
        finally:
            report(evaluator)
        if len(stressed) < len(test):
            print_note(f"{len(test) - len(stressed):,} variants could not be scored by {name}.")
        threshold = in_force.get(fingerprint, evaluator.thresholds).validity
        figures += test.figures(name, stressed, threshold if args.validity is None else args.validity)
        variants += [stress_record(one, name) for one in stressed]
    figures += test.baseline_figures() if args.validity is None else test.baseline_figures(args.validity)
    if args.output is not None:
        with open_output(args.output) as out:
            out.writelines(result_lines(args.dataset or args.input, len(test.traces), figures, variants))
    if args.output != "-":
        print("\n".join(map(to_text, stress_tables(figures, len(test.traces)))), end="")
