"""Tables of agreement: over all steps, by step number, by view, by pair of annotators, and with the gold labels.

A view is the part of a trace that annotators saw when they labelled a step. In a stepwise campaign, they first see
only the steps up to this one, and may change the label later. Their final labels count as a second view.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from stepsight.core.arrays import Floats64, Ints
from stepsight.core.metrics.agreement import (
    RATING_NAMES,
    UNLABELLED,
    UNSURE,
    Agreement,
    RaterPair,
    Ratings,
    Scale,
    agreeing,
    agreeing_with_others,
    alpha,
    kappa,
    valid_of,
)
from stepsight.core.metrics.bootstrap import Value, Weights, difference, mean
from stepsight.core.metrics.table import ONE_CLASS
from stepsight.core.trace import LABEL_NAMES, Label
from stepsight.storage.labelling.ratings import CampaignRatings, RatedTraces
from stepsight.training.report.tables import Cell, CellKind, Column, Table, show, table_of

FIGURES = ("labels (neg < neu < pos)", "labels", "valid or not", "first error")
"""The rows of the first table: labels as an ordered scale, labels as names, neg against the rest, and the first
error."""

# Later steps share a row.
_NAMED = 4
_text, _count, _number = (partial(Column, kind=kind) for kind in (CellKind.TEXT, CellKind.COUNT, CellKind.NUMBER))
_OF, _UNIT = _text("of", "of"), _text("unit", "")
_ALPHA, _ALPHA_IN_ORDER = _number("alpha", "alpha"), _number("alpha", "alpha (neg < neu < pos)")
_PAIRS_AGREE, _SAME_VALIDITY = Column("agreeing", "pairs that agree, %"), Column("gold", "same validity as gold, %")
_UNITS, _PAIRS = _count("units", "with two labels or more"), _count("pairs", "pairs")
_TRACES, _LABELS, _STEPS = _count("traces", "traces"), _count("labels", "labels"), _count("steps", "steps")
_VIEW, _CAMPAIGN = _text("view", "in view"), _text("campaign", "campaign")
_SHARES = tuple(Column(name, f"{name}, %") for name in LABEL_NAMES)
_ANNOTATOR, _FIRST, _SECOND = _text("annotator", "annotator"), _text("first", "annotator"), _text("second", "and")
_KAPPA, _SAME_LABEL = _number("kappa", "kappa"), Column("agreeing", "same label, %")
_WITHOUT, _CHANGE = _number("without", "alpha without this person"), _number("change", "rise in alpha")
# For labels and for validity: the number of steps, the share of agreement, and kappa.
_WITH_GOLD = {
    "labels": (
        _count("steps", "steps with a gold label"),
        Column("accuracy", "same label, %"),
        _number("kappa", "kappa of labels"),
    ),
    "validity": (
        _count("valid_steps", "steps with gold validity"),
        Column("valid_accuracy", "same validity, %"),
        _number("valid_kappa", "kappa of validity"),
    ),
}

STEPWISE = "stepwise"
NOTHING = "there is nothing to compare"
# Larger numbers of later steps share one row.
_MOST_LATER = 8

Codes = NDArray[np.int8]
_Row = dict[Column, Cell]


def overall_table(rated: RatedTraces, weights: Weights) -> Table:
    """Tabulate Krippendorff's alpha and the share of agreeing pairs, for step labels and for first errors."""
    ratings, traces = rated.last, np.arange(len(rated.traces))
    ratings_of = (
        (ratings.labels, Scale.ORDINAL, ratings.trace, "steps"),
        (ratings.labels, Scale.NOMINAL, ratings.trace, "steps"),
        (ratings.validity, Scale.NOMINAL, ratings.trace, "steps"),
        (ratings.first_errors, Scale.NOMINAL, traces, "traces"),
    )
    alphas = [
        (figure, alpha(values, level, trace, weights), unit)
        for figure, (values, level, trace, unit) in zip(FIGURES, ratings_of, strict=True)
    ]
    return _alphas("agreement", "Krippendorff's alpha, with 95 % intervals over traces", alphas)


def _alphas(name: str, caption: str, alphas: Sequence[tuple[str, Agreement, str]]) -> Table:
    """Build a table with a row for each agreement, given with its name and the unit that is rated."""
    rows: list[_Row] = [
        {
            _OF: of,
            _ALPHA: agreement.alpha,
            _PAIRS_AGREE: agreement.agreeing,
            _UNITS: agreement.n_units,
            _UNIT: unit,
            _PAIRS: agreement.n_pairs,
        }
        for of, agreement, unit in alphas
    ]
    return table_of(name, caption, rows, reasons((str(row[_OF]), row[_ALPHA]) for row in rows))


def step_table(rated: RatedTraces) -> Table:
    """Tabulate the ratings of every step. This table is only for download."""
    ratings, shares = rated.last, agreeing_shares(rated.last)
    names = [_text(name, name) for name in ("dataset", "trace")]
    counts = [_count(name, name) for name in ("step", *RATING_NAMES)]
    labels = [_text(name, name) for name in ("majority", "gold")]
    columns, rows = (*names, *counts, *labels, _PAIRS_AGREE), list[_Row]()
    for step, place in enumerate(ratings.trace):
        trace = rated.traces[place]
        numbers = int(ratings.position[step]) + 1, *map(int, ratings.counts[step])
        share = Value.none("") if np.isnan(shares[step]) else Value(float(shares[step]))
        given = label_name(ratings.majority[step]), gold_name(rated, step)
        cells = trace.dataset, trace.external_id, *numbers, *given, share
        rows.append(dict(zip(columns, cells, strict=True)))
    return table_of("steps", "Every step", rows, least=columns)


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


def reasons(values: Iterable[tuple[str, Cell]]) -> tuple[str, ...]:
    """Return one note for each reason why values are missing, naming some of the values."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for name, value in values:
        if isinstance(value, Value) and not value.exists and value.reason:
            by_reason[value.reason].append(name)
    notes = []
    for reason, names in by_reason.items():
        more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
        notes.append(f"{', '.join(names[:_NAMED])}{more}: {reason}")
    return tuple(notes)


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
    rows: list[_Row] = []
    for side in sides:
        ratings = side.ratings
        agreement = alpha(ratings.labels, Scale.ORDINAL, ratings.trace, weights)
        labelled = ~np.isnan(ratings.labels)
        labels, trace = ratings.labels[labelled], np.broadcast_to(ratings.trace, labelled.shape)[labelled]
        valid = np.broadcast_to(rated.valid, labelled.shape)[labelled]
        judged = ~np.isnan(valid)
        right = mean((labels[judged] != Label.NEG) == valid[judged], trace[judged], weights, NOTHING)
        rows.append(
            {
                _VIEW: side.view,
                _CAMPAIGN: side.campaign,
                _TRACES: ratings.traces,
                _LABELS: len(labels),
                _ALPHA_IN_ORDER: agreement.alpha,
                _PAIRS_AGREE: agreement.agreeing,
                **{
                    column: mean(labels == label, trace, weights, NOTHING)
                    for column, label in zip(_SHARES, Label, strict=True)
                },
                _SAME_VALIDITY: right,
            }
        )
    notes = reasons((f"{row[_VIEW]}, {row[_CAMPAIGN]}", row[_ALPHA_IN_ORDER]) for row in rows)
    return table_of("views", "The two views: how far people agree, and what they say", rows, notes)


def mind_table(rated: RatedTraces, weights: Weights) -> Table:
    """Cross-tabulate the labels that annotators first gave to steps with their final labels."""
    first, last = rated.first.codes, rated.last.codes
    trace = np.broadcast_to(rated.last.trace, first.shape).ravel()
    caption = "Changes of mind: from the label with the steps so far in view to the final one"
    return _table("minds", caption, "then ", first.ravel(), last.ravel(), trace, weights)


def evidence_table(rated: RatedTraces, weights: Weights) -> Table:
    """Tabulate how far people agree on the steps that changed their labels. The table has no row if nobody named
    one."""
    alphas = []
    if np.isfinite(rated.evidence).any():
        of_steps = alpha(rated.evidence, Scale.NOMINAL, rated.last.trace, weights)
        alphas.append(("step that changed the label", of_steps, "steps"))
    return _alphas("evidence", "Krippendorff's alpha of the steps that changed a label", alphas)


def majority_table(first: ViewRatings, second: ViewRatings, weights: Weights) -> Table:
    """Cross-tabulate the majority labels in one view with those in another."""
    codes = [np.nan_to_num(side.ratings.majority, nan=UNLABELLED).astype(np.int8) for side in (first, second)]
    names = [f"{side.campaign}, {side.view}" for side in (first, second)]
    caption = f"The majority: {names[0]} (rows), against {names[1]} (columns)"
    return _table("majorities", caption, "", codes[0], codes[1], first.ratings.trace, weights)


def _table(name: str, caption: str, then: str, before: Codes, after: Codes, trace: Ints, weights: Weights) -> Table:
    """Cross-tabulate two labels of each step, and give the share of steps on which they differ.

    Steps with only one of the two labels are left out. If `then` is not "", it precedes the column names, and
    "unsure" counts as a label.
    """
    both = (before != UNLABELLED) & (after != UNLABELLED)
    before, after, trace = before[both], after[both], trace[both]
    # A majority is never unsure.
    names = RATING_NAMES if then else LABEL_NAMES
    of_label, changed = _text("first", "first" if then else "label"), Column("changed", "different label, %")
    to_labels = [_count(f"then_{label}", f"{then}{label}") for label in names]

    def row(label: str, of: NDArray[np.bool_]) -> _Row:
        counts = [int((after[of] == other).sum()) for other in range(len(names))]
        moved = mean(after[of] != before[of], trace[of], weights, NOTHING)
        return {
            of_label: label,
            _LABELS: int(of.sum()),
            **dict(zip(to_labels, counts, strict=True)),
            changed: moved,
        }

    rows = [row(label, before == code) for code, label in enumerate(names)]
    rows.append(row("all", np.ones(len(before), bool)))
    value = kappa(RaterPair(before.astype(np.int64), after.astype(np.int64), trace), weights)
    note = f"Cohen's kappa {show(value, CellKind.NUMBER)}" if value.exists else value.reason
    return table_of(name, caption, rows, (note,), rules=(len(names),))


def later_table(rated: RatedTraces, weights: Weights) -> Table:
    """Tabulate how many later steps were visible when labels were last changed. The shares in a row are taken over
    the labels of steps that are followed by at least that many steps."""
    first, last = rated.first.codes, rated.last.codes
    lengths = np.bincount(rated.last.trace, minlength=rated.last.traces)
    after = np.broadcast_to(lengths[rated.last.trace] - 1 - rated.last.position, first.shape)
    trace = np.broadcast_to(rated.last.trace, first.shape)
    in_both = (first != UNLABELLED) & (last != UNLABELLED)
    changed = in_both & (first != last)
    columns = (
        _text("later", "later steps in view"),
        _count("changed", "labels changed then"),
        _count("to_neg", "of these to neg"),
        _count("from_neg", "of these from neg"),
        Column("share", "of the labels that could, %"),
    )
    rows: list[_Row] = []
    for name, eligible, reach in _later_rows(rated.later, changed, in_both, after):
        moved = changed & eligible
        counts = (moved, moved & (last == Label.NEG), moved & (first == Label.NEG))
        sums = (int(count.sum()) for count in counts)
        cells: tuple[Cell, ...] = (name, *sums, mean(eligible[reach], trace[reach], weights, NOTHING))
        rows.append(dict(zip(columns, cells, strict=True)))
    return table_of("later", "When minds changed: by how many later steps were in view", rows)


def _later_rows(
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


def pair_table(rated: RatedTraces, weights: Weights) -> Table:
    """Tabulate Cohen's kappa and the agreement on first errors for every two people who share a trace."""
    ratings, traces, rows = rated.last, np.arange(len(rated.traces)), list[_Row]()
    for first, second in combinations(range(len(ratings.people)), 2):
        pair = RaterPair.of(ratings.labels[first], ratings.labels[second], ratings.trace)
        errors = RaterPair.of(ratings.first_errors[first], ratings.first_errors[second], traces)
        if not len(pair) and not len(errors):
            continue
        rows.append(
            {
                _FIRST: ratings.people[first],
                _SECOND: ratings.people[second],
                _TRACES: pair.traces,
                _STEPS: len(pair),
                _KAPPA: kappa(pair, weights),
                _SAME_LABEL: agreeing(pair, weights),
                _count("known", "traces where both give a first error"): len(errors),
                Column("first_error", "same first error, %"): agreeing(errors, weights),
            }
        )
    caption = "Each pair of people: Cohen's kappa and shared verdicts, with 95 % intervals over traces"
    notes = reasons((f"{row[_FIRST]} and {row[_SECOND]}", row[_KAPPA]) for row in rows)
    return table_of("pairs", caption, rows, notes)


def annotator_table(rated: RatedTraces, weights: Weights) -> Table:
    """Tabulate how well each person agrees with all others, and the alpha without that person. If alpha rises
    without a person, that person lowers the agreement."""
    ratings, rows = rated.last, list[_Row]()
    everybody = alpha(ratings.labels, Scale.ORDINAL, ratings.trace, weights).alpha
    for person, name in enumerate(ratings.people):
        with_others = agreeing_with_others(ratings.labels, person, ratings.trace, weights)
        without = alpha(np.delete(ratings.labels, person, axis=0), Scale.ORDINAL, ratings.trace, weights).alpha
        rows.append(
            {
                _ANNOTATOR: name,
                _TRACES: int(ratings.answers[person].sum()),
                _LABELS: int((~np.isnan(ratings.labels[person])).sum()),
                _count("unsure", "unsure"): int((ratings.codes[person] == UNSURE).sum()),
                Column("agreeing", "same label as others, %"): with_others,
                # Its interval overlaps that of all annotators together; the interval of the change does not.
                _WITHOUT: Value(without.number, without.reason),
                _CHANGE: difference(without, everybody),
            }
        )
    caption = "Each person: agreement with the others, and what alpha (neg < neu < pos) is without the person"
    # With one of two people left out, there is nobody to agree with.
    notes = reasons((f"without {row[_ANNOTATOR]}", row[_WITHOUT]) for row in rows if len(rows) > 2)
    return table_of("annotators", caption, rows, notes)


def gold_table(rated: RatedTraces, weights: Weights, name: str, caption: str) -> Table:
    """Tabulate how well each person and the majority agree with the gold labels, on labels and on validity."""
    ratings, rows, kappas = rated.last, list[_Row](), list[tuple[str, Cell]]()
    majority = (("the majority", ratings.majority),) if len(ratings.people) > 1 else ()
    for person, labels in (*zip(ratings.people, ratings.labels, strict=True), *majority):
        pairs = {
            "labels": RaterPair.of(labels, rated.gold, ratings.trace),
            "validity": RaterPair.of(valid_of(labels), rated.valid, ratings.trace),
        }
        if not len(pairs["validity"]):
            continue
        row: _Row = {_ANNOTATOR: person}
        for what, (count, accuracy, agreement) in _WITH_GOLD.items():
            pair = pairs[what]
            # Undefined if all gold labels are equal, since kappa would be 0 whatever the annotators' labels.
            one_class = len(np.unique(pair.second)) == 1
            value = Value.none(ONE_CLASS) if one_class else kappa(pair, weights)
            row |= {count: len(pair), accuracy: agreeing(pair, weights), agreement: value}
            kappas.append((f"{what} of {person}", value))
        rows.append(row)
    return table_of(name, caption, rows, reasons(kappas), rules=(len(rows) - 1,) if len(rows) > 1 else ())
