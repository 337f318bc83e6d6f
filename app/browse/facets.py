"""The conditions of the Browse page: every value with its count, and those that are set as removable chips."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from stepsight.app.browse.address import Address
from stepsight.app.browse.offered import Offered

Counts = Mapping[str, Mapping[str, int]]

_SHOWN = 8


@dataclass(frozen=True)
class Facet:
    """A part of the address with the values that it can be given, each with its label; none where the dataset
    decides on them. `said` tells that it is about what an evaluator says."""

    name: str
    title: str
    values: tuple[tuple[str, str], ...] = ()
    said: bool = False


_FACETS = (
    Facet("gold", "Gold", (("error", "names an error"), ("clean", "names no error"), ("missing", "no gold"))),
    Facet(
        "error_at",
        "First error stands",
        (("early", "in the first third"), ("middle", "in the middle"), ("late", "in the last third")),
    ),
    Facet("group", "Class"),
    Facet(
        "mistake",
        "First error",
        (
            ("right", "right"),
            ("missed", "missed error"),
            ("false-alarm", "false alarm"),
            ("wrong-step", "wrong step"),
        ),
        said=True,
    ),
    Facet(
        "verdict",
        "Solution called",
        (("valid", "valid"), ("invalid", "not valid"), ("redundant", "redundant"), ("unjudged", "not judged")),
        said=True,
    ),
    Facet("modes", "Online and offline", (("agree", "agree"), ("disagree", "disagree")), said=True),
    Facet(
        "change",
        "Retroactive change",
        (("0.1", "0.1 or more"), ("0.3", "0.3 or more"), ("0.5", "0.5 or more")),
        said=True,
    ),
    Facet("against", "Verdict differs from", said=True),
    Facet("relabelled", "Relabelled", (("yes", "yes"), ("no", "no"))),
)
_TITLES = {facet.name: facet.title for facet in _FACETS} | {"text": "Search", "cell": "Confusion"}
_LABELS = {(facet.name, value): label for facet in _FACETS for value, label in facet.values}

MISTAKES = dict(next(facet for facet in _FACETS if facet.name == "mistake").values)
"""The kinds of mistake in words."""


def facets_html(address: Address, counts: Counts, offers: Sequence[Offered], about: Offered) -> str:
    """The sidebar: under each title the values, as links that set or lift a condition."""
    general, of_evaluator = (
        "".join(_section(facet, address, counts, offers, about) for facet in _FACETS if facet.said is said)
        for said in (False, True)
    )
    if about.judged:
        general += f'<h2 class="whose">What {escape(about.key)} says, {address.mode}</h2>{of_evaluator}'
    number = f" ({len(address.active)})" if address.active else ""
    return f"""<button type="button" class="button sheet" aria-expanded="false" aria-controls="facets"
data-key="sheet">Filters{number}</button>
<aside class="facets" id="facets" aria-label="Filters"><h2 class="unseen">Filters</h2>{general}</aside>"""


def chips_html(address: Address) -> str:
    """The conditions that are set, each with a link that lifts it, and one that lifts all; "" where none is."""
    if not address.active:
        return ""
    chips = "".join(
        f"""<li><a class="chip" data-go data-stay href="{address.loosened(name).url()}"
aria-label="Remove {escape(condition_words(address, name))}">{escape(condition_words(address, name))}
<span aria-hidden="true">✕</span></a></li>"""
        for name in address.active
    )
    clear = f'<li><a data-go data-stay class="clear" href="{address.cleared}">Clear</a></li>'
    return f'<ul class="chips" aria-label="Conditions">{chips}{clear}</ul>'


def loosen_html(address: Address, totals: Mapping[str, int]) -> str:
    """What to say where no trace is left: which condition to lift. `totals` tells, for each that is set, how many
    traces there would be without it."""
    if not address.active:
        return '<p class="hint empty">This dataset has no trace.</p>'
    ways = "".join(
        f"""<li><a data-go data-stay href="{address.loosened(name).url()}">without
{escape(condition_words(address, name))}</a>: {_traces(totals[name])}</li>"""
        for name in address.active
        if totals[name]
    )
    advice = f"Loosen one:</p><ul>{ways}</ul>" if ways else "No single one is to blame.</p>"
    clear = f'<p><a data-go data-stay href="{address.cleared}">Clear all conditions</a></p>'
    return f'<div class="empty"><p>No trace meets these conditions. {advice}{clear}</div>'


def condition_words(address: Address, name: str) -> str:
    """A condition that is set, as text."""
    value = getattr(address, name)
    if name == "cell":
        gold, _, said = value.partition("-")
        return f"Gold {gold}, called {said}"
    if name == "change":
        return f"{_TITLES[name]} {value:g} or more"
    return f"{_TITLES[name]}: {_LABELS.get((name, value), value)}"


def _section(facet: Facet, address: Address, counts: Counts, offers: Sequence[Offered], about: Offered) -> str:
    found = counts.get(facet.name, {})
    values = facet.values or _values(facet, address, found, offers, about)
    if facet.name == "verdict" and not about.outputs.may_say_redundant:
        values = tuple(value for value in values if value[0] != "redundant")
    if not values or (found and not any(found.values()) and facet.name not in address.active):
        return ""
    lines = [_line(facet, value, label, address, found) for value, label in values]
    more = "".join(lines[_SHOWN:])
    rest = f"<details><summary>{len(lines) - _SHOWN} more</summary><ul>{more}</ul></details>" if more else ""
    return f"<section><h3>{facet.title}</h3><ul>{''.join(lines[:_SHOWN])}</ul>{rest}</section>"


def _values(
    facet: Facet, address: Address, found: Mapping[str, int], offers: Sequence[Offered], about: Offered
) -> tuple[tuple[str, str], ...]:
    """The values of a facet that the dataset decides on, the commonest first, and what is chosen before it."""
    if facet.name == "against":
        return tuple((offer.key, offer.key) for offer in offers if offer.judged and offer != about)
    chosen = getattr(address, facet.name)
    named = {value for value in found if value} | ({chosen} if chosen else set())
    return tuple((value, value) for value in sorted(named, key=lambda v: (v != chosen, -found.get(v, 0), v)))


def _line(facet: Facet, value: str, label: str, address: Address, found: Mapping[str, int]) -> str:
    chosen = str(getattr(address, facet.name)) == value
    count = found.get(value, 0)
    number = f'<span class="n">{count:,}</span>' if found else ""
    if found and not count and not chosen:
        return f'<li><span class="off">{escape(label)}{number}</span></li>'
    set_to: object = float(value) if facet.name == "change" else value
    href = address.loosened(facet.name).url() if chosen else address.narrowed(**{facet.name: set_to})
    current = ' aria-current="true"' if chosen else ""
    return f"""<li><a data-go data-stay{current} data-key="{escape(f"{facet.name} {value}")}"
href="{href}"><span>{escape(label)}</span>{number}</a></li>"""


def _traces(number: int) -> str:
    return "1 trace" if number == 1 else f"{number:,} traces"
