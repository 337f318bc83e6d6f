"""The heatmap of a campaign: a row per trace, a cell per step, coloured by how far people agree on it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from stepsight.app.markup.text import MARKS
from stepsight.app.relabel.agreement_tables import agreeing_shares, gold_name
from stepsight.core.arrays import Floats64
from stepsight.core.label import LABEL_NAMES, Label
from stepsight.core.metrics.ratings import RATING_NAMES
from stepsight.storage.labelling.results.ratings import RatedTrace, RatedTraces

ROWS = 50
"""On one page."""

Link = Callable[[RatedTrace, bool], str]
"""The address of a trace; the second argument says whether people disagree on it."""


class Order(StrEnum):
    """Which traces come first: those disagreed upon most, or those first in the queue."""

    DISAGREEMENT = "disagreement"
    QUEUE = "queue"


@dataclass(frozen=True, eq=False)
class Heatmap:
    """Traces in an order, and the share of equal pairs of each step, NaN where it has no two labels."""

    rated: RatedTraces
    shares: Floats64
    places: NDArray[np.int64]

    @classmethod
    def of(cls, rated: RatedTraces, order: Order) -> "Heatmap":
        shares = agreeing_shares(rated.last)
        places = np.arange(len(rated.traces))
        if order == Order.DISAGREEMENT:
            trace, apart = rated.last.trace, 1 - np.nan_to_num(shares, nan=1.0)
            places = np.argsort(-np.bincount(trace, apart, minlength=len(places)), kind="stable")
        return cls(rated, shares, places)

    @property
    def pages(self) -> int:
        return max(1, -(-len(self.places) // ROWS))

    def on_page(self, page: int) -> NDArray[np.int64]:
        """The places of the traces on a page, which counts from 1; the last page stands for all behind it."""
        start = (min(page, self.pages) - 1) * ROWS
        return self.places[start : start + ROWS]


@dataclass(frozen=True)
class HeatCell:
    """A step: the mark in its cell, what its title says of it, and how far people are `apart`, from 0 to 1, None
    where it has no two labels."""

    text: str
    title: str
    apart: float | None
    classes: str


@dataclass(frozen=True)
class HeatRow:
    """A trace, by its name, and where its cells lead."""

    name: str
    url: str
    cells: tuple[HeatCell, ...]


def heatmap_rows(heatmap: Heatmap, page: int, link: Link) -> list[HeatRow]:
    """The rows of a page."""
    return [_row(heatmap, int(place), link) for place in heatmap.on_page(page)]


def _row(heatmap: Heatmap, place: int, link: Link) -> HeatRow:
    trace, ratings = heatmap.rated.traces[place], heatmap.rated.last
    start, end = np.searchsorted(ratings.trace, [place, place + 1])
    unsure = ratings.counts[start:end, len(LABEL_NAMES)].any()
    url = link(trace, bool((heatmap.shares[start:end] < 1).any() or unsure))
    return HeatRow(trace.external_id, url, tuple(_cell(heatmap, step) for step in range(start, end)))


def _cell(heatmap: Heatmap, step: int) -> HeatCell:
    rated, share = heatmap.rated, float(heatmap.shares[step])
    counts, gold = rated.last.counts[step], gold_name(rated, step)
    labels = ", ".join(f"{count} {label}" for label, count in zip(RATING_NAMES, counts, strict=True) if count)
    title = f"step {int(rated.last.position[step]) + 1}: {labels or 'not labelled'}"
    classes = [name for name, on in (("alone", np.isnan(share)), ("differs", _differs(rated, step))) if on]
    return HeatCell(
        text=_text(counts),
        title=f"{title}; gold {gold}" if gold else title,
        apart=None if np.isnan(share) else 1 - share,
        classes=" ".join(classes),
    )


def _differs(rated: RatedTraces, step: int) -> bool:
    """Whether the majority says something else than the gold: than its label, or of validity where it has none."""
    majority, gold = float(rated.last.majority[step]), float(rated.gold[step])
    if np.isnan(majority):
        return False
    if np.isnan(gold):
        return bool(rated.valid[step] == (majority == Label.NEG))
    return majority != gold


def _text(counts: Sequence[int]) -> str:
    """A mark where all labels are the same, else how many of them are the commonest."""
    votes = [int(count) for count in counts[: len(LABEL_NAMES)]]
    if not any(votes):
        return MARKS["unsure"] if counts[len(LABEL_NAMES)] else ""
    if max(votes) == sum(votes):
        return MARKS[LABEL_NAMES[votes.index(max(votes))]]
    return f"{max(votes)}/{sum(votes)}"
