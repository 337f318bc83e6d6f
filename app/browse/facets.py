"""The filters in the sidebar of Browse: possible values with their counts, and the active filters as chips."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from stepsight.app.browse.address import Address
from stepsight.app.browse.distribution import bin_words
from stepsight.app.browse.evaluator_choice import EvaluatorChoice
from stepsight.app.markup.text import counted
from stepsight.app.web.html import macro
from stepsight.storage.browse.metadata import MetaCondition

Counts = Mapping[str, Mapping[str, int]]
Words = Mapping[str, str] | None
"""The list's evaluator's words for a verdict on a step, by label; None if it gives numbers."""

_TEMPLATE = "browse/facets.html"
_OPERATORS = {"=": ": ", "~": " contains ", ">=": " ≥ ", "<=": " ≤ "}
EMPTY = "(empty)"
"""The label of an empty value."""


@dataclass(frozen=True)
class ConditionOptions:
    """A filter of the sidebar, with its possible values and their labels.

    `values` is empty if the values depend on the dataset. `about_evaluator` is True for a filter on an evaluator's
    verdicts.
    """

    name: str
    title: str
    values: tuple[tuple[str, str], ...] = ()
    about_evaluator: bool = False


@dataclass(frozen=True)
class Choice:
    """A value that can be chosen for a filter. `url` sets or removes the value; it is "" if the list would then be
    empty. `count` is the number of traces with the value, or None if it is unknown."""

    key: str
    label: str
    count: int | None
    chosen: bool
    url: str


@dataclass(frozen=True)
class FacetSection:
    """A section of the sidebar with the values of one filter."""

    title: str
    about_evaluator: bool
    choices: Sequence[Choice]


_CONDITIONS = (
    ConditionOptions(
        "gold",
        "Gold",
        (
            ("error", "has an error"),
            ("clean", "has no error"),
            ("redundant", "has a redundant step"),
            ("not-redundant", "has no redundant step"),
            ("missing", "no gold"),
        ),
    ),
    ConditionOptions(
        "error_at",
        "First error is",
        (("early", "in the first third"), ("middle", "in the middle"), ("late", "in the last third")),
    ),
    ConditionOptions("group", "Class"),
    ConditionOptions(
        "mistake",
        "First error",
        (
            ("right", "right"),
            ("missed", "missed error"),
            ("false-alarm", "false alarm"),
            ("wrong-step", "wrong step"),
            ("wrong", "any of these three"),
        ),
        about_evaluator=True,
    ),
    ConditionOptions(
        "verdict",
        "Solution judged",
        (("valid", "valid"), ("invalid", "not valid"), ("redundant", "redundant"), ("unjudged", "not judged")),
        about_evaluator=True,
    ),
    ConditionOptions(
        "modes", "Online and offline", (("agree", "agree"), ("disagree", "disagree")), about_evaluator=True
    ),
    ConditionOptions(
        "change",
        "Moved by later steps",
        (("0.1", "0.1 or more"), ("0.3", "0.3 or more"), ("0.5", "0.5 or more")),
        about_evaluator=True,
    ),
    ConditionOptions("against", "Verdict differs from", about_evaluator=True),
    ConditionOptions("relabelled", "Relabelled", (("yes", "yes"), ("no", "no"))),
)
# In place of the condition on first errors if outcomes are of redundant errors.
_REDUNDANT = ConditionOptions(
    "mistake",
    "Redundant steps",
    (("right", "right"), ("missed", "missed"), ("false-alarm", "false alarm"), ("wrong", "either of these two")),
    about_evaluator=True,
)
_TITLES = {condition.name: condition.title for condition in _CONDITIONS} | {"text": "Search", "length": "Steps"}
_LABELS = {(condition.name, value): label for condition in _CONDITIONS for value, label in condition.values}

MISTAKES = {
    False: dict(next(condition for condition in _CONDITIONS if condition.name == "mistake").values),
    True: dict(_REDUNDANT.values),
}
"""The outcomes in words, of first errors (False) and of redundancy (True)."""
_OUTCOME_LABELS = {key: words | {"wrong": "wrong"} for key, words in MISTAKES.items()}
_OUTCOME_TITLES = {False: "First error", True: _REDUNDANT.title}


@dataclass(frozen=True)
class SetCondition:
    """An active filter. `key` is the filter's key in the totals, `text` describes the filter in words, and `url` is
    the URL of the page without the filter."""

    key: str
    text: str
    url: str


def facets_html(
    address: Address,
    counts: Counts,
    choices: Sequence[EvaluatorChoice],
    about: EvaluatorChoice,
    metadata: Markup | str = "",
    distribution: Markup | str = "",
    on_redundancy: bool = False,
) -> Markup:
    """Render the sidebar.

    It shows the values of each filter as links that set or remove them, followed by the sections `metadata` and
    `distribution`. `about` is the evaluator whose verdicts are filtered. With `on_redundancy`, outcomes concern
    redundant errors.
    """
    conditions = [_REDUNDANT if on_redundancy and one.name == "mistake" else one for one in _CONDITIONS]
    sections = [_section(condition, address, counts, choices, about) for condition in conditions]
    shown = [section for section in sections if section.choices]
    whose = about.key if about.judged else ""
    return macro(
        _TEMPLATE, "sidebar", shown, whose, address.mode, len(conditions_set(address)), metadata, distribution
    )


def conditions_set(address: Address, words: Words = None, on_redundancy: bool = False) -> list[SetCondition]:
    """List the active filters. Each filter on metadata is listed separately. With `on_redundancy`, outcomes concern
    redundant errors."""
    found = []
    for name in address.active:
        if name == "meta":
            found += [
                SetCondition(f"meta {one}", meta_words(one), address.without_meta(one).url())
                for one in address.meta
            ]
        else:
            text = condition_words(address, name, words, on_redundancy)
            found.append(SetCondition(name, text, address.loosened(name).url()))
    return found


def chips_html(address: Address, words: Words = None, on_redundancy: bool = False) -> Markup:
    """Render the active filters, with a link to remove each one and a link to remove them all. Returns empty markup
    if no filter is active."""
    if not address.active:
        return Markup()
    return macro(_TEMPLATE, "chips", conditions_set(address, words, on_redundancy), address.cleared)


def loosen_html(
    address: Address, totals: Mapping[str, int], words: Words = None, on_redundancy: bool = False
) -> Markup:
    """Render suggestions for an empty list: the filters whose removal would bring traces back. `totals` maps the
    key of each active filter to the number of traces that match without this filter."""
    if not address.active:
        return Markup('<p class="hint empty">This dataset has no trace.</p>')
    ways = [
        {"url": one.url, "text": one.text, "traces": counted(totals[one.key], "trace")}
        for one in conditions_set(address, words, on_redundancy)
        if totals[one.key]
    ]
    return macro(_TEMPLATE, "loosen", ways, address.cleared)


def meta_words(condition: str) -> str:
    """Describe a filter on metadata in words."""
    one = MetaCondition.read(condition)
    return f"{one.field}{_OPERATORS[one.operator]}{one.value or EMPTY}"


def condition_words(address: Address, name: str, words: Words = None, on_redundancy: bool = False) -> str:
    """Describe the active filter `name` in words."""
    value = getattr(address, name)
    if name == "meta":
        return " · ".join(map(meta_words, value))
    if name == "cell":
        gold, _, called = value.partition("-")
        return f"Gold {gold}, called {called}"
    if name in ("mistake", "other_mistake") and address.other:
        who = address.other if name == "other_mistake" else address.evaluator or _OUTCOME_TITLES[on_redundancy]
        return f"{who}: {_OUTCOME_LABELS[on_redundancy].get(value, value)}"
    if name == "bin":
        return bin_words(value, words)
    if name == "length":
        return f"{_TITLES[name]}: {value.replace('-', ' to ')}"
    if name == "change":
        return f"{_TITLES[name]} {value:g} or more"
    if name == "mistake":
        return f"{_OUTCOME_TITLES[on_redundancy]}: {_OUTCOME_LABELS[on_redundancy].get(value, value)}"
    return f"{_TITLES[name]}: {_LABELS.get((name, value), value)}"


def _section(
    condition: ConditionOptions,
    address: Address,
    counts: Counts,
    choices: Sequence[EvaluatorChoice],
    about: EvaluatorChoice,
) -> FacetSection:
    numbers = counts.get(condition.name, {})
    values = condition.values or _values(condition, address, numbers, choices, about)
    if condition.name == "verdict" and not about.outputs.has_redundancy:
        values = tuple(value for value in values if value[0] != "redundant")
    if condition.name == "gold":
        values = tuple(value for value in values if _is_asked(value[0], address, numbers))
    if numbers and not any(numbers.values()) and condition.name not in address.active:
        values = ()
    lines = [_choice(condition.name, value, label, address, numbers) for value, label in values]
    return FacetSection(condition.title, condition.about_evaluator, lines)


def _is_asked(value: str, address: Address, numbers: Mapping[str, int]) -> bool:
    """True if a value of the gold filter is useful for the dataset."""
    return value != "not-redundant" or address.gold == value or bool(numbers.get(value))


def _values(
    condition: ConditionOptions,
    address: Address,
    numbers: Mapping[str, int],
    choices: Sequence[EvaluatorChoice],
    about: EvaluatorChoice,
) -> tuple[tuple[str, str], ...]:
    """Return the values of a filter whose values depend on the dataset, each with its label. The chosen value comes
    first, followed by the others from the most to the least common."""
    if condition.name == "against":
        return tuple((choice.key, choice.key) for choice in choices if choice.judged and choice != about)
    chosen = getattr(address, condition.name)
    named = {value for value in numbers if value} | ({chosen} if chosen else set())
    return tuple((value, value) for value in sorted(named, key=lambda v: (v != chosen, -numbers.get(v, 0), v)))


def _choice(name: str, value: str, label: str, address: Address, numbers: Mapping[str, int]) -> Choice:
    chosen = str(getattr(address, name)) == value
    count = numbers.get(value, 0) if numbers else None
    if count == 0 and not chosen:
        return Choice("", label, count, False, "")
    setting = float(value) if name == "change" else value
    url = address.loosened(name).url() if chosen else address.narrowed(**{name: setting})
    return Choice(f"{name} {value}", label, count, chosen, url)
