"""The kinds of error that annotators can choose from, a short list that is fixed when the campaign is created."""

from typing import Annotated

from stepsight.core.errors import UserError
from stepsight.core.trace import check_text
from stepsight.core.validation import checked

ERROR_KINDS = (
    "calculation",
    "misreading",
    "wrong method",
    "unjustified",
    "contradiction",
    "missing case",
    "other",
)
"""The kinds of a campaign that names none."""

MOST_KINDS = 20
LONGEST_KIND = 40


def check_kind(kind: str) -> str:
    """Return `kind`, or raise `UserError` if it is not a short text on one line."""
    check_text(kind, "the kind of error")
    if not kind.strip() or kind != kind.strip() or not kind.isprintable() or len(kind) > LONGEST_KIND:
        raise UserError(
            f"The kind of error is {kind!r:.80}.", f"Use one line of at most {LONGEST_KIND} characters."
        )
    return kind


Kind = Annotated[str, checked(check_kind)]


def check_kinds(kinds: tuple[str, ...]) -> tuple[str, ...]:
    """Return `kinds`, or raise `UserError` if there are none or too many, or if two differ only in case."""
    if not 1 <= len(kinds) <= MOST_KINDS:
        raise UserError(f"There are {len(kinds)} kinds of error.", f"Name 1 to {MOST_KINDS}.")
    met: set[str] = set()
    for kind in kinds:
        if kind.casefold() in met:
            raise UserError(f"The kind of error {kind!r} is named twice.", "Name each once.")
        met.add(kind.casefold())
    return kinds
