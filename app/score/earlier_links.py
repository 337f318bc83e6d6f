"""How links up to version 3 split a text: kept as it was, so that they go on showing the steps that they showed."""

import re

from stepsight.core.text.formulas import unbroken_lines
from stepsight.core.text.split import read_json_list

_STEP = re.compile(r"[#>*_\s]*step\s+(\d{1,6})\s*(?:[:.)]|-\s)[*_]*\s*", re.IGNORECASE)
_NUMBER = re.compile(r"\s*[*_]*\(?(\d{1,3})[.)][*_]*(?:\s+|$)")


def split_as_before(text: str) -> list[str | list[str]]:
    """The steps of a text in a link of version 3 or before: a JSON list, `Step 1: …` headings, a numbered list,
    paragraphs, or one step per line. Raises `UserError` on a JSON list that holds anything but texts."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    listed = read_json_list(text)
    if listed is not None:
        return listed
    lines = unbroken_lines(text)
    for marker in (_STEP, _NUMBER):
        starts = _numbered(lines, marker)
        if starts:
            return _items(lines, starts, marker)
    groups = _paragraphs(lines) if any(not line.strip() for line in lines) else lines
    return [group.strip() for group in groups if group.strip()]


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
