"""Splitting a pasted solution into its steps."""

import json
import re

from stepsight.core.errors import UserError
from stepsight.core.trace import check_text

_OPENERS = re.compile(r"(?<!\\)\\\[|\$\$|(?<!\\)\\\(|\[asy\]|```|\\begin\{([A-Za-z]+\*?)\}")
_CLOSERS = {"\\[": "\\]", "$$": "$$", "\\(": "\\)", "[asy]": "[/asy]", "```": "```"}
_STEP = re.compile(r"[#>*_\s]*step\s+(\d{1,6})\s*(?:[:.)]|-\s)[*_]*\s*", re.IGNORECASE)
_NUMBER = re.compile(r"\s*[*_]*\(?(\d{1,3})[.)][*_]*(?:\s+|$)")


def split_steps(text: str) -> list[str | list[str]]:
    """The steps of a solution, in the first of these forms that fits:

    a JSON list of texts (a list within it is a step with sub-steps); `Step 1: …` headings; a numbered list;
    paragraphs between blank lines; one step per line. Numbering is removed, text before the first number is a
    step of its own, and LaTeX blocks (`\\[ \\]`, `$$ $$`, `\\begin{…} \\end{…}`, `[asy]`) are never cut.
    Raises `UserError` on a JSON list that holds anything but texts.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    listed = _json_list(text)
    if listed is not None:
        return listed
    lines = _lines(text)
    for marker in (_STEP, _NUMBER):
        starts = _numbered(lines, marker)
        if starts:
            return _items(lines, starts, marker)
    groups = _paragraphs(lines) if any(not line.strip() for line in lines) else lines
    return [group.strip() for group in groups if group.strip()]


def _json_list(text: str) -> list[str | list[str]] | None:
    if not text.startswith("["):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    for number, step in enumerate(value, start=1):
        parts = step if isinstance(step, list) else [step]
        if not parts or not all(isinstance(part, str) for part in parts):
            raise UserError(f"step {number} of the JSON list is {step!r:.60}, expected a text or a list of texts.")
        for part in parts:
            check_text(part, f"step {number} of the JSON list")
    steps: list[str | list[str]] = value
    return steps


def _lines(text: str) -> list[str]:
    """Lines, where a line break within a LaTeX block does not count."""
    formulas = _formulas(text)
    lines, start = [], 0
    for line_break in re.finditer("\n", text):
        while formulas and formulas[0][1] <= line_break.start():
            formulas.pop(0)
        if not formulas or line_break.start() < formulas[0][0]:
            lines.append(text[start : line_break.start()])
            start = line_break.end()
    return [*lines, text[start:]]


def _formulas(text: str) -> list[tuple[int, int]]:
    """Start and stop of each closed LaTeX block, in order."""
    formulas = []
    unclosed: set[str] = set()
    position = 0
    while opener := _OPENERS.search(text, position):
        closer = f"\\end{{{opener[1]}}}" if opener[1] else _CLOSERS[opener[0]]
        stop = -1 if closer in unclosed else text.find(closer, opener.end())
        if stop < 0:
            unclosed.add(closer)
            position = opener.end()
        else:
            position = stop + len(closer)
            formulas.append((opener.start(), position))
    return formulas


def _numbered(lines: list[str], marker: re.Pattern[str]) -> list[int]:
    """Indices of the lines that begin a numbered step: at least two, counting up by one."""
    starts: list[int] = []
    expected: int | None = None
    for index, line in enumerate(lines):
        match = marker.match(line)
        if match and (expected is None or int(match[1]) == expected):
            if expected is None and int(match[1]) > 1:
                continue
            starts.append(index)
            expected = int(match[1]) + 1
    return starts if len(starts) > 1 else []


def _items(lines: list[str], starts: list[int], marker: re.Pattern[str]) -> list[str | list[str]]:
    """The texts of numbered steps without their numbers, and before them what precedes the first."""
    steps = ["\n".join(lines[: starts[0]]).strip()]
    for start, stop in zip(starts, [*starts[1:], len(lines)], strict=True):
        first = marker.sub("", lines[start], count=1)
        steps.append("\n".join([first, *lines[start + 1 : stop]]).strip())
    return [step for step in steps if step]


def _paragraphs(lines: list[str]) -> list[str]:
    groups: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            groups[-1].append(line)
        else:
            groups.append([])
    return ["\n".join(group) for group in groups]
