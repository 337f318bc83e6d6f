"""The address of the Evidence page: everything that the page shows follows from it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from html import escape
from typing import Any
from urllib.parse import parse_qsl, urlencode

from core.errors import UserError
from core.evidence import Turn
from core.label import LABEL_NAMES

STAYED = "stayed"
"""The kind of the traces in which no verdict turned."""

KINDS = (*(turn.value for turn in Turn), STAYED)
VALUES = ("validity", *LABEL_NAMES)
"""What the hindsight matrix can show."""


@dataclass(frozen=True)
class EvidenceAddress:
    """What the query string asks for.

    One trace: `trace`, a database id, or `s`, a token of the Score page; else the gallery of a `dataset`.
    `evaluator` is the name that it is offered under. `kind` is one of `KINDS`, `page` counts from 1. Of one trace:
    `step`, the name of the sub-step that is looked at, `after`, that of the last one that is revealed, `value`, one
    of `VALUES`.
    """

    trace: int | None = None
    s: str = ""
    dataset: str = ""
    evaluator: str = ""
    kind: str = ""
    page: int = 1
    step: str = ""
    after: str = ""
    value: str = "validity"

    @property
    def opens(self) -> bool:
        """Whether it is of one trace."""
        return bool(self.s) or self.trace is not None

    def url(self, path: str = "/evidence", **changes: object) -> str:
        """The address with some parts changed, as an attribute's value; defaults are left out."""
        changed = replace(self, **changes)  # type: ignore[arg-type]
        query = {
            part.name: value
            for part in fields(self)
            if (value := getattr(changed, part.name)) != getattr(_DEFAULT, part.name)
        }
        return escape(path + (f"?{urlencode(query)}" if query else ""))


_DEFAULT = EvidenceAddress()


def read_query(text: str) -> dict[str, str]:
    """The parts of a query string, with or without its `?`; of a part given twice, the last."""
    return dict(parse_qsl(text.removeprefix("?")))


def read_address(query: Mapping[str, str]) -> tuple[EvidenceAddress, tuple[str, ...]]:
    """The address that a query spells, and a message for each part of it that makes no sense and is passed over."""
    found: dict[str, Any] = {}
    problems = []
    for part in fields(EvidenceAddress):
        if not query.get(part.name):
            continue
        try:
            found[part.name] = _READERS.get(part.name, str)(query[part.name])
        except UserError as error:
            problems.append(str(error))
    return EvidenceAddress(**found), tuple(problems)


def _read_number(name: str) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or len(text) > 12:
            raise UserError(f"{name} is {text!r:.40}, expected a number.", "Check the address.")
        return max(1, int(text)) if name == "page" else int(text)

    return read


def _read_one_of(name: str, known: tuple[str, ...]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in known:
            raise UserError(f"{name} is {text!r:.40}, expected {', '.join(known)}.", "Check the address.")
        return text

    return read


_READERS: dict[str, Callable[[str], object]] = {
    "trace": _read_number("trace"),
    "page": _read_number("page"),
    "kind": _read_one_of("kind", KINDS),
    "value": _read_one_of("value", VALUES),
}
