"""Finding the parts of a model's response that are not judged: its thinking, and openings such as "Sure!"."""

import re

_THINKING = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
)
# Every word of an opening is one of these, and at least one is in `_OPENERS`: it says nothing about the problem.
_OPENERS = frozenset(
    re.split(
        r"\s+",
        """sure certainly course absolutely okay ok alright hello hi hey gladly definitely happy glad great
        solution solutions explanation step steps step-by-step stepwise solve solving proof""",
    )
)
_WORDS = _OPENERS | frozenset(
    re.split(
        r"\s+",
        """a about all an and answer answering approach at be begin break breakdown breaking by calculation
        calculations can carefully clear clearly complete could detail detailed determine do down each
        example explain find finding follow following for get go going good have help here here's how i i'd
        i'll in into is it its let let's lets logically look manner me method my need now of one order our
        out please problem proceed process provide provided question reach reasoning right s should show
        simple small smaller so solved start stepping systematic systematically tackle take that that's the
        then there these thing think this through to together us use using walk want we we'll we're we've
        will with work working would you your math mathematics mathematical word given below as follows
        thanks thank now""",
    )
)
_PIECE = re.compile(r"[^\n]{0,160}?(?:[.!:](?=[\s*_]|$)|$)[*_]{0,3}", re.MULTILINE)
_SIGNS = re.compile(r"[#*_>\s,.!:;—–\"“”()-]+")
_SPACE = re.compile(r"\s*")
_MOST, _WIDEST = 6, 100
_LINE_END = re.compile(r"[ \t]*(?:\n|$)")


def set_openings_aside(text: str) -> tuple[str, list[str]]:
    """Return the solution, and the parts before it that do not belong to it, in text order.

    If nothing would remain, nothing is set aside. So a response that was cut off in the middle of its thinking is
    judged.
    """
    rest, aside = _set_thinking_aside(text)
    if not rest.strip():
        return text, []
    opening = _opening(rest)
    if opening:
        aside.append(rest[:opening].strip())
    return rest[opening:].strip("\n"), aside


def _set_thinking_aside(text: str) -> tuple[str, list[str]]:
    aside: list[str] = []
    lower = text.lower()
    # If lower-casing changes the length, positions in one text are not valid in the other.
    lower = lower if len(lower) == len(text) else text
    for opener, closer in _THINKING:
        kept, position = [], 0
        while (stop := lower.find(closer, position)) >= 0:
            # The opening sign may stand in the prompt, not in the answer.
            start = lower.find(opener, position, stop)
            start = start if start >= 0 else position
            stop += len(closer)
            kept.append(text[position:start])
            if text[start:stop].lower().replace(opener, "").replace(closer, "").strip():
                aside.append(text[start:stop].strip())
            position = stop
        if position:
            text = "".join((*kept, text[position:])).strip()
            lower = text.lower() if len(text.lower()) == len(text) else text
    return text, aside


def _opening(text: str) -> int:
    """Return the end of an opening such as "Sure!", or 0 if the text has none or nothing follows it."""
    position = 0
    for _ in range(_MOST):
        piece = _PIECE.match(text, position)
        if piece is None or not _is_opening(piece[0], ends_line=_LINE_END.match(text, piece.end()) is not None):
            break
        position = piece.end()
        position += len(_SPACE.findall(text, position, position + _WIDEST)[0])
    return position if text[position:].strip() else 0


def _is_opening(piece: str, ends_line: bool) -> bool:
    words = [
        word.replace("’", "'") for word in _SIGNS.sub(" ", piece.lower().replace("step-by-step", "steps")).split()
    ]
    if not words or len(words) > 25 or not set(words) <= _WORDS:
        return False
    # "Solve" without a sign after it is the beginning of a sentence that was not finished in this piece.
    return not _OPENERS.isdisjoint(words) and (ends_line or piece.rstrip("*_ ").endswith((".", "!", ":")))
