"""The distribution of an evaluator's scores by gold label, in the sidebar of Browse.

It is drawn as histograms, or as a table if the evaluator gives its verdicts in words. Each number links to its
traces.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from stepsight.app.browse.address import Address
from stepsight.app.markup.text import counted
from stepsight.app.web.html import render
from stepsight.core.arrays import Ints
from stepsight.storage.browse.browse import Distribution
from stepsight.storage.browse.verdict_columns import BINS, SOLUTION_GOLD

# The label whose colour each gold has.
_COLOURS = {"wrong": "neg", "redundant": "neu", "right": "pos", "with": "neu", "without": "pos"}
_GOLD = {"with": "redundant", "without": "not redundant"}


@dataclass(frozen=True)
class Bar:
    """One bin of a histogram. `height` is a percentage of the highest bin. `url` is the URL of the list of traces
    that have a step in the bin, or "" if the bin is empty."""

    count: int
    height: float
    title: str
    url: str
    chosen: bool


@dataclass(frozen=True)
class Histogram:
    """A histogram of the steps or solutions that have the gold label `gold`. `noun` names one of them, and `median`
    is the range of the bin that contains the median."""

    gold: str
    noun: str
    colour: str
    total: int
    median: str
    bars: list[Bar]


def distribution_html(
    distribution: Distribution | None, address: Address, words: Mapping[str, str] | None = None
) -> Markup:
    """Render a histogram for each gold label that occurs, or empty markup if nothing is counted. `words` maps each
    label to the word that the evaluator uses for it. It is None if the evaluator gives numbers."""
    if distribution is None or not distribution.counts.any():
        return Markup()
    histograms = [
        _histogram(gold, counts, address)
        for gold, counts in zip(distribution.kinds, distribution.counts, strict=True)
        if counts.any()
    ]
    if words is not None:
        titles = [words["neg"], words["pos"]]
        if distribution.of_solutions:
            titles = [words["pos"], "marked"]
        rows = [_verdict_bars(one, titles) for one in histograms]
        return render(
            "browse/said.html",
            items="solutions" if distribution.of_solutions else "steps",
            titles=titles,
            rows=rows,
        )
    return render(
        "browse/distribution.html",
        title="Redundancy of solutions" if distribution.of_solutions else "Validity of steps",
        score="redundancy" if distribution.of_solutions else "validity",
        histograms=histograms,
        rows=[(_range(place), [one.bars[place] for one in histograms]) for place in reversed(range(BINS))],
        threshold=distribution.threshold,
    )


def _verdict_bars(histogram: Histogram, titles: Sequence[str]) -> tuple[str, list[Bar]]:
    """Return a gold label with two bars, one for each verdict. Verdicts in words are stored as 0 and
    1, so they fill the lowest and the highest bin of the histogram."""
    bars = [histogram.bars[0], histogram.bars[-1]]
    return histogram.gold, [
        replace(bar, title=f"{title}: {_counted(bar.count, histogram.noun)}")
        for bar, title in zip(bars, titles, strict=True)
    ]


def _noun(kind: str) -> str:
    """Return the name of an item with this gold label."""
    return f"solution {kind} redundant steps" if kind in SOLUTION_GOLD else f"{kind} step"


def _counted(count: int, noun: str) -> str:
    item, of, rest = noun.partition(" with")
    return f"{counted(count, item)}{of}{rest}"


def bin_words(bin: str, words: Mapping[str, str] | None) -> str:
    """Describe in words the filter for a histogram bin such as `right-0.95`. `words` means the same as for
    `distribution_html`."""
    gold, _, least = bin.partition("-")
    place = round(float(least) * BINS)
    score, names = (", redundancy", ("pos", "neu")) if gold in SOLUTION_GOLD else (" with validity", ("neg", "pos"))
    said = (
        dict(zip((0, BINS - 1), (words.get(name, "") for name in names), strict=True)) if words is not None else {}
    )
    item = f"A {_noun(gold)}"
    return f"{item}: {said[place]}" if place in said else f"{item}{score} {_range(place)}"


def _histogram(gold: str, counts: Ints, address: Address) -> Histogram:
    total, highest = int(counts.sum()), int(counts.max())
    median = int((2 * counts.cumsum() >= total).argmax())
    bars = [_bar(gold, place, int(count), highest, address) for place, count in enumerate(counts)]
    return Histogram(_GOLD.get(gold, gold), _noun(gold), _COLOURS[gold], total, _range(median), bars)


def _bar(gold: str, place: int, count: int, highest: int, address: Address) -> Bar:
    bin = f"{gold}-{place / BINS:.2f}"
    chosen = address.bin == bin
    title = f"{_range(place)}: {_counted(count, _noun(gold))}"
    url = address.loosened("bin").url() if chosen else address.narrowed(bin=bin)
    return Bar(count, 100 * count / highest, title, url if count or chosen else "", chosen)


def _range(place: int) -> str:
    return f"{place / BINS:.2f}–{(place + 1) / BINS:.2f}"
