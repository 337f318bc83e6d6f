"""What people write beside a label: reasons and remarks."""

from core.errors import UserError
from core.trace import check_text

LONGEST = 4000


def check_reason(text: object, missing: str, hint: str = "Say in a few words why.") -> str:
    """The text without outer white space. Raises `UserError` with `missing` where there is none, or it is too long
    or cannot be stored."""
    if not isinstance(text, str) or not text.strip():
        raise UserError(missing, hint)
    check_text(text, "the text")
    if len(text) > LONGEST:
        raise UserError(f"The text has {len(text):,} characters.", f"Use at most {LONGEST:,}.")
    return text.strip()
