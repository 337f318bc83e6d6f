"""The exception for mistakes that a user can make, and counts in its words.

It carries a message and a hint on how to fix the mistake.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

# The lengths above which quoted values and words are shortened, the length that remains, and the longest message.
_LONG_VALUE, _LONG_WORD, _KEPT, _LONGEST = 120, 500, 60, 2000
# An opening quotation mark has no letter before it, a closing one none after it; an apostrophe is neither.
_OPENING = re.compile(r"(?<!\w)['\"]")
_CLOSING = {quote: re.compile(rf"{quote}(?!\w)") for quote in "'\""}
_WORD = re.compile(rf"\S{{{_LONG_WORD},}}")

# A command or option that a hint adds in parentheses, as in "Name the dataset (--dataset)."
_COMMAND = re.compile(r" \((?=[^()]*\))[^()]*(?:--[a-z]|\bstepsight [a-z])[^()]*\)")

ShowProgress = Callable[[Iterable[Any], int, str], Iterator[Any]]
"""Iterates over the items of a long task and shows how many of the total are done, in a unit."""


class UserError(Exception):
    """A mistake made by the user, shown without a traceback.

    `message` says where the mistake is, what was found and what was expected; `hint` says how to fix it. The
    command line prints `str(error)` and exits with status 2; a page shows the error as a notice, and leaves out
    commands and options, which are in parentheses. Long quoted values are shortened, followed by their original
    length. Messages and hints have at most 2,000 characters each. `shown` is the message for pages if they may not
    show `message`, as when it names a file of the server.
    """

    shown = ""

    def __init__(self, message: str, hint: str = "") -> None:
        self.message, self.hint = _shorten_text(message), _shorten_text(hint)
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()

    def at(self, where: str) -> "UserError":
        """Return a copy of this error whose message starts with a location, such as `file.jsonl line 3`."""
        return UserError(f"{where}: {self.message}", self.hint)

    def without_options(self) -> "UserError":
        """Return a copy for readers of pages and of the API: with `shown` as its message if there is one, and
        without those parentheses that hold a command or one of its options."""
        return UserError(*(_COMMAND.sub("", text) for text in (self.shown or self.message, self.hint)))


@contextmanager
def located(where: str) -> Iterator[None]:
    """Prefix the message of a `UserError` raised in the `with` block with `where`."""
    try:
        yield
    except UserError as error:
        raise error.at(where) from None


class AddressError(UserError):
    """Raised for an invalid URL of a page, or an invalid link to a page."""


def _shorten_text(text: str) -> str:
    if len(text) <= _LONG_VALUE:
        return text
    cut = _WORD.sub(lambda word: f"{word[0][:_KEPT]}… ({len(word[0]):,} characters)", "".join(_parts(text)))
    if len(cut) <= _LONGEST:
        return cut
    end = f"… ({len(cut):,} characters)"
    return cut[: _LONGEST - len(end)] + end


def _parts(text: str) -> Iterator[str]:
    """Yield the pieces of a text, with long quoted values shortened. Takes linear time."""
    end, unclosed = 0, set()
    for opening in _OPENING.finditer(text):
        quote, start = opening[0], opening.end()
        if start <= end or quote in unclosed:
            continue
        closing = _CLOSING[quote].search(text, start)
        if closing is None:
            unclosed.add(quote)
            continue
        yield text[end:start]
        value = text[start : closing.start()]
        yield f"{value[:_KEPT]}…{quote} ({len(value):,} characters)" if len(value) > _LONG_VALUE else value + quote
        end = closing.end()
    yield text[end:]


def counted(number: int, noun: str, several: str = "") -> str:
    """Return a count with its noun, such as `1 trace` or `2,000 traces`. `several` is the plural if it is
    irregular."""
    return f"{number:,} {noun if number == 1 else several or f'{noun}s'}"
