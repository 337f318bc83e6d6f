"""Measuring evaluators on a dataset of the store.

stepsight evaluate --dataset mr-math-invalid --evaluator mini-bidir
stepsight evaluate --dataset mr-math-invalid --compare mini-bidir mini-causal --json
stepsight evaluate --dataset mr-gsm8k --group original
stepsight evaluate --dataset mr-math-invalid --patch fixes.json
torchrun --nproc-per-node 4 -m stepsight evaluate --dataset mr-math-invalid --evaluator FOLDER --device cuda
"""

import argparse
import json
import sys
from collections.abc import Sequence

from stepsight.app.commands.figures import (
    FIGURES,
    TITLES,
    above,
    percents,
    print_cells,
    print_patched,
    worth_printing,
)
from stepsight.app.commands.judging import find_judges
from stepsight.app.commands.options import add_db
from stepsight.app.commands.processes import launched
from stepsight.app.scoring.placement_options import add_placement, read_placement
from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.core.metrics.baselines import PREFIX
from stepsight.core.metrics.published import Published, published
from stepsight.core.patch import read_patch
from stepsight.storage.database.store import open_store
from stepsight.storage.judgments.evaluators import StoredEvaluator
from stepsight.storage.labelling.patches import check_patch
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.evaluate.evaluation import (
    MODES,
    Comparison,
    Evaluation,
    Row,
    compare,
    evaluate,
    with_thresholds,
)
from stepsight.training.report.patched import Patched, evaluate_patched
from stepsight.training.report.results import notes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dataset", required=True, metavar="NAME")
    parser.add_argument(
        "--evaluator",
        action="append",
        metavar="NAME",
        help="a stored one, a shipped one or a folder; may be repeated (default: all that judged the dataset)",
    )
    parser.add_argument(
        "--mode", action="append", choices=[Mode.OFFLINE.value, Mode.ONLINE.value], help="default: both"
    )
    parser.add_argument(
        "--group", default="", metavar="NAME", help="only traces that the benchmark puts in this class"
    )
    parser.add_argument(
        "--patch", metavar="FILE", help="a label patch: every figure with and without it, and the change"
    )
    parser.add_argument("--compare", nargs=2, metavar=("A", "B"), help="the paired difference of two evaluators")
    parser.add_argument("--draws", type=int, default=1000, help="bootstrap draws (default: %(default)s)")
    parser.add_argument(
        "--force",
        action="store_true",
        help="show offline figures that mean nothing, and those at thresholds chosen on the dataset, marked",
    )
    parser.add_argument("--json", action="store_true", help="as JSON, fractions and null")
    add_placement(parser)
    add_db(parser)


def run(args: argparse.Namespace) -> None:
    """Score what is missing where an evaluator can run, then print the table."""
    if args.draws < 1:
        raise UserError(f"--draws is {args.draws}, expected more than 0.")
    names = list(dict.fromkeys([*(args.evaluator or []), *(args.compare or [])]))
    modes = [Mode(mode) for mode in args.mode] if args.mode else list(MODES)
    patch = read_patch(args.patch) if args.patch else None
    patched = None
    with launched() as ours, open_store(args.db) as store:
        place = read_placement(args, ours.local_rank)
        dataset = find_dataset(store, args.dataset)
        # What is refused is refused before an hour of scoring, not after it: a patch that does not fit, and
        # thresholds chosen on this dataset.
        if patch:
            check_patch(store, dataset, patch)
        evaluators = find_judges(
            store, dataset, names, modes, lambda one: with_thresholds(store, dataset, one, args.force), place, ours
        )
        ours.wait()
        if not ours.speaks:
            return
        rest = (modes, args.draws, args.force, args.group)
        if patch:
            patched = evaluate_patched(store, dataset, evaluators, patch, *rest)
        found = patched.before if patched else evaluate(store, dataset, evaluators, *rest)
    told = [found, patched.after] if patched else [found]
    pair = _meant(args.compare or (), names, evaluators)
    compared = {one: _comparisons(one, *pair) for one in told} if pair else {}
    if args.json:
        print(json.dumps(_json(found, patched, compared), indent=1, allow_nan=False))
        return
    if found.warning:
        print(found.warning, file=sys.stderr)
    for name in dict.fromkeys(evaluator.name for evaluator in evaluators):
        if not any(row.evaluator == name for row in found.rows):
            print(f"{name} has not judged {dataset.name} in such a mode.", file=sys.stderr)
    if patched:
        print_patched(patched)
    else:
        _print_tables(found)
    for one, comparisons in compared.items():
        for comparison in comparisons:
            _print_comparison(comparison, ", patched" if one.patch else "")


def _meant(given: Sequence[str], names: Sequence[str], evaluators: Sequence[StoredEvaluator]) -> list[str]:
    """What the tables call those that a command line names: one from a folder, or in another type, has another
    name."""
    ran = [name for name in names if not name.startswith(PREFIX)]
    called = dict(zip(ran, (one.name for one in evaluators), strict=True)) if names else {}
    return [called.get(name, name) for name in given]


def _json(
    found: Evaluation, patched: Patched | None, compared: dict[Evaluation, list[Comparison]]
) -> dict[str, object]:
    """The evaluation, or with a patch both, each `without` and `with` as it is by itself."""

    def shown(one: Evaluation) -> dict[str, object]:
        pairs = [comparison.as_json() for comparison in compared.get(one, [])]
        return one.as_json() | ({"comparisons": pairs} if one in compared else {})

    if patched is None:
        return shown(found)
    return patched.as_json() | {"without": shown(patched.before), "with": shown(patched.after)}


def _comparisons(found: Evaluation, first: str, second: str) -> list[Comparison]:
    pairs = [
        (one, other)
        for one in found.rows
        for other in found.rows
        if (one.evaluator, other.evaluator) == (first, second)
        and (one.mode, one.errors) == (other.mode, other.errors)
    ]
    if not pairs:
        raise UserError(
            f"{first!r} and {second!r} have no judgments of {found.dataset.name} in the same mode.",
            "Score them first.",
        )
    return [compare(one, other, found.weights) for one, other in pairs]


def _print_tables(found: Evaluation) -> None:
    """The protocol's four figures per mode and kind of error, with bootstrap intervals over traces, then notes.

    A table of baselines alone is left out beside one with an evaluator.
    """
    for mode, errors in worth_printing(found.rows):
        chosen = [row for row in found.rows if (row.mode, row.errors) == (mode, errors)]
        printed = [row for row in found.published if (row.mode, row.benchmark.errors) == (mode, errors)]
        print(f"\n{found.dataset.name} ({found.size}), {errors} errors, {mode}, percent with 95 % intervals")
        cells: list[Sequence[str]] = [("evaluator", *TITLES, "above the best baseline")]
        cells += [(row.evaluator, *percents(row), above(row)) for row in chosen]
        cells += [(row.evaluator, *_printed(row), "published, not measured here") for row in printed]
        print_cells(cells)
        for note in _notes(chosen, found.traces):
            print(note)
    elsewhere = published(found.dataset.kind, found.group)
    if elsewhere and elsewhere[0].benchmark.traces != found.traces:
        print(
            f"  published figures are of {elsewhere[0].benchmark.traces:,} traces of this benchmark, these are"
            f" {found.traces:,}: none is shown"
        )


def _printed(row: Published) -> list[str]:
    """The figures as the paper prints them, which has no intervals."""
    return [f"{100 * row.values[name]:.1f}" for name in FIGURES]


def _notes(rows: list[Row], traces: int) -> list[str]:
    """What qualifies the figures, and how far the published ones are."""
    published = [f"{row.evaluator}: {_against(row, row.published)}" for row in rows if row.published is not None]
    return [f"  {note}" for note in [*notes(rows, FIGURES, traces), *published]]


def _against(row: Row, printed: Published) -> str:
    """Such as `Sol-F1 published 78.0, difference +0.0`, for each figure that the row has."""
    told = []
    for name, title in zip(FIGURES, TITLES, strict=True):
        value = row.measured[name].value
        if value.exists:
            difference = 100 * printed.difference(name, value.number)
            told.append(f"{title} published {100 * printed.values[name]:.1f}, difference {difference:+.1f}")
    return f"{'; '.join(told)} ({printed.evaluator} in {printed.table})"


def _print_comparison(found: Comparison, qualified: str) -> None:
    print(
        f"\n{found.first} minus {found.second}, {found.errors} errors, {found.mode},"
        f" {found.n_traces:,} traces{qualified}"
    )
    for name, title in zip(FIGURES, TITLES, strict=True):
        value = found.differences.get(name)
        if value is not None and value.exists:
            print(f"  {title} {100 * value.number:+.1f} [{100 * value.low:+.1f}, {100 * value.high:+.1f}]")
    for level, test in found.tests.items():
        p = f"p = {test.p.number:.2g}" if test.p.exists else test.p.reason
        print(
            f"  McNemar, {level} level: right only in the first {test.first_only:,}, only in the second "
            f"{test.second_only:,}, {p}"
        )
