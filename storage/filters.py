"""Which traces of a dataset are meant: by what the gold says, and by a text."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

from sqlalchemy import ColumnElement, Select, exists, func, or_
from sqlalchemy.orm import InstrumentedAttribute

from core.errors import UserError
from core.trace import check_text
from storage.schema import SubstepRow, TraceRow

Gold = Literal["any", "error", "clean", "missing"]
_TEXT_LENGTH = 1000
_ESCAPE = "\\"


@dataclass(frozen=True)
class TraceFilter:
    """The traces that meet both conditions.

    `gold`: `error`, the gold names a first error; `clean`, there is gold and it names none; `missing`, there
    is no gold. `text`: the problem or a sub-step contains it, whatever the case; blank for any. Raises
    `UserError` on another `gold`, or a text that cannot be searched for.
    """

    gold: Gold = "any"
    text: str = ""

    def __post_init__(self) -> None:
        if self.gold not in get_args(Gold):
            raise UserError(f"The gold filter is {self.gold!r}.", f"Expected {', '.join(get_args(Gold))}.")
        if self.text.strip():
            check_text(self.text, "the text to search for")
        if len(self.text) > _TEXT_LENGTH:
            raise UserError("The text to search for is too long.", f"Use at most {_TEXT_LENGTH:,} characters.")

    def apply(self, statement: Select[Any], dialect: str) -> Select[Any]:
        """`statement`, which selects from traces, narrowed to this filter."""
        gold = _GOLD[self.gold]
        if gold is not None:
            statement = statement.where(gold)
        if self.text.strip():
            statement = statement.where(_contains(self.text, dialect))
        return statement


# Worded as in the partial indexes of the schema, or the database would not see that they fit.
_GOLD: dict[str, ColumnElement[bool] | None] = {
    "any": None,
    "error": TraceRow.first_error.is_not(None),
    "clean": TraceRow.first_error.is_(None) & TraceRow.has_gold.is_(True),
    "missing": TraceRow.first_error.is_(None) & TraceRow.has_gold.is_(False),
}


def _contains(text: str, dialect: str) -> ColumnElement[bool]:
    in_steps = exists().where(SubstepRow.trace_id == TraceRow.id, _like(SubstepRow.text, text, dialect))
    return or_(_like(TraceRow.problem, text, dialect), in_steps)


def _like(column: InstrumentedAttribute[str], text: str, dialect: str) -> ColumnElement[bool]:
    pattern = text
    for special in (_ESCAPE, "%", "_"):
        pattern = pattern.replace(special, _ESCAPE + special)
    pattern = f"%{pattern}%"
    if dialect == "postgresql":
        return column.ilike(pattern, escape=_ESCAPE)
    if text.isascii():
        return column.like(pattern, escape=_ESCAPE)
    # The LIKE of SQLite folds the case of ASCII letters alone.
    return func.unicode_lower(column).like(pattern.lower(), escape=_ESCAPE)
