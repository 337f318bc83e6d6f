"""How far people agree, as tables: of all steps, by what is asked of them, and step by step."""

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from core.agreement import Level, alpha
from core.label import LABEL_NAMES
from core.metrics.bootstrap import Floats, Weights
from core.metrics.kappa import RaterPair, agreeing
from core.metrics.ratings import SAID, Ratings
from core.metrics.value import Value
from storage.labelling.ratings import RatedTraces
from training.tables import Cell, Column, Kind, Table

FIGURES = ("labels, in order", "labels", "valid or not", "first error")
"""The rows of the first table: neg below neu below pos; the three as names; neg against the rest; which step."""

# Steps from here on share a row.
_MOST_POSITIONS = 20
_NAMED = 4


def overall_table(rated: RatedTraces, weights: Weights) -> Table:
    """Alpha and the share of equal pairs, of labels and of first errors."""
    ratings, traces = rated.last, np.arange(len(rated.traces))
    asked = (
        (ratings.labels, Level.ORDINAL, ratings.trace, "steps"),
        (ratings.labels, Level.NOMINAL, ratings.trace, "steps"),
        (ratings.validity, Level.NOMINAL, ratings.trace, "steps"),
        (ratings.first_errors, Level.NOMINAL, traces, "traces"),
    )
    found = [alpha(values, level, trace, weights) for values, level, trace, _ in asked]
    rows = [
        (figure, one.alpha, one.agreeing, one.n_units, unit, one.n_pairs)
        for figure, one, (_, _, _, unit) in zip(FIGURES, found, asked, strict=True)
    ]
    return Table(
        "agreement",
        "Krippendorff's alpha, with 95 % intervals over traces",
        (
            Column("of", "of", Kind.TEXT),
            Column("alpha", "alpha", Kind.NUMBER),
            Column("agreeing", "pairs that agree, %"),
            Column("units", "with two labels or more", Kind.COUNT),
            Column("unit", "", Kind.TEXT),
            Column("pairs", "pairs", Kind.COUNT),
        ),
        tuple(rows),
        reasons((figure, one.alpha) for figure, one in zip(FIGURES, found, strict=True)),
    )


def position_table(rated: RatedTraces, weights: Weights) -> Table:
    """The same by step number, beside how often people say what the gold says of validity."""
    ratings = rated.last
    last = int(ratings.position.max(initial=-1))
    rows: list[tuple[Cell, ...]] = []
    told: list[tuple[str, Value]] = []
    for position in range(min(last + 1, _MOST_POSITIONS)):
        rest = position == _MOST_POSITIONS - 1 and last > position
        chosen = ratings.position >= position if rest else ratings.position == position
        name = f"{position + 1} and later" if rest else f"{position + 1}"
        labels, trace = ratings.labels[:, chosen], ratings.trace[chosen]
        by_order, by_name = (alpha(labels, level, trace, weights) for level in (Level.ORDINAL, Level.NOMINAL))
        gold = _against_gold(ratings, rated.valid, chosen, weights)
        rows.append((name, by_order.n_units, by_order.alpha, by_name.alpha, by_name.agreeing, gold))
        told.append((f"step {name}", by_order.alpha))
    return Table(
        "positions",
        "By step number",
        (
            Column("step", "step", Kind.TEXT),
            Column("units", "with two labels or more", Kind.COUNT),
            Column("ordinal", "alpha, in order", Kind.NUMBER),
            Column("nominal", "alpha", Kind.NUMBER),
            Column("agreeing", "pairs that agree, %"),
            Column("gold", "validity as the gold, %"),
        ),
        tuple(rows),
        reasons(told),
    )


def _against_gold(ratings: Ratings, valid: Floats, chosen: NDArray[np.bool_], weights: Weights) -> Value:
    """Of everybody's labels of some steps, the share that says of validity what the gold does."""
    said = ratings.validity[:, chosen]
    people = len(ratings.people)
    pair = RaterPair.of(said.ravel(), np.tile(valid[chosen], people), np.tile(ratings.trace[chosen], people))
    return agreeing(pair, weights)


def step_table(rated: RatedTraces) -> Table:
    """Every step with what was said of it: for files."""
    ratings = rated.last
    rows: list[tuple[Cell, ...]] = []
    shares = agreeing_shares(ratings)
    for step, place in enumerate(ratings.trace):
        trace = rated.traces[place]
        said = [int(count) for count in ratings.counts[step]]
        names = (label_name(ratings.majority[step]), gold_name(rated, step))
        share = Value.none("") if np.isnan(shares[step]) else Value(float(shares[step]))
        rows.append((trace.dataset, trace.external_id, int(ratings.position[step]) + 1, *said, *names, share))
    columns = [Column("dataset", "dataset", Kind.TEXT), Column("trace", "trace", Kind.TEXT)]
    columns += [Column("step", "step", Kind.COUNT), *(Column(said, said, Kind.COUNT) for said in SAID)]
    columns += [Column("majority", "majority", Kind.TEXT), Column("gold", "gold", Kind.TEXT)]
    return Table("steps", "Every step", (*columns, Column("agreeing", "pairs that agree, %")), tuple(rows))


def agreeing_shares(ratings: Ratings) -> Floats:
    """Of each step the share of pairs of labels that are equal, NaN where it has none, shape (steps,)."""
    votes = ratings.counts[:, : len(LABEL_NAMES)].astype(np.float64)
    total = votes.sum(axis=1)
    pairs = total * (total - 1)
    equal = (votes * (votes - 1)).sum(axis=1)
    shares: Floats = np.divide(equal, pairs, out=np.full(len(pairs), np.nan), where=pairs > 0)
    return shares


def label_name(code: float) -> str:
    """neg, neu or pos; "" for NaN."""
    return "" if np.isnan(code) else LABEL_NAMES[int(code)]


def gold_name(rated: RatedTraces, step: int) -> str:
    """What the gold says of a step: a label, that it is valid, or nothing, ""."""
    label = label_name(rated.gold[step])
    return label or ("valid" if rated.valid[step] == 1 else "")


def reasons(values: Iterable[tuple[str, Value]]) -> tuple[str, ...]:
    """A note for each reason why there is no value, naming some of those without."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, value in values:
        if not value.exists and value.reason:
            found[value.reason].append(name)
    return tuple(f"{_some(names)}: {reason}" for reason, names in found.items())


def _some(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")
