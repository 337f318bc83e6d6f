"""The heatmap of a campaign: a row per trace, a cell per step, coloured by how far people agree on it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from html import escape

import numpy as np
from numpy.typing import NDArray

from stepsight.app.relabel.agreement_tables import agreeing_shares, gold_name
from stepsight.core.arrays import Floats64
from stepsight.core.label import LABEL_NAMES, Label
from stepsight.core.metrics.ratings import RATING_NAMES
from stepsight.storage.labelling.results.ratings import RatedTrace, RatedTraces

ROWS = 50
"""On one page."""

_MARKS = {Label.NEG: "✕", Label.NEU: "○", Label.POS: "✓"}

Link = Callable[[RatedTrace, bool], str]
"""The address, as an attribute's value, of a trace of which it says whether people disagree on it."""


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


def heatmap_html(heatmap: Heatmap, page: int, link: Link) -> str:
    """The table of a page. The step that one person alone labelled has no colour."""
    chosen = heatmap.on_page(page)
    longest = max((heatmap.rated.traces[place].steps for place in chosen), default=0)
    head = "".join(f'<th scope="col">{number + 1}</th>' for number in range(longest))
    rows = "".join(_row(heatmap, int(place), link) for place in chosen)
    return f"""<div class="heat scroll" role="region" aria-label="Agreement step by step"><table data-moves>
<caption class="unseen">Each row is a trace, each column a step; a cell leads to its trace.</caption>
<thead><tr><th scope="col">trace</th>{head}</tr></thead><tbody>{rows}</tbody></table></div>{_KEY}"""


def _row(heatmap: Heatmap, place: int, link: Link) -> str:
    trace, ratings = heatmap.rated.traces[place], heatmap.rated.last
    start, end = np.searchsorted(ratings.trace, [place, place + 1])
    shares = heatmap.shares[start:end]
    unsure = ratings.counts[start:end, len(LABEL_NAMES)].any()
    url = link(trace, bool((shares < 1).any() or unsure))
    cells = "".join(
        _cell(heatmap, step, float(share), url) for step, share in zip(range(start, end), shares, strict=True)
    )
    return f'<tr><th scope="row"><a href="{url}">{escape(trace.external_id)}</a></th>{cells}</tr>'


def _cell(heatmap: Heatmap, step: int, share: float, url: str) -> str:
    ratings, gold = heatmap.rated.last, gold_name(heatmap.rated, step)
    counts = ratings.counts[step]
    told = ", ".join(f"{count} {said}" for said, count in zip(RATING_NAMES, counts, strict=True) if count)
    label = f"step {int(ratings.position[step]) + 1}: {told or 'not labelled'}"
    label += f"; gold {gold}" if gold else ""
    looks = [name for name, on in (("alone", np.isnan(share)), ("differs", _differs(heatmap.rated, step))) if on]
    kind = f' class="{" ".join(looks)}"' if looks else ""
    style = "" if np.isnan(share) else f' style="--x:{1 - share:.2f}"'
    told = f'aria-label="{escape(label)}" title="{escape(label)}"'
    return f'<td{kind}{style}><a href="{url}" tabindex="-1" {told}>{_text(counts)}</a></td>'


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
        return "?" if counts[len(LABEL_NAMES)] else ""
    if max(votes) == sum(votes):
        return _MARKS[Label(votes.index(max(votes)))]
    return f"{max(votes)}/{sum(votes)}"


_KEY = f"""<p class="key heat-key"><span><i style="--x:0"></i>all agree</span>
<span><i style="--x:.67"></i>2/3: two of three agree</span><span><i style="--x:1"></i>all differ</span>
<span>{_MARKS[Label.NEG]} neg</span><span>{_MARKS[Label.NEU]} neu</span><span>{_MARKS[Label.POS]} pos</span>
<span>? only unsure</span><span><i class="alone"></i>one label</span>
<span><i class="differs"></i>the majority is not the gold</span></p>"""
