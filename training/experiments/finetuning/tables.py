"""The tables of what fine-tuned models reach: each model, and the subsets of a pool as the paper has them."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from stepsight.core.arrays import Floats64
from stepsight.core.metrics.bootstrap import DRAWS, resamples
from stepsight.core.metrics.value import Value
from stepsight.training.experiments.filtering.subsets import RANDOM, SUBSETS
from stepsight.training.experiments.finetuning.results import Printed, Result
from stepsight.training.report.tables import Cell, CellKind, Column, Table, show

TITLES = {"val+red": "Val + Red", "val": "Val-only", "red": "Red-only", "random": "Random"}
_BASELINE = RANDOM
_TEXT, _COUNT = CellKind.TEXT, CellKind.COUNT


def model_table(results: Sequence[Result]) -> Table:
    """A row for each model and, of several, their means."""
    columns = (
        Column("model", "Model", _TEXT),
        Column("subset", "Subset", _TEXT),
        Column("seed", "Seed", _TEXT),
        Column("accuracy", "Pass@1"),
        Column("tokens", "Tokens", _COUNT),
        Column("cut", "Cut", _COUNT),
    )
    rows: list[tuple[Cell, ...]] = [
        (
            one.model,
            TITLES.get(one.subset, one.subset or "–"),
            "–" if one.seed is None else str(one.seed),
            Value(one.accuracy).within(*one.interval()),
            round(one.length),
            one.cut,
        )
        for one in results
    ]
    rules: tuple[int, ...] = ()
    if len(results) > 1:
        rules = (len(rows),)
        mean = float(np.mean([one.accuracy for one in results]))
        length = float(np.mean([one.length for one in results]))
        rows.append(
            ("mean", "", "", Value(mean), round(length), round(float(np.mean([one.cut for one in results]))))
        )
    return Table("models", f"Pass@1 on {_problems(results)}", columns, tuple(rows), _notes(results), rules)


def _problems(results: Sequence[Result]) -> str:
    count = len(results[0].correct)
    name = (results[0].problems or {}).get("name", "")
    return f"{count} problems of {name}" if name else f"{count} problems"


def _constant(results: Sequence[Result]) -> Iterator[str]:
    """What a model has to pass to know anything."""
    constant = (results[0].problems or {}).get("constant")
    if constant:
        share = show(Value(constant["right"] / len(results[0].correct)), CellKind.PERCENT)
        yield f"Always answering {constant['answer']} would be right {constant['right']} times, {share} %."


def _notes(results: Sequence[Result]) -> tuple[str, ...]:
    notes = ["Intervals are Wilson's, of one model on these problems. Tokens are the mean of an answer; Cut counts "
             "answers that came to no end.", *_constant(results)]  # fmt: skip
    gave_up = sum(one.given_up for one in results)
    if gave_up:
        notes.append(f"The grader gave up on {gave_up} answers, which count as wrong.")
    return tuple(notes)


def subset_table(results: Sequence[Result]) -> Table:
    """The paper's table: for each evaluator its subsets, as means over the seeds, and how far each is from the
    random subset of the same size; below them what is no such subset, the random ones last.

    A difference has an interval of a bootstrap over the problems, the same ones for all runs, and over the seeds
    of either side.
    """
    rows: list[tuple[Cell, ...]] = []
    rules: list[int] = []
    baselines: list[tuple[Cell, ...]] = []
    for scorer, subsets in _by_scorer(results).items():
        rules += [len(rows)] if rows else []
        base = subsets.get(_BASELINE)
        for name, runs in subsets.items():
            row = (_row(scorer, name, runs), _against(runs, base if name != _BASELINE else None))
            (baselines if name == _BASELINE else rows).append((*row[0], row[1]))
    rules += [len(rows)] if rows and baselines else []
    notes = ["Means over the seeds. Δ Random is the difference from the random subset of the same size, in points; "
             f"its interval is of {DRAWS:,} resamples of the problems and of the seeds.",
             *_constant(results)]  # fmt: skip
    uneven = {len(runs) for subsets in _by_scorer(results).values() for runs in subsets.values()}
    if len(uneven) > 1:
        notes.append("Not every subset has as many seeds.")
    caption = f"Subsets of a pool: pass@1 on {_problems(results)}"
    return Table("subsets", caption, _columns(seeds=True), (*rows, *baselines), tuple(notes), tuple(rules))


def printed_table(printed: Sequence[Printed]) -> Table:
    """The paper's table, with the differences of the printed figures."""
    base = {row.scorer: row.accuracy for row in printed if row.subset == _BASELINE}
    rows: list[tuple[Cell, ...]] = []
    rules: list[int] = []
    before = ""
    for row in sorted(printed, key=lambda row: row.subset == _BASELINE):
        group = "" if row.subset == _BASELINE else row.scorer
        rules += [len(rows)] if rows and group != before else []
        before = group
        difference = None if row.subset == _BASELINE else Value(round(row.accuracy - base[row.scorer], 3))
        shown = (group, TITLES[row.subset], row.rows, Value(row.accuracy), round(row.length))
        rows.append((*shown, difference))
    notes = ("As the paper prints them; Δ Random is the difference of the printed figures, in points.",)
    caption = "The paper: Mistral-7B-v0.1 fine-tuned on subsets, pass@1 on MATH-500"
    return Table("paper-subsets", caption, _columns(seeds=False), tuple(rows), notes, tuple(rules))


def run_table(results: Sequence[Result]) -> Table:
    """A row for each run, below the other tables."""
    columns = (
        Column("scorer", "Scorer", _TEXT),
        Column("filter", "Filter", _TEXT),
        Column("rows", "N", _COUNT),
        Column("seed", "Seed", _TEXT),
        Column("accuracy", "Acc."),
        Column("tokens", "Tok.", _COUNT),
        Column("cut", "Cut", _COUNT),
    )
    rows = [
        (
            scorer,
            TITLES.get(name, name or "–"),
            one.rows,
            "–" if one.seed is None else str(one.seed),
            Value(one.accuracy).within(*one.interval()),
            round(one.length),
            one.cut,
        )
        for scorer, subsets in _by_scorer(results).items()
        for name, runs in subsets.items()
        for one in runs
    ]
    return Table("runs", f"Each run: pass@1 on {_problems(results)}", columns, tuple(rows), _notes(results))


def _columns(seeds: bool) -> tuple[Column, ...]:
    return (
        Column("scorer", "Scorer", _TEXT),
        Column("filter", "Filter", _TEXT),
        Column("rows", "N", _COUNT),
        *((Column("seeds", "Seeds", _COUNT),) if seeds else ()),
        Column("accuracy", "Acc."),
        Column("tokens", "Tok.", _COUNT),
        Column("difference", "Δ Random", CellKind.POINTS),
    )


def _by_scorer(results: Iterable[Result]) -> dict[str, dict[str, list[Result]]]:
    """The runs of each evaluator and subset, by rising seed; subsets in the paper's order, then others by name."""
    by_scorer: dict[str, dict[str, list[Result]]] = {}
    order = {name: place for place, name in enumerate(SUBSETS)}
    for one in sorted(results, key=lambda one: (order.get(one.subset, len(order)), one.subset, one.seed or 0)):
        by_scorer.setdefault(one.scorer, {}).setdefault(one.subset, []).append(one)
    return dict(sorted(by_scorer.items()))


def _row(scorer: str, name: str, runs: Sequence[Result]) -> tuple[Cell, ...]:
    sizes = sorted({one.rows for one in runs})
    accuracy = float(np.mean([one.accuracy for one in runs]))
    length = float(np.mean([one.length for one in runs]))
    title = TITLES.get(name, name or runs[0].model)
    return scorer, title, sizes[0] if len(sizes) == 1 else None, len(runs), Value(accuracy), round(length)


def _against(runs: Sequence[Result], base: Sequence[Result] | None) -> Value:
    if base is None:
        return Value.none("it is what the others are compared with, or there is nothing to compare with")
    solved = [_solved(side) for side in (runs, base)]
    difference = Value(float(solved[0].mean() - solved[1].mean()))
    if (solved[0] == solved[1][:1]).all() and (solved[1] == solved[1][:1]).all():
        # Resamples of nothing but ties would say that there can be no difference.
        return difference
    weights, rng = resamples(solved[0].shape[1]).astype(np.float64), np.random.default_rng(0)
    draws = np.zeros(len(weights))
    for side, sign in zip(solved, (1, -1), strict=True):
        each = weights @ side.T / side.shape[1]
        seeds = rng.integers(0, len(side), each.shape)
        draws += sign * np.take_along_axis(each, seeds, axis=1).mean(axis=1)
    return difference.within(*map(float, np.quantile(draws, (0.025, 0.975))))


def _solved(runs: Sequence[Result]) -> Floats64:
    """Which problems each run solved, shape (runs, problems)."""
    return np.array([one.correct for one in runs], np.float64)


def sentences(results: Sequence[Result]) -> Iterator[str]:
    """What the table of subsets says, subset by subset."""
    for scorer, subsets in _by_scorer(results).items():
        base = subsets.get(_BASELINE)
        for name, runs in subsets.items():
            if name == _BASELINE or base is None:
                continue
            difference = _against(runs, base)
            verdict = "clearly" if difference.low > 0 or difference.high < 0 else "not clearly"
            yield (
                f"{scorer or 'no evaluator'}, {TITLES.get(name, name)}: {show(difference, CellKind.POINTS).text}"
                f" points against the random subset, {verdict} different from zero."
            )
