"""The filters of Browse: the table of their titles and values, the sidebar with the count of each value and the
distribution of an evaluator's scores, and the active filters as chips.

The distribution is drawn as histograms, or as a table if the evaluator gives its verdicts in words. Each number
links to its traces.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from markupsafe import Markup

from stepsight.app.browse.address import Address
from stepsight.app.browse.evaluator_choice import EvaluatorChoice
from stepsight.app.markup.marking import excerpt
from stepsight.app.web.html import macro, render
from stepsight.core.arrays import Ints
from stepsight.core.errors import counted
from stepsight.storage.browse.browse import Distribution, FieldCounts
from stepsight.storage.browse.columns import BINS, SOLUTION_GOLD
from stepsight.storage.browse.filter_columns import CHANGES
from stepsight.storage.browse.metadata import MetaCondition, MetaField, quoted

Counts = Mapping[str, Mapping[str, int]]
Words = Mapping[str, str] | None
"""The words of the list's evaluator for a verdict on a step, keyed by label, or None if it gives numbers."""

_TEMPLATE = "browse/facets.html"
_OPERATORS = {"=": ": ", "~": " contains ", ">=": " ≥ ", "<=": " ≤ "}
_EMPTY = "(empty)"
# The number of metadata fields shown, and the number of characters shown of a value.
_SHOWN = 8
_LONGEST = 80


@dataclass(frozen=True)
class FilterLink:
    """A value of a filter in words, and the URL that sets it or, if it is `chosen`, removes the filter.

    `count` is the number of traces, steps or solutions that have the value, or None if it is unknown. The URL is ""
    if the list would be empty. `key` names the link on the page.
    """

    text: str
    url: str = ""
    count: int | None = None
    chosen: bool = False
    key: str = ""

    @classmethod
    def of(cls, address: Address, name: str, value: object, text: str, count: int | None = None) -> "FilterLink":
        """Return the link of a value of the filter `name`, on the page of an address."""
        chosen = str(getattr(address, name)) == str(value)
        if count == 0 and not chosen:
            return cls(text, count=count)
        url = address.loosened(name).url() if chosen else address.narrowed(**{name: value})
        return cls(text, url, count, chosen, f"{name} {value}")


@dataclass(frozen=True)
class Filter:
    """A filter of the sidebar: its title and its values in words.

    `values` is empty if the values depend on the dataset. `about_evaluator` is True for a filter on an evaluator's
    verdicts.
    """

    title: str
    values: Mapping[object, str] = field(default_factory=dict)
    about_evaluator: bool = False


_FIRST_ERRORS = {
    "gold": Filter(
        "Gold",
        {
            "error": "has an error",
            "clean": "has no error",
            "redundant": "has a redundant step",
            "not-redundant": "has no redundant step",
            "missing": "no gold",
        },
    ),
    "error_at": Filter(
        "First error is", {"early": "in the first third", "middle": "in the middle", "late": "in the last third"}
    ),
    "group": Filter("Class"),
    "mistake": Filter(
        "First error",
        {
            "right": "right",
            "missed": "missed error",
            "false-alarm": "false alarm",
            "wrong-step": "blames another step",
            "wrong": "wrong in any way",
        },
        about_evaluator=True,
    ),
    "verdict": Filter(
        "Solution judged",
        {"valid": "valid", "invalid": "not valid", "redundant": "redundant", "unjudged": "not judged"},
        about_evaluator=True,
    ),
    "modes": Filter("Online and offline", {"agree": "agree", "disagree": "disagree"}, about_evaluator=True),
    "change": Filter(
        "Moved by later steps", {least: f"{least:g} or more" for least in CHANGES}, about_evaluator=True
    ),
    "against": Filter("Verdict differs from", about_evaluator=True),
}
FILTERS = {
    False: _FIRST_ERRORS,
    True: _FIRST_ERRORS
    | {
        "mistake": Filter(
            "Redundant steps",
            {
                "right": "right",
                "missed": "missed",
                "false-alarm": "false alarm",
                "wrong": "wrong in any way",
            },
            about_evaluator=True,
        )
    },
}
"""The filters of the sidebar by name, for outcomes that concern first errors (False) or redundancy (True)."""
_TITLES = {"text": "Search", "length": "Steps"}


@dataclass(frozen=True)
class ActiveFilters:
    """The active filters of an address. If `on_redundancy` is True, outcomes concern redundant errors."""

    address: Address
    words: Words = None
    on_redundancy: bool = False

    @property
    def links(self) -> list[FilterLink]:
        """The active filters, each with its key in the totals and the URL of the page without it. Each filter on
        metadata is listed separately."""
        links = []
        for name in self.address.active:
            if name == "meta":
                links += [
                    FilterLink(
                        meta_words(condition), self.address.without_meta(condition).url(), key=f"meta {condition}"
                    )
                    for condition in self.address.meta
                ]
            else:
                links.append(FilterLink(self._describe(name), self.address.loosened(name).url(), key=name))
        return links

    def chips_html(self) -> Markup:
        """Render the active filters, with a link to remove each one and a link to remove them all. Returns empty
        markup if no filter is active."""
        if not self.address.active:
            return Markup()
        return macro(_TEMPLATE, "chips", self.links, self.address.cleared)

    def loosen_html(self, totals: Mapping[str, int]) -> Markup:
        """Render suggestions for an empty list: the filters whose removal would bring traces back. `totals` maps
        the key of each active filter to the number of traces that match without this filter."""
        if not self.address.active:
            return Markup('<p class="hint empty">This dataset has no traces.</p>')
        ways = [(link, counted(totals[link.key], "trace")) for link in self.links if totals[link.key]]
        return macro(_TEMPLATE, "loosen", ways, self.address.cleared)

    def sidebar_html(
        self,
        counts: Counts,
        choices: Sequence[EvaluatorChoice],
        about: EvaluatorChoice,
        metadata: Markup | str = "",
        distribution: Markup | str = "",
    ) -> Markup:
        """Render the sidebar.

        It shows the values of each filter as links that set or remove them, followed by the sections `metadata` and
        `distribution`. `about` is the evaluator whose verdicts are filtered.
        """
        # The table of a comparison has the outcomes of both evaluators.
        left_out = {"mistake", "against"} if self.address.other else set()
        folded = {"against"} | ({"group", "verdict", "modes", "change"} if self.address.other else set())
        sections = [
            (filter, links, name in folded.difference(self.address.active))
            for name, filter in FILTERS[self.on_redundancy].items()
            if name not in left_out.difference(self.address.active)
            and (links := self._values(name, filter, counts.get(name, {}), choices, about))
        ]
        whose = about.key if about.judged else ""
        address = self.address
        return macro(_TEMPLATE, "sidebar", sections, whose, address.mode, len(self.links), metadata, distribution)

    def _values(
        self,
        name: str,
        filter: Filter,
        numbers: Mapping[str, int],
        choices: Sequence[EvaluatorChoice],
        about: EvaluatorChoice,
    ) -> list[FilterLink]:
        """Return the values of a filter that some traces have, or none if all have the same. Of values that depend
        on the dataset, the chosen one comes first, followed by the others from the most to the least common."""
        chosen = getattr(self.address, name)
        values = dict(filter.values)
        if name == "against":
            values = {choice.key: choice.key for choice in choices if choice.judged and choice != about}
        elif not values:
            named = {value for value in numbers if value} | ({chosen} if chosen else set())
            ordered = sorted(named, key=lambda value: (value != chosen, -numbers.get(value, 0), value))
            values = {value: value for value in ordered}
        if name == "verdict" and not about.outputs.has_redundancy:
            del values["redundant"]
        if name == "gold" and chosen != "not-redundant" and not numbers.get("not-redundant"):
            del values["not-redundant"]
        links = [
            FilterLink.of(self.address, name, value, text, numbers.get(str(value), 0) if numbers else None)
            for value, text in values.items()
            if value == chosen or not numbers or numbers.get(str(value))
        ]
        return links if name in self.address.active or len(links) > 1 or not numbers else []

    def _describe(self, name: str) -> str:
        """Describe the active filter `name` in words."""
        value, filters = getattr(self.address, name), FILTERS[self.on_redundancy]
        if name == "cell":
            gold, _, called = value.partition("-")
            return f"Gold {gold}, called {called}"
        if name in ("mistake", "other_mistake"):
            who = filters["mistake"].title
            if self.address.other:
                who = self.address.other if name == "other_mistake" else self.address.evaluator or who
            # The list of a filter's values is not shown in full.
            return f"{who}: {'wrong' if value == 'wrong' else filters['mistake'].values.get(value, value)}"
        if name == "bin":
            return bin_words(value, self.words)
        title = _TITLES.get(name) or filters[name].title
        if name == "length":
            return f"{title}: {value.replace('-', ' to ')}"
        if name == "change":
            return f"{title} {value:g} or more"
        return f"{title}: {filters[name].values.get(value, value) if name in filters else value}"


def meta_words(condition: str) -> str:
    """Describe a filter on metadata in words."""
    meta = MetaCondition.read(condition)
    return f"{meta.field}{_OPERATORS[meta.operator]}{meta.value or _EMPTY}"


def bin_words(bin: str, words: Words) -> str:
    """Describe in words the filter for a bin of the distribution of scores, such as `right-0.95`."""
    gold, _, least = bin.partition("-")
    place = round(float(least) * BINS)
    score, names = (", redundancy", ("pos", "neu")) if gold in SOLUTION_GOLD else (" with validity", ("neg", "pos"))
    # Verdicts in words are stored as 0 and 1.
    verdicts = {} if words is None else {0: words.get(names[0], ""), BINS - 1: words.get(names[1], "")}
    item = f"A {item_noun(gold)}"
    return f"{item}: {verdicts[place]}" if place in verdicts else f"{item}{score} {bin_range(place)}"


def item_noun(gold: str) -> str:
    """Return the name of an item of the distribution with this gold label."""
    return f"solution {gold} redundant steps" if gold in SOLUTION_GOLD else f"{gold} step"


def bin_range(place: int) -> str:
    """Return the range of the scores in the bin with this index."""
    return f"{place / BINS:.2f}–{(place + 1) / BINS:.2f}"


def metadata_html(address: Address, fields: Sequence[MetaField], opened: FieldCounts | None) -> Markup:
    """Render the metadata fields, each with the number of traces that have it.

    For the open field, the values are shown too, with inputs for searching them and for numeric bounds. Returns
    empty markup if the dataset has no fields.
    """
    if not fields:
        return Markup()
    conditions = list(map(MetaCondition.read, address.meta))
    in_use = {condition.field for condition in conditions}
    entries = [
        FilterLink(
            field.name,
            address.url(field="" if field.name == address.field else field.name, trace=None),
            field.traces,
            field.name == address.field,
        )
        for field in fields
    ]
    values: dict[str, object] = {"opened": opened}
    if opened is not None:
        own = [condition for condition in conditions if condition.field == opened.field]
        given = {condition.operator: condition.value for condition in reversed(own)}
        values |= {
            "choices": [_value_link(address, opened.field, value, count, own) for value, count in opened.values],
            "query": address.without_meta(*(str(one) for one in own if one.operator != "=")).query(),
            "name": quoted(opened.field),
            "part": given.get("~", ""),
            "least": given.get(">=", ""),
            "most": given.get("<=", ""),
        }
    return render(
        "browse/metadata.html",
        entries=entries,
        in_use=in_use,
        shown=_SHOWN,
        **values,
    )


def _value_link(address: Address, field: str, value: str, count: int, own: Sequence[MetaCondition]) -> FilterLink:
    """Return the link of a value of the open field, whose conditions are `own`. Another value takes its place."""
    condition = str(MetaCondition(field, "=", value))
    text = excerpt(value, _LONGEST).strip() or _EMPTY
    chosen, url = condition in address.meta, ""
    if chosen:
        url = address.without_meta(condition).url()
    elif count:
        others = address.without_meta(*(str(other) for other in own if other.operator == "="))
        url = others.url(meta=(*others.meta, condition))
    return FilterLink(text, url, count, chosen, f"meta {condition}")


# The label in whose colour each kind of gold is shown.
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
                f"{bin_range(place)}: {_count_words(count, noun)}",
                count,
            )
            for place, count in enumerate(counts.tolist())
        ]
        named = _GOLD.get(gold, gold)
        return cls(named, noun, _COLOURS[gold], int(counts.sum()), int(counts.max()), bin_range(median), bars)

    def verdicts(self, titles: tuple[str, str]) -> list[FilterLink]:
        """Return the two bins of verdicts in words, which are stored as 0 and 1."""
        ends = zip((self.bars[0], self.bars[-1]), titles, strict=True)
        return [replace(bar, text=f"{title}: {_count_words(bar.count or 0, self.noun)}") for bar, title in ends]


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
            rows=[(histogram.gold, histogram.verdicts(titles)) for histogram in histograms],
        )
    return render(
        "browse/distribution.html",
        title="Redundancy of solutions" if distribution.of_solutions else "Validity of steps",
        score="redundancy" if distribution.of_solutions else "validity",
        histograms=histograms,
        rows=[
            (bin_range(place), [histogram.bars[place] for histogram in histograms])
            for place in reversed(range(BINS))
        ],
        threshold=distribution.threshold,
    )


def _count_words(count: int, noun: str) -> str:
    item, preposition, rest = noun.partition(" with")
    return f"{counted(count, item)}{preposition}{rest}"
