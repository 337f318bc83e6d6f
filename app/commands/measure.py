"""The commands `evaluate` and `doubtful`: how well evaluators judge a dataset, and which of its labels they doubt.

stepsight evaluate --dataset mr-math-invalid --evaluator mini-bidir
stepsight evaluate --dataset mr-math-invalid --compare mini-bidir mini-causal --json
stepsight evaluate --dataset mr-gsm8k --group original
stepsight evaluate --dataset mr-math-invalid --patch fixes.json
stepsight evaluate --dataset prm800k --evaluator mini-bidir --random-cut 0
torchrun --nproc-per-node 4 -m stepsight evaluate --dataset mr-math-invalid --evaluator FOLDER --device cuda
stepsight doubtful --dataset mr-math-invalid --output doubtful.jsonl
"""

import json
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from stepsight.app.options.command import (
    CRITIC,
    DB,
    DRAWS,
    MODES,
    PLACEMENT,
    READING,
    command,
    flag,
    open_output,
    option,
    positive,
    read_evaluators,
    read_placement,
    repeated,
)
from stepsight.core.errors import UserError
from stepsight.core.files.label_patch import read_patch
from stepsight.core.judgment import Mode
from stepsight.core.metrics.shortcuts import BASELINES, OF_SUBSTEPS, PREFIX
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.labelling.disputes import check_patch
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.evaluate.doubtful import rank_labels
from stepsight.training.evaluate.evaluation import Evaluation, GoldView, compare, evaluate
from stepsight.training.evaluate.judging import MeasuredEvaluator, find_evaluators, with_thresholds
from stepsight.training.report.differences import (
    Compared,
    Patched,
    change_tables,
    comparison_table,
    mcnemar_table,
)
from stepsight.training.report.results import (
    first_error_figures,
    has_gold,
    has_shares,
    published,
    results,
    share_figures,
)
from stepsight.training.report.stored_tables import evidence_table, needed_table, outcome_fields, outcomes_by_field
from stepsight.training.report.tables import Table, rows_as_json, to_text
from stepsight.training.runs.processes import launched
from stepsight.training.runs.progress import progress


@command(
    option("--dataset NAME", required=True),
    repeated(
        "--evaluator NAME",
        "a stored or shipped one, a folder, or one behind a server vllm:http://HOST:8000/v1#MODEL or "
        "critic:http://HOST:8000/v1#MODEL; may be repeated (default: all that judged the dataset)",
    ),
    repeated("--mode", "default: both", choices=MODES),
    option("--group NAME", "only traces that the benchmark assigns to this class", default=""),
    option("--patch FILE", "a label patch: every figure with and without it, and the change"),
    option(
        "--random-cut SEED",
        "cut each trace after a step drawn at random; its scores are those of hindsight judgments",
        type=int,
    ),
    option("--compare", "the paired difference of two evaluators", nargs=2, metavar=("A", "B")),
    option("--by FIELD", "also the outcomes by a metadata field, or by steps (their number)"),
    DRAWS,
    flag(
        "--force",
        "show and mark offline figures that are not meaningful, and those at thresholds chosen on the dataset",
    ),
    flag("--json", "as JSON, with fractions and null"),
    READING,
    CRITIC,
    PLACEMENT,
    DB,
)
def evaluate_command(args: Namespace) -> None:
    """Measure evaluators on a dataset of the store.

    The evaluators that can run here first judge unjudged traces.
    """
    if args.random_cut is not None and args.patch:
        raise UserError("--random-cut and --patch cannot be used together.", "Give one of them.")
    if args.by and (args.json or args.patch or args.random_cut is not None):
        raise UserError("--by cannot be used with --json, --patch or --random-cut.", "Leave out one or the other.")
    if args.random_cut is not None and args.random_cut < 0:
        raise UserError(f"--random-cut is {args.random_cut}, expected 0 or more.")
    named = [*(args.evaluator or []), *(args.compare or [])]
    given = read_evaluators(args, named, unread=[name for name in named if name.startswith(PREFIX)])
    names, compared_names = list(dict.fromkeys(given)), given[len(args.evaluator or []) :]
    modes = [Mode(mode) for mode in args.mode or MODES]
    # The offline scores of a prefix are in the hindsight triangle.
    judged = modes if args.random_cut is None else [Mode(mode) for mode in MODES]
    patch = read_patch(args.patch) if args.patch else None
    with launched() as ours, open_store(args.db) as store:
        place = read_placement(args, ours.local_rank)
        dataset = find_dataset(store, args.dataset)
        # An unsuitable patch and thresholds chosen on this dataset are refused before an hour of scoring.
        if patch:
            check_patch(store, dataset, patch)
        evaluators = find_evaluators(
            store,
            dataset,
            names,
            judged,
            partial(with_thresholds, store, dataset, force=args.force),
            place,
            ours,
            yes=args.yes,
        )
        ours.wait()
        if not ours.is_main:
            return
        view = GoldView(dataset, args.group, cut=args.random_cut)
        evaluation = evaluate(store, view, evaluators, modes, args.draws, args.force)
        patched = None
        if patch:
            after = evaluate(store, replace(view, patch=patch), evaluators, modes, args.draws, args.force)
            patched = Patched(evaluation, after)
        fields = outcome_fields(store, dataset.id)
        if args.by and args.by not in fields:
            raise UserError(f"{dataset.name} has no field {args.by!r:.60}.", f"Take one of {', '.join(fields)}.")
        ids = [(evaluator.name, evaluator.id) for evaluator in evaluators if evaluator.id is not None]
        is_plain = not args.patch and args.random_cut is None
        linked = evidence_table(store, dataset, ids, args.draws) if is_plain else None
        needed = needed_table(store, dataset, ids) if is_plain else None
        counted = [
            outcomes_by_field(store, evaluation, ids, question, args.by)[0]
            for question in (evaluation.judged if args.by else [])
        ]
    evaluations = [evaluation, patched.after] if patched else [evaluation]
    pair = _table_names(compared_names, names, evaluators)
    compared = {measured: _comparisons(measured, *pair) for measured in evaluations} if pair else {}
    if args.json:
        whole = _json(evaluation, patched, compared) | ({"evidence_links": rows_as_json(linked)} if linked else {})
        whole |= {"needed_steps": rows_as_json(needed)} if needed else {}
        print(json.dumps(whole, indent=1, allow_nan=False))
        return
    if evaluation.warning:
        print(evaluation.warning, file=sys.stderr)
    for name in dict.fromkeys(evaluator.name for evaluator in evaluators):
        if not any(row.evaluator == name for row in evaluation.rows):
            print(f"{name} has not judged {dataset.name} in any of these modes.", file=sys.stderr)
    if patched:
        print(f"\nLabel patch {patched.patch.name} (digest {patched.patch.digest[:12]}…): {patched.patch.size}")
    _print_tables(evaluation, patched)
    for table in [*counted, linked, needed]:
        _print(table)
    for measured, pairs in compared.items():
        for row, comparison in pairs:
            _print(comparison_table(measured, comparison))
            _print(mcnemar_table(measured, [(row, comparison)]))


def _table_names(
    names: Sequence[str], measured: Sequence[str], evaluators: Sequence[MeasuredEvaluator]
) -> list[str]:
    """Return the names under which the tables show the evaluators given on the command line. The two names differ
    for an evaluator that is loaded from a folder or with a different type of weights."""
    ran = [name for name in measured if not name.startswith(PREFIX)]
    called = dict(zip(ran, (evaluator.name for evaluator in evaluators), strict=True)) if measured else {}
    return [called.get(name, name) for name in names]


def _json(
    evaluation: Evaluation, patched: Patched | None, compared: dict[Evaluation, Compared]
) -> dict[str, object]:
    """Return the evaluation as JSON. With a patch, the result contains the evaluations without and with it as
    `without` and `with`."""

    def shown(measured: Evaluation) -> dict[str, object]:
        pairs = [comparison.as_json() for _, comparison in compared.get(measured, ())]
        return measured.as_json() | ({"comparisons": pairs} if measured in compared else {})

    if patched is None:
        return shown(evaluation)
    return patched.as_json() | {"without": shown(patched.before), "with": shown(patched.after)}


def _comparisons(evaluation: Evaluation, first: str, second: str) -> Compared:
    pairs = [
        (row, other)
        for row in evaluation.rows
        for other in evaluation.rows
        if (row.evaluator, other.evaluator) == (first, second)
        and (row.mode, row.errors) == (other.mode, other.errors)
    ]
    absent = [name for name in (first, second) if name in OF_SUBSTEPS]
    if not pairs and absent:
        raise UserError(
            f"No step of {evaluation.dataset.name} has several sub-steps, so {absent[0]} equals its counterpart for"
            " steps.",
            f"Take one of {', '.join(BASELINES)}.",
        )
    if not pairs:
        raise UserError(
            f"{first!r} and {second!r} have no judgments of {evaluation.dataset.name} in the same mode.",
            "Score them first.",
        )
    return [(row, compare(row, other, evaluation.weights)) for row, other in pairs]


def _print_tables(evaluation: Evaluation, patched: Patched | None) -> None:
    """Print the tables of figures as they appear in a report. With a patch, also print those for the patched gold
    labels."""
    changes = change_tables(patched) if patched else {}
    if has_shares(evaluation):
        _print(share_figures(evaluation))
    for mode, errors in evaluation.judged if has_gold(evaluation) or not has_shares(evaluation) else ():
        _print(results(evaluation, mode, errors))
        if patched and (mode, errors) not in changes:
            name = evaluation.dataset.name
            print(f"\n{name}, {errors} errors, {mode}: the patched gold has no such error, so nothing is compared")
        elif patched:
            _print(results(patched.after, mode, errors))
            _print(changes[mode, errors])
    for errors in dict.fromkeys(errors for _, errors in evaluation.judged):
        _print(published(evaluation, errors))
    _print(first_error_figures(evaluation))
    if patched:
        _print(first_error_figures(patched.after))


def _print(table: Table | None) -> None:
    if table is not None:
        print(f"\n{to_text(table)}", end="")


@command(
    option("--dataset NAME", "a labelled dataset of the store", required=True),
    option("--list N", "the number of labels to print (default: %(default)s)", type=positive(int), default=20),
    option("--output FILE", "write all labels to this file, as JSON Lines"),
)
def doubtful_command(args: Namespace, store: Store) -> None:
    """List the gold labels that stored judgments, failing equations and people contradict, the most doubtful first.
    Each label is assessed with labels of other problems; nothing is scored."""
    dataset = find_dataset(store, args.dataset)
    ranking = rank_labels(store, dataset, progress)
    for note in ranking.notes:
        print(note, file=sys.stderr)
    if args.output is not None:
        with open_output(args.output) as out:
            out.writelines(json.dumps(label.as_json(), ensure_ascii=False) + "\n" for label in ranking.labels)
    if args.output != "-":
        basis = f", by {ranking.mode} judgments" if ranking.mode else ""
        print(f"The most doubtful of {len(ranking.labels):,} labels of {dataset.name}{basis}:")
        for label in ranking.labels[: args.list]:
            print(f"  {label.doubt:.2f}  {label.trace}: {label.reason()}")
