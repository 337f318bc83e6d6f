"""The distribution of an evaluator's scores by gold label, in the sidebar of Browse.

It is drawn as histograms, or as a table if the evaluator gives its verdicts in words. Each number links to its
traces.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from markupsafe import Markup

from stepsight.app.browse.address import Address
from stepsight.app.browse.facets import FilterLink, bin_range, item_noun
from stepsight.app.markup.text import counted
from stepsight.app.web.html import render
from stepsight.core.arrays import Ints
from stepsight.storage.browse.browse import Distribution
from stepsight.storage.browse.columns import BINS

# The label whose colour each gold has.
_COLOURS = {"wrong": "neg", "redundant": "neu", "right": "pos", "with": "neu", "without": "pos"}
_GOLD = {"with": "redundant", "without": "not redundant"}


@dataclass(frozen=True)
class Histogram:
    """A histogram of the steps or solutions that have the gold label `gold`. `noun` names one of them, and `median`
    is the range of the bin that contains the median. `bars` are the bins, the fullest of which holds `highest`."""

    gold: str
    noun: str
    colour: str
    total: int
    highest: int
    median: str
    bars: list[FilterLink]

    @classmethod
    def of(cls, gold: str, counts: Ints, address: Address) -> "Histogram":
        noun = item_noun(gold)
        median = int((2 * counts.cumsum() >= counts.sum()).argmax())
        bars = [
            FilterLink.of(
                address,
                "bin",
                f"{gold}-{place / BINS:.2f}",
                f"{bin_range(place)}: {_counted(count, noun)}",
                count,
            )
            for place, count in enumerate(counts.tolist())
        ]
        named = _GOLD.get(gold, gold)
        return cls(named, noun, _COLOURS[gold], int(counts.sum()), int(counts.max()), bin_range(median), bars)

    def verdicts(self, titles: tuple[str, str]) -> list[FilterLink]:
        """Return the two bins of verdicts in words, which are stored as 0 and 1."""
        ends = zip((self.bars[0], self.bars[-1]), titles, strict=True)
        return [replace(bar, text=f"{title}: {_counted(bar.count or 0, self.noun)}") for bar, title in ends]


def distribution_html(
    distribution: Distribution | None, address: Address, words: Mapping[str, str] | None = None
) -> Markup:
    """Render a histogram for each gold label that occurs, or empty markup if nothing is counted. `words` maps each
    label to the word that the evaluator uses for it. It is None if the evaluator gives numbers."""
    if distribution is None or not distribution.counts.any():
        return Markup()
    histograms = [
        Histogram.of(gold, counts, address)
        for gold, counts in zip(distribution.kinds, distribution.counts, strict=True)
        if counts.any()
    ]
    if words is not None:
        titles = (words["pos"], "marked") if distribution.of_solutions else (words["neg"], words["pos"])
        return render(
            "browse/said.html",
            items="solutions" if distribution.of_solutions else "steps",
            titles=titles,
            rows=[(one.gold, one.verdicts(titles)) for one in histograms],
        )
    return render(
        "browse/distribution.html",
        title="Redundancy of solutions" if distribution.of_solutions else "Validity of steps",
        score="redundancy" if distribution.of_solutions else "validity",
        histograms=histograms,
        rows=[(bin_range(place), [one.bars[place] for one in histograms]) for place in reversed(range(BINS))],
        threshold=distribution.threshold,
    )


def _counted(count: int, noun: str) -> str:
    item, of, rest = noun.partition(" with")
    return f"{counted(count, item)}{of}{rest}"
