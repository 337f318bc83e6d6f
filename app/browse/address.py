"""The address of the Browse page: everything that the page shows follows from it."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from stepsight.app.web.page_address import PageAddress, Query, Reader, number_reader
from stepsight.core.errors import UserError
from stepsight.core.label import LABEL_NAMES, Label
from stepsight.storage.browse.browse import Sort
from stepsight.storage.browse.filters import TraceFilter

CONDITIONS = (
    "q", "gold", "error_at", "group", "verdict", "mistake", "modes", "against", "change", "cell", "relabelled",
)  # fmt: skip
"""The parts of an address that narrow the list."""

_OF_EVALUATOR = ("verdict", "mistake", "modes", "against", "change", "cell")
_CHECKED = ("gold", "error_at", "group", "mode", "verdict", "mistake", "modes", "relabelled")
_LARGEST_CHANGE = 1.0


@dataclass(frozen=True)
class Address(PageAddress):
    """What the query string asks for.

    `trace` is a database id, `page` counts from 1, `sort` is the name of an order, with a minus before it where it
    descends. `evaluator` is whom the list is about, `against` another one whose verdict differs, `beside` those
    shown on the page of a trace: all by the key that they are offered under. The others are as in `TraceFilter`,
    and `q` is its text.
    """

    PATH: ClassVar[str] = "/browse"

    dataset: str = ""
    trace: int | None = None
    page: int = 1
    q: str = ""
    gold: str = "any"
    error_at: str = "any"
    group: str = ""
    evaluator: str = ""
    mode: str = "offline"
    verdict: str = "any"
    mistake: str = "any"
    modes: str = "any"
    against: str = ""
    change: float = 0.0
    cell: str = ""
    relabelled: str = "any"
    sort: str = "position"
    beside: tuple[str, ...] = ()

    def where(self, evaluator: int | None, against: int | None) -> TraceFilter:
        """The conditions, about the evaluators with these database ids."""
        same: dict[str, Any] = {name: getattr(self, name) for name in _CHECKED}
        return TraceFilter(
            text=self.q,
            evaluator=evaluator,
            against=against,
            change=self.change,
            cell=_read_cell(self.cell) if self.cell else None,
            **same,
        )

    @property
    def order(self) -> Sort:
        return _read_order(self.sort)

    @property
    def active(self) -> tuple[str, ...]:
        """The conditions that are set."""
        return tuple(name for name in CONDITIONS if getattr(self, name) != getattr(_DEFAULT, name))

    @property
    def unsaid(self) -> "Address":
        """The address without the conditions and the order that are about an evaluator's verdicts."""
        unset = {name: getattr(_DEFAULT, name) for name in _OF_EVALUATOR}
        if self.order.by in ("validity", "redundancy", "change"):
            unset["sort"] = _DEFAULT.sort
        return replace(self, **unset)

    @property
    def of_validity(self) -> "Address":
        """The address without the condition and the order that are about redundancy."""
        sort = _DEFAULT.sort if self.order.by == "redundancy" else self.sort
        return replace(self, sort=sort, verdict=_DEFAULT.verdict if self.verdict == "redundant" else self.verdict)

    def narrowed(self, **changes: object) -> str:
        """The address of the first page of a list with other conditions."""
        return self.url(**({"page": 1, "trace": None} | changes))

    def loosened(self, name: str) -> "Address":
        """The first page of the list without one condition."""
        return replace(self, page=1, trace=None, **{name: getattr(_DEFAULT, name)})

    @property
    def cleared(self) -> str:
        """The address without any condition."""
        return self.narrowed(**{name: getattr(_DEFAULT, name) for name in CONDITIONS})


_DEFAULT = Address()


def read_address(query: Query) -> tuple[Address, tuple[str, ...]]:
    """The address that a query spells, and a message for each part of it that makes no sense and is passed over."""
    return Address.spelled(query, _READERS)


def _filter_reader(name: str) -> Reader:
    """Reads what the filter of that name takes."""

    def read(text: str) -> str:
        TraceFilter(**{name: text})  # type: ignore[arg-type]  # which is what this checks
        return text

    return read


def _read_text(text: str) -> str:
    return TraceFilter(text=text).text


def _read_change(text: str) -> float:
    try:
        change = float(text)
    except ValueError:
        change = -1.0
    if not 0 <= change <= _LARGEST_CHANGE:
        raise UserError(f"change is {text!r:.40}, expected a number from 0 to 1.", "Check the address.")
    return change


def _read_cell(text: str) -> tuple[Label, Label]:
    gold, _, said = text.partition("-")
    if gold not in LABEL_NAMES or said not in LABEL_NAMES:
        raise UserError(
            f"cell is {text!r:.40}, expected a gold label and the evaluator's, such as neg-pos.",
            "Check the address.",
        )
    return Label(LABEL_NAMES.index(gold)), Label(LABEL_NAMES.index(said))


def _check_cell(text: str) -> str:
    _read_cell(text)
    return text


def _read_order(text: str) -> Sort:
    return Sort(text.removeprefix("-"), descending=text.startswith("-"))  # type: ignore[arg-type]  # it checks


def _check_order(text: str) -> str:
    _read_order(text)
    return text


_READERS: dict[str, Reader] = {
    **{name: _filter_reader(name) for name in _CHECKED},
    "trace": number_reader("trace"),
    "page": number_reader("page", least=1),
    "q": _read_text,
    "change": _read_change,
    "cell": _check_cell,
    "sort": _check_order,
}
