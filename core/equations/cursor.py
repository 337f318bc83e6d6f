"""A position in the tokens of a text, which can be moved past the units of a number."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from stepsight.core.equations.tokens import Token, TokenKind
from stepsight.core.equations.units import RATES, is_unit_word, may_be_glued

_UNIT_LETTERS = ("s", "h", "g", "l", "m")
_PER = ("/", "per", "an", "a")
# The letter, and the Cyrillic one that looks like it.
_CROSSES = ("x", "X", "х", "Х")


@dataclass
class Cursor:
    """A position in `tokens`. `at` is the index of the next token, and `units` holds the units that were skipped so
    far."""

    tokens: Sequence[Token]
    at: int = 0
    units: set[str] = field(default_factory=set)

    def _peek(self, ahead: int = 0) -> Token | None:
        index = self.at + ahead
        return self.tokens[index] if index < len(self.tokens) else None

    def _is_sign(self, *signs: str) -> bool:
        token = self._peek()
        return token is not None and token.is_sign(*signs)

    def _is_times(self, token: Token) -> bool:
        """True if the letter x means multiplication, because it is between a factor and a number."""
        if token.text not in _CROSSES or token.kind is not TokenKind.LETTER or self.at == 0:
            return False
        following, before = self._peek(1), self.tokens[self.at - 1]
        if following is None:
            return False
        if following.kind is TokenKind.NUMBER or (following.kind is TokenKind.UNIT and following.text == "$"):
            return before.kind in (TokenKind.NUMBER, TokenKind.UNIT, TokenKind.WORD) or before.is_sign(
                ")", "%", "}"
            )
        # `2 x (3 + 4)`, but not `2x (3 + 4)`.
        return following.is_sign("(") and token.spaced and following.spaced and not token.in_formula

    def _skip_units(self) -> str:
        """Skip the words of a unit if an operator or a relation follows them, and return the unit. Returns "" if
        nothing is skipped."""
        at = self.at
        found: list[str] = []
        while at < len(self.tokens) and len(found) < 7:
            token = self.tokens[at]
            if at == self.at and token.kind is TokenKind.WORD and not token.spaced and not may_be_glued(token.text):
                break
            if token.kind is TokenKind.WORD and (
                (is_unit_word(token.text) and (found or token.text.lower() != "of")) or found[1:2] == ["to"]
            ):
                found.append(token.text.lower())
            elif self._is_unit_letter(at):
                found.append(token.text)
            elif found and token.is_sign("(") and self._word_at(at + 1) and self._closes(at + 2):
                found.append(self.tokens[at + 1].text.lower())
                at += 2
            elif not self._joins_units(token, at, bool(found)):
                break
            elif token.is_sign("/"):
                found.append("/")
            at += 1
        ends = at >= len(self.tokens) or self.tokens[at].kind is TokenKind.BREAK
        if found and ("/" in found if ends else self._goes_on(at)):
            self.at = at
            self.units.update(found)
            if len(found) > 1 and found[0] in _PER:
                return f"/{found[1]}"
            if len(found) > 2 and found[1] in _PER:
                return f"{found[0]}/{found[2]}"
            return RATES.get(found[0], found[0])
        return ""

    def _joins_units(self, token: Token, at: int, is_behind_word: bool) -> bool:
        """True if a sign is part of a unit, as in km/hour, square-feet or dollars $. `at` is the sign's index."""
        if token.kind is TokenKind.UNIT:
            return is_behind_word
        if token.is_sign("/"):
            return self._word_at(at + 1) or self._is_unit_letter(at + 1)
        return is_behind_word and token.is_sign("-") and not token.spaced and self._word_at(at + 1)

    def _word_at(self, index: int) -> bool:
        return (
            index < len(self.tokens)
            and self.tokens[index].kind is TokenKind.WORD
            and is_unit_word(self.tokens[index].text)
        )

    def _is_unit_letter(self, index: int) -> bool:
        """True if a letter is a unit next to a slash without spaces, as in 5 kb/s and 3600 s/h."""
        if index >= len(self.tokens) or self.tokens[index].text not in _UNIT_LETTERS:
            return False
        token, before = self.tokens[index], self.tokens[index - 1]
        if token.kind is not TokenKind.LETTER or token.in_formula:
            return False
        if before.is_sign("/"):
            return not token.spaced and self.tokens[index - 2].kind is not TokenKind.NUMBER
        behind = self.tokens[index + 1] if index + 1 < len(self.tokens) else token
        return token.spaced and before.kind is TokenKind.NUMBER and behind.is_sign("/") and not behind.spaced

    def _closes(self, index: int) -> bool:
        return index < len(self.tokens) and self.tokens[index].is_sign(")")

    def _goes_on(self, at: int) -> bool:
        token = self.tokens[at]
        if token.kind is TokenKind.RELATION or token.is_sign("+", "-", "*", "/", ")", "}"):
            return True
        mark, self.at = self.at, at
        is_times = self._is_times(token)
        self.at = mark
        return is_times
