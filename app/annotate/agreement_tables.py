"""Tables of agreement: over all steps, by step number, by view, by pair of annotators, and with the gold labels.

A view is the part of a trace that annotators saw when they labelled a step. In a stepwise campaign, they first see
only the steps up to this one, and may change the label later. Their final labels count as a second view.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from stepsight.core.arrays import Floats64, Ints
from stepsight.core.label import LABEL_NAMES, Label
from stepsight.core.metrics.bootstrap import Value, Weights, difference, share
from stepsight.core.metrics.labels.agreement import (
    Agreement,
    RaterPair,
    Scale,
    agreeing,
    agreeing_with_others,
    alpha,
    alpha_draws,
    kappa,
    several,
)
from stepsight.core.metrics.labels.ratings import RATING_NAMES, UNLABELLED, UNSURE, Ratings, valid_of
from stepsight.core.metrics.table import ONE_CLASS
from stepsight.storage.labelling.results.annotations import UNASKED
from stepsight.storage.labelling.results.ratings import CampaignRatings, RatedTraces
from stepsight.training.report.tables import Cell, CellKind, Column, Table

FIGURES = ("labels, in order", "labels", "valid or not", "first error")
"""The rows of the first table: labels as an ordered scale, labels as names, neg against the rest, and the first
error."""

# Later steps share a row.
_MOST_POSITIONS = 20
_NAMED = 4
_HEADS = {
    "agreement": {"of": "of", "alpha": "alpha", "agreeing": "pairs that agree, %",
        "units": "with two labels or more", "unit": "", "pairs": "pairs"},
    "positions": {"step": "step", "units": "with two labels or more", "ordinal": "alpha, in order",
        "nominal": "alpha", "agreeing": "pairs that agree, %", "gold": "same validity as gold, %"},
    "later": {"later": "later steps in view", "changed": "labels changed then", "to_neg": "of these to neg",
        "from_neg": "of these from neg", "share": "of the labels that could, %"},
    "pairs": {"first": "annotator", "second": "and", "traces": "traces", "steps": "steps", "kappa": "kappa",
        "agreeing": "same label, %", "known": "traces where both give a first error",
        "first_error": "same first error, %"},
    "annotators": {"annotator": "annotator", "traces": "traces", "labels": "labels", "unsure": "unsure",
        "agreeing": "same label as others, %", "without": "alpha without", "change": "rises by"},
    "gold": {"annotator": "annotator", "steps": "steps with a gold label", "accuracy": "same label, %",
        "kappa": "kappa of labels", "valid_steps": "steps with gold validity",
        "valid_accuracy": "same validity, %", "valid_kappa": "kappa of validity"},
}  # fmt: skip
"""The columns of each table, by their keys."""

# Columns of numbers that are not percentages.
_COEFFICIENTS = frozenset(("alpha", "ordinal", "nominal", "kappa", "valid_kappa", "without", "change"))

STEPWISE = "stepwise"
NOTHING = "there is nothing to compare"
# Larger numbers of later steps share a row.
_MOST_LATER = 8

Codes = NDArray[np.int8]

MAJORITY = "the majority"
"""The name of the majority in a table of people."""


def overall_table(rated: RatedTraces, weights: Weights) -> Table:
    """Tabulate Krippendorff's alpha and the share of agreeing pairs, for step labels and for first errors."""
    ratings, traces = rated.last, np.arange(len(rated.traces))
    asked = (
        (ratings.labels, Scale.ORDINAL, ratings.trace, "steps"),
        (ratings.labels, Scale.NOMINAL, ratings.trace, "steps"),
        (ratings.validity, Scale.NOMINAL, ratings.trace, "steps"),
        (ratings.first_errors, Scale.NOMINAL, traces, "traces"),
    )
    alphas = [
        (figure, alpha(values, level, trace, weights), unit)
        for figure, (values, level, trace, unit) in zip(FIGURES, asked, strict=True)
    ]
    return _alphas("agreement", "Krippendorff's alpha, with 95 % intervals over traces", alphas)


def _alphas(name: str, caption: str, alphas: Sequence[tuple[str, Agreement, str]], *notes: str) -> Table:
    """Build a table with a row for each agreement, given with its name and the unit that is rated."""
    rows = [(of, one.alpha, one.agreeing, one.n_units, unit, one.n_pairs) for of, one, unit in alphas]
    return _table(name, caption, _HEADS["agreement"], rows, [(of, one.alpha) for of, one, _ in alphas], notes)


def position_table(rated: RatedTraces, weights: Weights) -> Table:
    """Tabulate agreement by step number, including the share of labels whose validity matches the gold label."""
    ratings = rated.last
    last = int(ratings.position.max(initial=-1))
    rows: list[tuple[Cell, ...]] = []
    values: list[tuple[str, Value]] = []
    for position in range(min(last + 1, _MOST_POSITIONS)):
        rest = position == _MOST_POSITIONS - 1 and last > position
        chosen = ratings.position >= position if rest else ratings.position == position
        name = f"{position + 1} and later" if rest else f"{position + 1}"
        labels, trace = ratings.labels[:, chosen], ratings.trace[chosen]
        by_order, by_name = (alpha(labels, level, trace, weights) for level in (Scale.ORDINAL, Scale.NOMINAL))
        gold = _against_gold(ratings, rated.valid, chosen, weights)
        rows.append((name, by_order.n_units, by_order.alpha, by_name.alpha, by_name.agreeing, gold))
        values.append((f"step {name}", by_order.alpha))
    return _table("positions", "By step number", _HEADS["positions"], rows, values)


def _against_gold(ratings: Ratings, valid: Floats64, chosen: NDArray[np.bool_], weights: Weights) -> Value:
    """Return the share of labels, over all annotators and the chosen steps, whose validity matches the gold
    label."""
    validity = ratings.validity[:, chosen]
    people = len(ratings.people)
    pair = RaterPair.of(validity.ravel(), np.tile(valid[chosen], people), np.tile(ratings.trace[chosen], people))
    return agreeing(pair, weights)


def step_table(rated: RatedTraces) -> Table:
    """Tabulate the ratings of every step. This table is only for download."""
    ratings = rated.last
    rows: list[tuple[Cell, ...]] = []
    shares = agreeing_shares(ratings)
    for step, place in enumerate(ratings.trace):
        trace = rated.traces[place]
        counts = [int(count) for count in ratings.counts[step]]
        said = (label_name(ratings.majority[step]), gold_name(rated, step))
        share = Value.none("") if np.isnan(shares[step]) else Value(float(shares[step]))
        rows.append((trace.dataset, trace.external_id, int(ratings.position[step]) + 1, *counts, *said, share))
    names = ("dataset", "trace", "step", *RATING_NAMES, "majority", "gold")
    heads = {name: name for name in names} | {"agreeing": "pairs that agree, %"}
    return _table("steps", "Every step", heads, rows)


def agreeing_shares(ratings: Ratings) -> Floats64:
    """Return the share of annotator pairs that agree on each step, as an array of shape (steps,). The share is NaN
    for a step with fewer than two labels."""
    votes = ratings.counts[:, : len(LABEL_NAMES)].astype(np.float64)
    total = votes.sum(axis=1)
    pairs = total * (total - 1)
    equal = (votes * (votes - 1)).sum(axis=1)
    shares: Floats64 = np.divide(equal, pairs, out=np.full(len(pairs), np.nan), where=pairs > 0)
    return shares


def label_name(code: float) -> str:
    """Return the name of a label code: neg, neu or pos, or "" for NaN."""
    return "" if np.isnan(code) else LABEL_NAMES[int(code)]


def gold_name(rated: RatedTraces, step: int) -> str:
    """Return the gold label of a step, `valid` if it is only known to be valid, or "" if there is no gold label."""
    label = label_name(rated.gold[step])
    return label or ("valid" if rated.valid[step] == 1 else "")


def _table(
    name: str,
    caption: str,
    heads: Mapping[str, str],
    rows: Sequence[tuple[Cell, ...]],
    values: Iterable[tuple[str, Value]] = (),
    notes: tuple[str, ...] = (),
    rules: tuple[int, ...] = (),
) -> Table:
    """Build a table from its rows and `heads`, which maps the keys of the columns to their titles.

    The kind of each column is derived from its cells. A note is added for each reason why some of the `values` are
    missing.
    """
    kinds = (_kind(key, [row[place] for row in rows]) for place, key in enumerate(heads))
    columns = tuple(Column(key, title, kind) for (key, title), kind in zip(heads.items(), kinds, strict=True))
    return Table(name, caption, columns, tuple(rows), (*reasons(values), *notes), rules)


def _kind(key: str, cells: Sequence[Cell]) -> CellKind:
    if any(isinstance(cell, str) for cell in cells):
        return CellKind.TEXT
    if any(isinstance(cell, int) for cell in cells):
        return CellKind.COUNT
    return CellKind.NUMBER if key in _COEFFICIENTS else CellKind.PERCENT


def reasons(values: Iterable[tuple[str, Value]]) -> tuple[str, ...]:
    """Return one note for each reason why values are missing, naming some of the values."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for name, value in values:
        if not value.exists and value.reason:
            by_reason[value.reason].append(name)
    return tuple(f"{_some(names)}: {reason}" for reason, names in by_reason.items())


def _some(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")


@dataclass(frozen=True, eq=False)
class ViewRatings:
    """The ratings that a campaign's annotators gave in one view."""

    view: str
    campaign: str
    ratings: Ratings


def view_ratings(of: CampaignRatings, rated: RatedTraces) -> list[ViewRatings]:
    """Return a campaign's ratings in each view. A stepwise campaign has two views, any other campaign one."""
    name = of.campaign.name
    if of.campaign.view != STEPWISE:
        return [ViewRatings("whole trace", name, rated.last)]
    return [ViewRatings("steps so far", name, rated.first), ViewRatings("in the end", name, rated.last)]


def shared_traces(one: RatedTraces, other: RatedTraces) -> tuple[RatedTraces, RatedTraces]:
    """Restrict two campaigns to the traces they share, in the order of the first campaign."""
    places = {(trace.trace_id, trace.digest): place for place, trace in enumerate(other.traces)}
    both = [(i, places.get((trace.trace_id, trace.digest))) for i, trace in enumerate(one.traces)]
    pairs = [(mine, theirs) for mine, theirs in both if theirs is not None]
    return one.of_traces([mine for mine, _ in pairs]), other.of_traces([theirs for _, theirs in pairs])


def view_table(sides: Sequence[ViewRatings], rated: RatedTraces, weights: Weights) -> Table:
    """Tabulate agreement and the distribution of labels in each view. All `sides` must rate the traces of
    `rated`."""
    rows: list[tuple[Cell, ...]] = []
    values = []
    for side in sides:
        ratings = side.ratings
        agreement = alpha(ratings.labels, Scale.ORDINAL, ratings.trace, weights)
        labelled = ~np.isnan(ratings.labels)
        labels, trace = ratings.labels[labelled], np.broadcast_to(ratings.trace, labelled.shape)[labelled]
        valid = np.broadcast_to(rated.valid, labelled.shape)[labelled]
        judged = ~np.isnan(valid)
        shares = [share(labels == label, trace, weights, NOTHING) for label in Label]
        right = share((labels[judged] != Label.NEG) == valid[judged], trace[judged], weights, NOTHING)
        counts = ratings.traces, len(labels)
        rows.append((side.view, side.campaign, *counts, agreement.alpha, agreement.agreeing, *shares, right))
        values.append((f"{side.view}, {side.campaign}", agreement.alpha))
    heads = {
        "view": "in view",
        "campaign": "campaign",
        "traces": "traces",
        "labels": "labels",
        "alpha": "alpha, in order",
        "agreeing": "pairs that agree, %",
        **{name: f"{name}, %" for name in LABEL_NAMES},
        "gold": "same validity as gold, %",
    }
    return _table("views", "The two views: how far people agree, and what they say", heads, rows, values)


def mind_table(rated: RatedTraces, weights: Weights) -> Table:
    """Cross-tabulate the labels that annotators first gave to steps with their final labels."""
    first, last = rated.first.codes, rated.last.codes
    trace = np.broadcast_to(rated.last.trace, first.shape).ravel()
    caption = "Changes of mind: from the label with the steps so far in view to the one that stands"
    return _moves("minds", caption, "then ", first.ravel(), last.ravel(), trace, weights)


def evidence_table(rated: RatedTraces, weights: Weights) -> Table:
    """Tabulate how far people agree on the steps that changed their labels. The table has no row if nobody named
    one. A note counts the changed labels for which nobody was asked to; these alone also make a row."""
    unasked = sum(trace.unasked for trace in rated.traces)
    alphas = []
    if unasked or np.isfinite(rated.evidence).any():
        of_steps = alpha(rated.evidence, Scale.NOMINAL, rated.last.trace, weights)
        alphas.append(("step that changed the label", of_steps, "steps"))
    notes = [f"Not in it: {unasked:,} {UNASKED}."] if unasked else []
    return _alphas("evidence", "Krippendorff's alpha of the steps that changed a label", alphas, *notes)


def majority_table(first: ViewRatings, second: ViewRatings, weights: Weights) -> Table:
    """Cross-tabulate the majority labels in one view with those in another."""
    codes = [np.nan_to_num(side.ratings.majority, nan=UNLABELLED).astype(np.int8) for side in (first, second)]
    names = [f"{side.campaign}, {side.view}" for side in (first, second)]
    caption = f"The majority: {names[0]} (rows), against {names[1]} (columns)"
    return _moves("majorities", caption, "", codes[0], codes[1], first.ratings.trace, weights)


def _moves(name: str, caption: str, then: str, before: Codes, after: Codes, trace: Ints, weights: Weights) -> Table:
    """Cross-tabulate two labels of each step, and give the share of steps on which they differ.

    Steps with only one of the two labels are left out. If `then` is not "", it precedes the column names, and
    "unsure" counts as a label.
    """
    both = (before != UNLABELLED) & (after != UNLABELLED)
    before, after, trace = before[both], after[both], trace[both]
    rows: list[tuple[Cell, ...]] = []
    # A majority is never unsure.
    names = RATING_NAMES if then else LABEL_NAMES
    for code, label in enumerate(names):
        of = before == code
        counts = [int((after[of] == other).sum()) for other in range(len(names))]
        rows.append((label, int(of.sum()), *counts, share(after[of] != code, trace[of], weights, NOTHING)))
    totals = [int((after == other).sum()) for other in range(len(names))]
    rows.append(("all", len(before), *totals, share(before != after, trace, weights, NOTHING)))
    pair = RaterPair(before.astype(np.int64), after.astype(np.int64), trace)
    value = kappa(pair, weights)
    note = f"Cohen's kappa {value.number:.3f} [{value.low:.3f}, {value.high:.3f}]" if value.exists else value.reason
    heads = {
        "first": "first" if then else "label",
        "labels": "labels",
        **{f"then_{label}": f"{then}{label}" for label in names},
        "changed": "another label, %",
    }
    return _table(name, caption, heads, rows, notes=(note,), rules=(len(names),))


def later_table(rated: RatedTraces, weights: Weights) -> Table:
    """Tabulate how many later steps were visible when labels were last changed. The shares in a row are taken over
    the labels of steps that are followed by at least that many steps."""
    first, last = rated.first.codes, rated.last.codes
    lengths = np.bincount(rated.last.trace, minlength=rated.last.traces)
    after = np.broadcast_to(lengths[rated.last.trace] - 1 - rated.last.position, first.shape)
    trace = np.broadcast_to(rated.last.trace, first.shape)
    in_both = (first != UNLABELLED) & (last != UNLABELLED)
    changed = in_both & (first != last)
    rows = [
        (name, *_when(changed & of, first, last), share(of[reach], trace[reach], weights, NOTHING))
        for name, of, reach in _later(rated.later, changed, in_both, after)
    ]
    return _table("later", "When minds changed: by how many later steps were in view", _HEADS["later"], rows)


def _later(
    later: NDArray[np.float64], changed: NDArray[np.bool_], in_both: NDArray[np.bool_], after: Ints
) -> Iterator[tuple[str, NDArray[np.bool_], NDArray[np.bool_]]]:
    """Yield the rows of `later_table` as triples of a name and two masks over labels.

    The first mask selects the labels that changed when the row's number of later steps was visible. The second mask
    selects all labels that could have changed then.
    """
    most = int(after.max(initial=0))
    for count in range(1, min(most, _MOST_LATER) + 1):
        rest = count == _MOST_LATER and most > count
        when = later >= count if rest else later == count
        yield f"{count} or more" if rest else f"{count}", changed & when, in_both & (after >= count)


def _when(changed: NDArray[np.bool_], first: Codes, last: Codes) -> tuple[int, int, int]:
    to, back = changed & (last == Label.NEG), changed & (first == Label.NEG)
    return int(changed.sum()), int(to.sum()), int(back.sum())


def pair_table(rated: RatedTraces, weights: Weights) -> Table:
    """Tabulate Cohen's kappa and the agreement on first errors for every two people who share a trace."""
    ratings, traces = rated.last, np.arange(len(rated.traces))
    rows: list[tuple[Cell, ...]] = []
    values = []
    for first, second in combinations(range(len(ratings.people)), 2):
        pair = RaterPair.of(ratings.labels[first], ratings.labels[second], ratings.trace)
        errors = RaterPair.of(ratings.first_errors[first], ratings.first_errors[second], traces)
        if not len(pair) and not len(errors):
            continue
        names = ratings.people[first], ratings.people[second]
        value = kappa(pair, weights)
        same = agreeing(pair, weights), len(errors), agreeing(errors, weights)
        rows.append((*names, pair.traces, len(pair), value, *same))
        values.append((" and ".join(names), value))
    return _table(
        "pairs",
        "Every two people: Cohen's kappa and shared verdicts, with 95 % intervals over traces",
        _HEADS["pairs"],
        rows,
        values,
    )


def annotator_table(rated: RatedTraces, weights: Weights) -> Table:
    """Tabulate how well each person agrees with all others, and the alpha without that person. If alpha rises
    without a person, that person lowers the agreement."""
    ratings = rated.last
    everybody = alpha(ratings.labels, Scale.ORDINAL).alpha
    draws = alpha_draws(ratings.labels, Scale.ORDINAL, ratings.trace, weights) if everybody.exists else None
    rows: list[tuple[Cell, ...]] = []
    values = []
    for person, name in enumerate(ratings.people):
        codes = ratings.codes[person]
        labelled = int((~np.isnan(ratings.labels[person])).sum())
        counts = int(ratings.answers[person].sum()), labelled, int((codes == UNSURE).sum())
        with_others = agreeing_with_others(ratings.labels, person, ratings.trace, weights)
        without, change = _without(ratings.labels, person, ratings.trace, weights, everybody, draws)
        rows.append((name, *counts, with_others, without, change))
        values.append((f"without {name}", without))
    return _table(
        "annotators",
        "Each person: agreement with the others, and what alpha (labels in order) is without the person",
        _HEADS["annotators"],
        rows,
        values,
    )


def _without(
    labels: Floats64,
    person: int,
    trace: NDArray[np.int64],
    weights: Weights,
    everybody: Value,
    draws: Floats64 | None,
) -> tuple[Value, Value]:
    """Return the alpha of all annotators except `person`, and its difference from `everybody`, the alpha of all
    annotators. For the interval of the difference, each draw computes both alphas on the same resampled traces."""
    others = np.delete(labels, person, axis=0)
    value = alpha(others, Scale.ORDINAL).alpha
    if not value.exists or draws is None:
        return value, Value.none(value.reason or everybody.reason)
    if not several(trace):
        return value, Value(value.number - everybody.number)
    return value, difference(value, everybody, alpha_draws(others, Scale.ORDINAL, trace, weights), draws)


def gold_table(rated: RatedTraces, weights: Weights, name: str, caption: str) -> Table:
    """Tabulate how well each person and the majority agree with the gold labels, on labels and on validity."""
    ratings, rows, values = rated.last, list[tuple[Cell, ...]](), []
    for person, labels in (*zip(ratings.people, ratings.labels, strict=True), (MAJORITY, ratings.majority)):
        of_labels = RaterPair.of(labels, rated.gold, ratings.trace)
        of_validity = RaterPair.of(valid_of(labels), rated.valid, ratings.trace)
        if not len(of_validity):
            continue
        cells: list[Cell] = [person]
        for what, pair in (("labels", of_labels), ("validity", of_validity)):
            value = _kappa_with_gold(pair, weights)
            cells += [len(pair), agreeing(pair, weights), value]
            values.append((f"{what} of {person}", value))
        rows.append(tuple(cells))
    return _table(name, caption, _HEADS["gold"], rows, values, rules=(len(rows) - 1,) if rows else ())


def _kappa_with_gold(pair: RaterPair, weights: Weights) -> Value:
    """Return Cohen's kappa between labels and gold labels. It is undefined if all gold labels are equal, since
    kappa would then be 0 whatever the labels."""
    return Value.none(ONE_CLASS) if len(np.unique(pair.second)) == 1 else kappa(pair, weights)
