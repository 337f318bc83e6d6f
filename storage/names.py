"""What can be stored as a name."""

from core.errors import UserError
from core.trace import check_text
from storage.schema import NAME_LENGTH


def check_name(name: str, what: str) -> str:
    """Return `name`, or raise `UserError` where it cannot name a dataset or an evaluator."""
    check_text(name, what)
    if len(name) > NAME_LENGTH:
        raise UserError(f"{what} has {len(name):,} characters.", f"Use at most {NAME_LENGTH}.")
    if name != name.strip() or not name.isprintable():
        raise UserError(f"{what} is {name!r}.", "Remove outer spaces, line breaks and control characters.")
    return name
