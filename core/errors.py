"""The error that a user can cause: a message, and a hint for mending it."""

import re
from collections.abc import Callable, Iterator

# Quoted values and words of more characters are cut to so many, and messages to so many.
_LONG_VALUE, _LONG_WORD, _KEPT, _LONGEST = 120, 500, 60, 2000
# An apostrophe stands behind a letter, what closes a quotation before none.
_OPENING = re.compile(r"(?<!\w)['\"]")
_CLOSING = {quote: re.compile(rf"{quote}(?!\w)") for quote in "'\""}
_WORD = re.compile(rf"\S{{{_LONG_WORD},}}")

Check = Callable[[], None]
"""Called between the parts of a long piece of work; what it raises ends the work."""


def never_cancel() -> None:
    """The check that ends nothing."""


class UserError(Exception):
    """A mistake of the user, shown without a traceback.

    `message` says where, what was found and what was expected; `hint` says how to put it right. The command line
    prints `str(error)` and exits with 2; a page shows it as a notice. Values that are quoted at length are cut, and
    their length is told; messages and hints have 2,000 characters at most.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        self.message, self.hint = _bounded(message), _bounded(hint)
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()

    def at(self, where: str) -> "UserError":
        """The same error with a place put before it, such as `file.jsonl line 3`."""
        return UserError(f"{where}: {self.message}", self.hint)


class AddressError(UserError):
    """An address of a page, or a link to one, makes no sense."""


def _bounded(text: str) -> str:
    if len(text) <= _LONG_VALUE:
        return text
    cut = _WORD.sub(lambda word: _shortened(word[0]), "".join(_parts(text)))
    if len(cut) <= _LONGEST:
        return cut
    told = f"… ({len(cut):,} characters)"
    return cut[: _LONGEST - len(told)] + told


def _parts(text: str) -> Iterator[str]:
    """The text with what is quoted in it cut; in time that grows with its length alone."""
    done, unclosed = 0, set()
    for opening in _OPENING.finditer(text):
        quote, start = opening[0], opening.end()
        if start <= done or quote in unclosed:
            continue
        closing = _CLOSING[quote].search(text, start)
        if closing is None:
            unclosed.add(quote)
            continue
        yield text[done:start]
        value = text[start : closing.start()]
        yield f"{value[:_KEPT]}…{quote} ({len(value):,} characters)" if len(value) > _LONG_VALUE else value + quote
        done = closing.end()
    yield text[done:]


def _shortened(word: str) -> str:
    return f"{word[:_KEPT]}… ({len(word):,} characters)"
