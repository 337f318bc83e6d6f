"""The commands `score` and `stress`: the verdicts of an evaluator, and whether they move as they must.

stepsight score --input FILE.jsonl --evaluator mini-bidir --mode hindsight --output OUT.jsonl
stepsight score --dataset mr-math-invalid --evaluator mini-bidir --mode hindsight
torchrun --nproc-per-node 4 -m stepsight score --dataset mr-math-invalid --evaluator FOLDER --device cuda
stepsight stress --input traces.jsonl --evaluator FOLDER --transform number-replaced --output stress.jsonl
"""

import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence

from stepsight.app.options.command import (
    CRITIC,
    DB,
    PLACEMENT,
    READING,
    REDUNDANCY,
    VALIDITY,
    command,
    flag,
    one_evaluator,
    open_output,
    option,
    positive,
    read_evaluators,
    read_placement,
    repeated,
)
from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.core.scores import Thresholds
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from stepsight.storage.database.store import open_store
from stepsight.storage.importers.plain import draw_plain, read_plain
from stepsight.storage.judgments.evaluators import find_thresholds, list_evaluators
from stepsight.training.evaluate.completion import (
    confirm_cost,
    confirm_stress_cost,
    describe,
    judge,
    open_evaluator,
    print_cost,
    score_dataset,
)
from stepsight.training.evaluate.strength import concluded_record
from stepsight.training.report.tables import to_text
from stepsight.training.runs.processes import launched
from stepsight.training.runs.progress import print_left_out, print_note, progress
from stepsight.training.stress.stress_test import (
    StressTest,
    draw_traces,
    result_lines,
    stress_tables,
)
from stepsight.training.stress.transforms import TRANSFORMS, find_transform


@command(
    option("--dataset NAME", "score this dataset of the store, and keep the judgments there"),
    option("--input FILE", "traces as JSON Lines or an array (id, problem, steps); - is standard input"),
    option("--output FILE", "where results go (default: standard output)", default="-"),
    one_evaluator("vllm", "critic"),
    option("--mode", choices=[mode.value for mode in Mode], default="offline"),
    VALIDITY,
    REDUNDANCY,
    flag("--skip-too-long", "leave out and list traces that exceed the context"),
    READING,
    CRITIC,
    PLACEMENT,
    DB,
)
def score_command(args: Namespace) -> None:
    """Score a file, or a dataset of the store."""
    if (args.dataset is None) == (args.input is None):
        raise UserError("give either --dataset or --input.", "See stepsight score --help.")
    if args.dataset is not None and (
        args.output != "-" or args.validity is not None or args.redundancy is not None
    ):
        raise UserError(
            "--output, --validity and --redundancy require --input.",
            "The judgments of a dataset are kept in the store, without thresholds.",
        )
    with launched() as ours:
        if args.input is not None and ours.count > 1:
            raise UserError(
                "--input needs a single process, but several were launched.",
                "Import the file, and score the dataset.",
            )
        place = read_placement(args, ours.local_rank)
        (spec,) = read_evaluators(args, [args.evaluator])
        scorer = Scorer(open_evaluator(spec, place))
        if ours.is_main:
            describe(scorer.evaluator)
        skipped = 0

        def leave_out(trace: Trace, error: UserError) -> None:
            nonlocal skipped
            skipped += 1
            print_left_out(trace, error)

        on_skip = leave_out if args.skip_too_long else None
        try:
            if args.dataset is not None:
                score_dataset(args.db, args.dataset, Mode(args.mode), scorer, on_skip, ours, yes=args.yes)
            else:
                _score_file(args, scorer, on_skip)
        finally:
            print_cost(scorer.evaluator)
        count = ours.total(skipped) if on_skip else 0
        if count and ours.is_main:
            print(f"{count:,} {'trace' if count == 1 else 'traces'} left out.", file=sys.stderr)


def _score_file(args: Namespace, scorer: Scorer, on_skip: Callable[[Trace, UserError], None] | None) -> None:
    evaluator = scorer.evaluator
    thresholds = Thresholds(
        evaluator.thresholds.validity if args.validity is None else args.validity,
        evaluator.thresholds.redundancy if args.redundancy is None else args.redundancy,
    )
    mode = Mode(args.mode)
    traces: Iterable[Trace] = _read_traces(args.input)
    if mode == Mode.HINDSIGHT:
        # All traces are counted before the first call.
        traces = list(traces)
        confirm_cost(evaluator, traces, mode, yes=args.yes)
    with open_output(args.output) as out:
        judgments = judge(scorer, traces, mode, on_skip)
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


@command(
    option("--dataset NAME", "traces of this dataset of the store"),
    option("--input FILE", "or traces as JSON Lines or an array (id, problem, steps)"),
    repeated(
        "--evaluator NAME",
        "a shipped name, a folder, a model hub's OWNER/NAME, or behind a server"
        " vllm:http://HOST:8000/v1#MODEL; may be repeated (default: mini-bidir)",
    ),
    repeated("--transform NAME", "only this transform; may be repeated (default: all)"),
    flag("--list", "list the transforms, and do nothing else"),
    option(
        "--traces N",
        "the largest number of traces to change, drawn at random (default: %(default)s)",
        type=positive(int),
        default=200,
    ),
    option("--seed N", "of all choices (default: %(default)s)", type=int, default=0),
    VALIDITY,
    option(
        "--output FILE",
        "write the figures and every variant with its scores to this file, as JSON Lines, for `report --stress`",
    ),
    READING,
    CRITIC,
    PLACEMENT,
    DB,
)
def stress_command(args: Namespace) -> None:
    """Make variants of solutions by rule: some contain a wrong step, so the verdict on it must change, and others
    say the same in a different way, so no verdict may change. Print how often an evaluator's verdicts did so,
    beside two baselines that do not read the steps."""
    chosen = {find_transform(name).name for name in args.transform or TRANSFORMS}
    transforms = [transform for name, transform in TRANSFORMS.items() if name in chosen]
    if args.list:
        for transform in transforms:
            print(f"{transform.name:20} {transform.demand.value:16} {transform.description}")
        return
    if (args.dataset is None) == (args.input is None):
        raise UserError("give either --dataset or --input.", "See stepsight stress --help.")
    specs = read_evaluators(args, list(dict.fromkeys(args.evaluator or ["mini-bidir"])))
    traces: Sequence[Trace]
    in_force = {}
    if args.input is not None:
        traces = draw_plain(args.input, args.traces, args.seed)
    else:
        with open_store(args.db) as store:
            traces = draw_traces(store, args.dataset, args.traces, args.seed)
            in_force = {row.fingerprint: find_thresholds(store, row.id) for row in list_evaluators(store)}
    test = StressTest.of(transforms, list(progress(traces, len(traces), "traces changed")), args.seed)
    place = read_placement(args)
    names: dict[str, str] = {}
    records = []
    for spec in specs:
        evaluator = open_evaluator(spec, place)
        if (fingerprint := evaluator.fingerprint) in names:
            print_note(f"{spec} has the fingerprint of {names[fingerprint]}, and is measured once.")
            continue
        name = names[fingerprint] = evaluator.name
        if not evaluator.outputs.has_steps:
            raise UserError(
                f"{name} judges only whole solutions, but a stress test needs verdicts on steps.",
                "Choose an evaluator that judges steps.",
            )
        print_note(evaluator.reading_note)
        confirm_stress_cost(evaluator, test.traces, len(transforms), yes=args.yes)
        threshold = in_force.get(fingerprint, evaluator.thresholds).validity
        threshold = threshold if args.validity is None else args.validity
        try:
            judged = test.judge(name, Scorer(evaluator).offline_scores, threshold)
            variants = list(progress(judged, len(test), "variants"))
        finally:
            print_cost(evaluator)
        if len(variants) < len(test):
            print_note(f"{len(test) - len(variants):,} variants could not be scored by {name}.")
        records += variants
    records += test.baselines() if args.validity is None else test.baselines(args.validity)
    if args.output is not None:
        with open_output(args.output) as out:
            out.writelines(result_lines(args.dataset or args.input, test, records))
    if args.output != "-":
        print("\n".join(map(to_text, stress_tables(records, transforms, len(test.traces)))), end="")
