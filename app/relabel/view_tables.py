"""Views, as tables: what people say with the steps before in view, and what with all of them.

In a stepwise campaign each person says both: something with the steps so far in view, and what stands in the end.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.relabel.agreement_tables import reasons
from core.agreement import Level, alpha
from core.label import LABEL_NAMES, Label
from core.metrics.bootstrap import Weights, share
from core.metrics.kappa import RaterPair, kappa
from core.metrics.ratings import SAID, UNLABELLED, Ratings
from storage.labelling.ratings import CampaignRatings, RatedTraces
from training.tables import Cell, Column, Kind, Table

STEPWISE = "stepwise"
NOTHING = "there is nothing to compare"

# More later steps than these share a row.
_MOST_LATER = 8

Ints = NDArray[np.int64]
Codes = NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Side:
    """What people of a campaign said in one view."""

    view: str
    campaign: str
    ratings: Ratings


def sides_of(found: CampaignRatings, rated: RatedTraces) -> list[Side]:
    """The views that a campaign asks for: of a stepwise one both."""
    name = found.campaign.name
    if found.campaign.view != STEPWISE:
        return [Side("whole trace", name, rated.last)]
    return [Side("steps so far", name, rated.first), Side("in the end", name, rated.last)]


def shared_traces(found: RatedTraces, other: RatedTraces) -> tuple[RatedTraces, RatedTraces]:
    """The traces of two campaigns that are the same, in the order of the first."""
    places = {(trace.trace_id, trace.digest): place for place, trace in enumerate(other.traces)}
    both = [(i, places.get((trace.trace_id, trace.digest))) for i, trace in enumerate(found.traces)]
    pairs = [(one, place) for one, place in both if place is not None]
    return found.of_traces([one for one, _ in pairs]), other.of_traces([place for _, place in pairs])


def view_table(sides: Sequence[Side], rated: RatedTraces, weights: Weights) -> Table:
    """Each view: how far people agree in it, and what they say. All sides are of the traces of `rated`."""
    rows: list[tuple[Cell, ...]] = []
    told = []
    for side in sides:
        ratings = side.ratings
        found = alpha(ratings.labels, Level.ORDINAL, ratings.trace, weights)
        known = ~np.isnan(ratings.labels)
        labels, trace = ratings.labels[known], np.broadcast_to(ratings.trace, known.shape)[known]
        valid = np.broadcast_to(rated.valid, known.shape)[known]
        judged = ~np.isnan(valid)
        said = [share(labels == label, trace, weights, NOTHING) for label in Label]
        right = share((labels[judged] != Label.NEG) == valid[judged], trace[judged], weights, NOTHING)
        rows.append(
            (side.view, side.campaign, ratings.traces, len(labels), found.alpha, found.agreeing, *said, right)
        )
        told.append((f"{side.view}, {side.campaign}", found.alpha))
    return Table(
        "views",
        "The two views: how far people agree, and what they say",
        (
            Column("view", "in view", Kind.TEXT),
            Column("campaign", "campaign", Kind.TEXT),
            Column("traces", "traces", Kind.COUNT),
            Column("labels", "labels", Kind.COUNT),
            Column("alpha", "alpha, in order", Kind.NUMBER),
            Column("agreeing", "pairs that agree, %"),
            *(Column(name, f"{name}, %") for name in LABEL_NAMES),
            Column("gold", "validity as the gold, %"),
        ),
        tuple(rows),
        reasons(told),
    )


def mind_table(rated: RatedTraces, weights: Weights) -> Table:
    """What people said first, and what of it they said in the end."""
    first, last = rated.first.codes, rated.last.codes
    trace = np.broadcast_to(rated.last.trace, first.shape).ravel()
    caption = "Changes of mind: from the label with the steps so far in view to the one that stands"
    return _moves("minds", caption, "then ", first.ravel(), last.ravel(), trace, weights)


def majority_table(first: Side, second: Side, weights: Weights) -> Table:
    """What the majority of one view says, against that of the other."""
    codes = [np.nan_to_num(side.ratings.majority, nan=UNLABELLED).astype(np.int8) for side in (first, second)]
    names = [f"{side.campaign}, {side.view}" for side in (first, second)]
    caption = f"The majority: {names[0]} (rows), against {names[1]} (columns)"
    return _moves("majorities", caption, "", codes[0], codes[1], first.ratings.trace, weights)


def _moves(name: str, caption: str, then: str, before: Codes, after: Codes, trace: Ints, weights: Weights) -> Table:
    """How often each label became which, and the share that changed; steps without one of the two do not count."""
    both = (before != UNLABELLED) & (after != UNLABELLED)
    before, after, trace = before[both], after[both], trace[both]
    rows: list[tuple[Cell, ...]] = []
    # A majority is never unsure.
    names = SAID if then else LABEL_NAMES
    for code, said in enumerate(names):
        of = before == code
        counts = [int((after[of] == other).sum()) for other in range(len(names))]
        rows.append((said, int(of.sum()), *counts, share(after[of] != code, trace[of], weights, NOTHING)))
    totals = [int((after == other).sum()) for other in range(len(names))]
    rows.append(("all", len(before), *totals, share(before != after, trace, weights, NOTHING)))
    pair = RaterPair(before.astype(np.int64), after.astype(np.int64), trace)
    value = kappa(pair, weights)
    note = f"Cohen's kappa {value.number:.3f} [{value.low:.3f}, {value.high:.3f}]" if value.exists else value.reason
    return Table(
        name,
        caption,
        (
            Column("first", "first" if then else "label", Kind.TEXT),
            Column("labels", "labels", Kind.COUNT),
            *(Column(f"then_{said}", f"{then}{said}", Kind.COUNT) for said in names),
            Column("changed", "another label, %"),
        ),
        tuple(rows),
        (note,),
        rules=(len(names),),
    )


def later_table(rated: RatedTraces, weights: Weights) -> Table:
    """After how many later steps minds changed: of the labels whose step has so many steps after it, those whose
    last change came when just so many of these were in view."""
    first, last = rated.first.codes, rated.last.codes
    lengths = np.bincount(rated.last.trace, minlength=rated.last.traces)
    after = np.broadcast_to(lengths[rated.last.trace] - 1 - rated.last.position, first.shape)
    trace = np.broadcast_to(rated.last.trace, first.shape)
    given = (first != UNLABELLED) & (last != UNLABELLED)
    changed = given & (first != last)
    rows = [
        (name, *_when(changed & of, first, last), share(of[reach], trace[reach], weights, NOTHING))
        for name, of, reach in _later(rated.later, changed, given, after)
    ]
    return Table(
        "later",
        "When minds changed: by how many later steps were in view",
        (
            Column("later", "later steps in view", Kind.TEXT),
            Column("changed", "labels changed then", Kind.COUNT),
            Column("to_neg", "of these to neg", Kind.COUNT),
            Column("from_neg", "of these from neg", Kind.COUNT),
            Column("share", "of the labels that could, %"),
        ),
        tuple(rows),
    )


def _later(
    later: NDArray[np.float64], changed: NDArray[np.bool_], given: NDArray[np.bool_], after: Ints
) -> Iterator[tuple[str, NDArray[np.bool_], NDArray[np.bool_]]]:
    """For each number of later steps its name, the labels changed then, and those that could have been."""
    most = int(after.max(initial=0))
    for count in range(1, min(most, _MOST_LATER) + 1):
        rest = count == _MOST_LATER and most > count
        when = later >= count if rest else later == count
        yield f"{count} or more" if rest else f"{count}", changed & when, given & (after >= count)


def _when(changed: NDArray[np.bool_], first: Codes, last: Codes) -> tuple[int, int, int]:
    to, back = changed & (last == Label.NEG), changed & (first == Label.NEG)
    return int(changed.sum()), int(to.sum()), int(back.sum())
