"""Tables of fine-tuned models, with one row per model, per run, or per subset as in the paper."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stepsight.core.metrics.bootstrap import DRAWS, Value, resamples
from stepsight.training.experiments.filtering.subsets import RANDOM, SUBSETS
from stepsight.training.experiments.finetuning.results import Printed, Result
from stepsight.training.report.tables import Cell, CellKind, Column, Table, show

TITLES = {"val+red": "Val + Red", "val": "Val-only", "red": "Red-only", "random": "Random"}
_TEXT, _COUNT = CellKind.TEXT, CellKind.COUNT
_SUBSET = (Column("scorer", "Scorer", _TEXT), Column("filter", "Filter", _TEXT), Column("rows", "N", _COUNT))
_SEED, _CUT = Column("seed", "Seed", _TEXT), Column("cut", "Cut", _COUNT)
_REACHED = (Column("accuracy", "Acc."), Column("tokens", "Tok.", _COUNT))
_PASS = (Column("accuracy", "Pass@1"), Column("tokens", "Tokens", _COUNT))
_AGAINST = Column("difference", "Δ Random", CellKind.POINTS)


@dataclass(frozen=True)
class _Group:
    """The runs on one subset that an evaluator chose. `random` holds the runs on the random subset of the same
    size, if any."""

    scorer: str
    subset: str
    runs: Sequence[Result]
    random: Sequence[Result]

    @property
    def title(self) -> str:
        return TITLES.get(self.subset, self.subset or self.runs[0].model)

    @property
    def means(self) -> tuple[Value, int]:
        """The mean accuracy of the runs, and their mean number of tokens per answer."""
        accuracy, length = np.mean([(one.accuracy, one.length) for one in self.runs], axis=0)
        return Value(float(accuracy)), round(float(length))

    @cached_property
    def gain(self) -> Value:
        """The mean accuracy minus the mean accuracy on the random subset. The interval comes from a bootstrap over
        the problems, with the same resamples for all runs, and over the seeds of both subsets."""
        if self.subset == RANDOM or not self.random:
            return Value.none("it is what the others are compared with, or there is nothing to compare with")
        # True for the problems that each run solved, shape (runs, problems).
        solved = [np.array([one.correct for one in side], np.float64) for side in (self.runs, self.random)]
        difference = Value(float(solved[0].mean() - solved[1].mean()))
        if (solved[0] == solved[1][:1]).all() and (solved[1] == solved[1][:1]).all():
            # Resamples of ties alone would give an interval of zero width.
            return difference
        weights, rng = resamples(solved[0].shape[1]).astype(np.float64), np.random.default_rng(0)
        draws = np.zeros(len(weights))
        for side, sign in zip(solved, (1, -1), strict=True):
            each = weights @ side.T / side.shape[1]
            seeds = rng.integers(0, len(side), each.shape)
            draws += sign * np.take_along_axis(each, seeds, axis=1).mean(axis=1)
        return difference.within(*map(float, np.quantile(draws, (0.025, 0.975))))


def _groups(results: Iterable[Result]) -> list[_Group]:
    """Group the runs by evaluator and subset. Evaluators are sorted by name. The paper's subsets come first, in the
    paper's order, followed by all others, sorted by name. Runs are sorted by seed."""
    order = {name: place for place, name in enumerate(SUBSETS)}
    runs: dict[tuple[str, str], list[Result]] = {}
    for one in sorted(
        results, key=lambda one: (one.scorer, order.get(one.subset, len(order)), one.subset, one.seed or 0)
    ):
        runs.setdefault((one.scorer, one.subset), []).append(one)
    return [
        _Group(scorer, subset, group, runs.get((scorer, RANDOM), ())) for (scorer, subset), group in runs.items()
    ]


def model_table(results: Sequence[Result]) -> Table:
    """Return a table with a row for each model and, if there are several models, a row with their means."""
    columns = (Column("model", "Model", _TEXT), Column("subset", "Subset", _TEXT), _SEED, *_PASS, _CUT)
    rows: list[tuple[Cell, ...]] = [(one.model, _title(one), *_reached(one)) for one in results]
    if len(results) > 1:
        cut = round(float(np.mean([one.cut for one in results])))
        rows.append(("mean", "", "", *_Group("", "", results, ()).means, cut))
    rules = (len(results),) if len(results) > 1 else ()
    return Table("models", f"Pass@1 on {_problems(results)}", columns, tuple(rows), _notes(results), rules)


def _title(one: Result) -> str:
    return TITLES.get(one.subset, one.subset or "–")


def _reached(one: Result) -> tuple[Cell, ...]:
    """Return the seed, the accuracy, the mean tokens per answer, and the number of answers that were cut off."""
    seed = "–" if one.seed is None else str(one.seed)
    return seed, Value(one.accuracy).within(*one.interval()), round(one.length), one.cut


def _problems(results: Sequence[Result]) -> str:
    count = len(results[0].correct)
    name = (results[0].problems or {}).get("name", "")
    return f"{count} problems of {name}" if name else f"{count} problems"


def _constant(results: Sequence[Result]) -> Iterator[str]:
    """Yield a note on how often the most frequent answer is right, as a baseline that needs no model."""
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
    """Return a table of the subsets, as in the paper, with random subsets at the end. The table shows means over
    the seeds and differences from the random subset of the same size."""
    groups = sorted(_groups(results), key=lambda group: group.subset == RANDOM)
    rows = tuple(
        (group.scorer, group.title, _size(group.runs), len(group.runs), *group.means, group.gain)
        for group in groups
    )
    notes = ["Means over the seeds. Δ Random is the difference from the random subset of the same size, in points; "
             f"its interval is of {DRAWS:,} resamples of the problems and of the seeds.",
             *_constant(results)]  # fmt: skip
    if len({len(group.runs) for group in groups}) > 1:
        notes.append("Not every subset has as many seeds.")
    columns = (*_SUBSET, Column("seeds", "Seeds", _COUNT), *_REACHED, _AGAINST)
    caption = f"Subsets of a pool: pass@1 on {_problems(results)}"
    rules = _rules([RANDOM if group.subset == RANDOM else group.scorer for group in groups])
    return Table("subsets", caption, columns, rows, tuple(notes), rules)


def _size(runs: Sequence[Result]) -> int | None:
    sizes = {one.rows for one in runs}
    return sizes.pop() if len(sizes) == 1 else None


def _rules(groups: Sequence[str]) -> tuple[int, ...]:
    """Return the indices of the rows with which a new group begins."""
    return tuple(place for place in range(1, len(groups)) if groups[place] != groups[place - 1])


def printed_table(printed: Sequence[Printed]) -> Table:
    """Return the paper's table. Differences from the random subsets are computed from the printed figures."""
    base = {row.scorer: row.accuracy for row in printed if row.subset == RANDOM}
    rows: list[tuple[Cell, ...]] = []
    for row in sorted(printed, key=lambda row: row.subset == RANDOM):
        random = row.subset == RANDOM
        difference = None if random else Value(round(row.accuracy - base[row.scorer], 3))
        reached = (Value(row.accuracy), round(row.length), difference)
        rows.append(("" if random else row.scorer, TITLES[row.subset], row.rows, *reached))
    notes = ("As the paper prints them; Δ Random is the difference of the printed figures, in points.",)
    caption = "The paper: Mistral-7B-v0.1 fine-tuned on subsets, pass@1 on MATH-500"
    columns, rules = (*_SUBSET, *_REACHED, _AGAINST), _rules([str(row[0]) for row in rows])
    return Table("paper-subsets", caption, columns, tuple(rows), notes, rules)


def run_table(results: Sequence[Result]) -> Table:
    """Return a table with a row for each run."""
    runs = [one for group in _groups(results) for one in group.runs]
    rows = tuple((one.scorer, _title(one), one.rows, *_reached(one)) for one in runs)
    columns = (*_SUBSET, _SEED, *_REACHED, _CUT)
    return Table("runs", f"Each run: pass@1 on {_problems(results)}", columns, rows, _notes(results))


def sentences(results: Sequence[Result]) -> Iterator[str]:
    """Yield, for each subset, a sentence that says how much it differs from the random subset."""
    for group in _groups(results):
        if group.gain.exists:
            verdict = "clearly" if group.gain.low > 0 or group.gain.high < 0 else "not clearly"
            yield (
                f"{group.scorer or 'no evaluator'}, {group.title}:"
                f" {show(group.gain, CellKind.POINTS).text} points against the random subset, {verdict} different"
                " from zero."
            )
