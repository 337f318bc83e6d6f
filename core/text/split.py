"""Splitting a pasted solution into its steps and the text around them that is not judged."""

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass

from stepsight.core.errors import UserError
from stepsight.core.files.json_values import parse_json
from stepsight.core.text.formulas import formula_blocks, formulas, outside, unbroken_lines
from stepsight.core.text.preamble import set_openings_aside
from stepsight.core.text.sentences import sentences
from stepsight.core.trace import check_text

_STEP = re.compile(
    r"(?P<lead>[#>\s]*(?:[-*+•][ \t]+)?)(?P<bold>[*_]{0,3})[\[(]?step[ \t]*#?[ \t]*(?P<number>\d{1,6})[\])]?"
    r"(?:[ \t]*(?:[:.)]|[-–—](?=\s|$))|(?P<bare>(?=[ \t]*(?:[*_]|$))|(?<=\])))"
    r"(?P<close>[*_]{0,3})(?:(?<=[*_])[ \t]*(?:[:–—]|-(?=\s)))?\s*",
    re.IGNORECASE,
)
# A heading needs no sign after its number: `### Step 1 Read the problem`.
_HEADED_STEP = re.compile(
    r"(?P<lead>[>\s]*#{1,6}[ \t]*)(?P<bold>[*_]{0,3})step[ \t]*#?(?P<number>\d{1,6})(?P<close>)[ \t]+",
    re.IGNORECASE,
)
_HEADED_NUMBER = re.compile(
    r"(?P<lead>\s*(?:#{1,6}[ \t]+|(?=[*_]{2})))"
    r"(?P<bold>[*_]{0,3})\(?(?P<number>\d{1,3})[.):](?P<close>[*_]{0,3})(?:\s+|$)"
)
_NUMBER = re.compile(r"(?P<lead>\s*)(?P<bold>[*_]{0,3})\(?(?P<number>\d{1,3})[.)](?P<close>[*_]{0,3})(?:\s+|$)")
_MARKERS = ((_STEP, _HEADED_STEP), (_HEADED_NUMBER,), (_NUMBER,))
_BULLET = re.compile(r"([ \t]*)[-*+•‣◦–][ \t]+(?=\S)")

_INLINE_STEP = re.compile(
    r"(?:[*_]{2})?(?:(?<=[*_])|\b)(?:Step|STEP)[ \t]*#?(?P<number>\d{1,6})[ \t]*(?:[:.)]|[-–—](?=\s))"
)
_INLINE_NUMBER = re.compile(r"\(?\b(?P<number>\d{1,2})[.)][ \t]+(?=[\"'“(*_]{0,3}(?:[^\W\da-z_]|\$|\\))")
# "By Step 1: …" speaks of a step.
_OF_A_STEP = re.compile(
    r"\b(?:in|from|of|by|see|to|and|with|using|at|after|as|or|per|the|this|than|our|for|into|under|[Ii]n|[Ff]rom|[Bb]y|"
    r"[Uu]sing|[Aa]fter|[Aa]s|[Ss]ee)[ \t]+$"
)
_SENTENCE_ENDS = re.compile(r"[.!?:;)\]$}*\"”][ \t]+\(?$")

_RULE = re.compile(r"(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|={3,})\s*")
_HEADING = re.compile(r"\s*(?:#{1,6}[ \t]+(?![-$\d])\S.*|(?:\*\*|__)[^*_=$\\]{1,100}(?:\*\*|__):?)\s*")

_ANSWER_HEADING = re.compile(
    r"[#>\s]*[*_]*(?:(?:the )?final (?:answer|result)|answer|conclusion)[*_:.\s]*", re.IGNORECASE
)
_ANSWER = re.compile(
    r"[#>\s*_]*(?:(?:the )?final answer\b|answer[ \t]*[*_]*:|the answer is\b|"
    r"(?:therefore|thus|so|hence)[,:]?\s+(?:the\s+)?(?:final\s+)?answer\b)|\s*####\s*\S|[\s$*_\\\[(]*\\boxed\b",
    re.IGNORECASE,
)
_CONCLUSION = re.compile(
    r"[#>\s*_]*(?:therefore|thus|so|hence|in conclusion|consequently|finally)\b", re.IGNORECASE
)
_LONGEST_ANSWER = 12
_MOST_ANSWERS = 3

_GOES_ON = re.compile(r"[ \t]*(?:\\\[|\$\$|\\begin|```|\[asy\]|\||[-*+•][ \t])")
# "So" and the like begin a step as often as they continue one.
_SMALL_WORD = re.compile(r"[ \t]*(?!(?:so|then|thus|hence|therefore)\b)[a-z]{2,}[\s,]")
_NARROWEST_WRAP = 50


@dataclass(frozen=True)
class Split:
    """The steps of a solution, each a text or a list of sub-steps, and the text around them that is not judged."""

    steps: tuple[str | list[str], ...]
    set_aside: tuple[str, ...] = ()


def split_steps(text: str) -> list[str | list[str]]:
    """Return only the steps that `split_solution` finds."""
    return list(split_solution(text).steps)


def split_solution(text: str) -> Split:
    """Split a solution into steps, using the first of these forms that matches.

    - a JSON list of texts, in which an inner list is a step with sub-steps
    - headings such as `Step 1: …`, on separate lines or within a line
    - a numbered list, which may start again under a heading
    - bullets
    - paragraphs between blank lines
    - one step per line
    - the sentences of a paragraph, on one line or wrapped

    Numbers and bullets are removed. A heading belongs to the step after it. The text before the first number and
    the final answer are separate steps. LaTeX, code and `[asy]` are never cut. Thinking between `<think>` and
    `</think>`, and openings such as "Sure!", are set aside.

    Raises `UserError` if a JSON list contains anything but texts and lists of texts.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    listed = read_json_list(text)
    if listed is not None:
        return Split(tuple(listed))
    solution, set_aside = set_openings_aside(text)
    return Split(tuple(step for step in map(_trimmed, _split(solution)) if step), tuple(set_aside))


def read_json_list(text: str) -> list[str | list[str]] | None:
    """Return the steps in a JSON list, or None if the text is not a JSON list. Raises `UserError` if the list
    contains anything but texts and lists of texts."""
    if not text.startswith("["):
        return None
    try:
        value = parse_json(text)
    except ValueError:
        return None
    for number, step in enumerate(value, start=1):
        parts = step if isinstance(step, list) else [step]
        if not parts or not all(isinstance(part, str) for part in parts):
            raise UserError(f"step {number} of the JSON list is {step!r:.60}, expected a text or a list of texts.")
        for part in parts:
            check_text(part, f"step {number} of the JSON list")
    steps: list[str | list[str]] = value
    return steps


def _split(text: str) -> list[str]:
    lines = _without_rules(unbroken_lines(text))
    for broken in (lines, _broken(text, _INLINE_STEP), _broken(text, _INLINE_NUMBER)):
        for markers in _MARKERS:
            starts = _numbered(broken, markers)
            if starts:
                return _items(broken, starts, markers)
    bullets = _bullets(lines)
    if bullets:
        return _items(lines, bullets, (_BULLET,))
    if not any(not line.strip() for line in lines):
        return _by_line(lines)
    body, answers = _without_answers(lines)
    paragraphs = _paragraphs(body)
    return [*(_by_line(body) if len(paragraphs) == 1 else paragraphs), *answers]


def _without_rules(lines: list[str]) -> list[str]:
    """Blank out horizontal rules between blank lines. A rule below a sum is kept."""
    around = ["", *lines, ""]
    return [
        "" if _RULE.fullmatch(line) and not around[index].strip() and not around[index + 2].strip() else line
        for index, line in enumerate(lines)
    ]


def _trimmed(step: str) -> str:
    """Remove the blank lines around a step. If all its lines are indented, as in code, only their common
    indentation is removed."""
    lines = step.strip("\n").rstrip().split("\n")
    while lines and not lines[0].strip():
        del lines[0]
    common = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[common:] for line in lines).strip()


def _match(markers: Iterable[re.Pattern[str]], line: str) -> re.Match[str] | None:
    for marker in markers:
        match = marker.match(line)
        # `**Step 1** We add`: without another sign, the emphasis has to end at the number.
        if match and not ("bare" in marker.groupindex and match["bold"] and not match["close"] and _is_bare(match)):
            return match
    return None


def _is_bare(match: re.Match[str]) -> bool:
    return match["bare"] is not None and match.end() < len(match.string)


def _numbered(lines: list[str], markers: tuple[re.Pattern[str], ...]) -> list[int]:
    """Return the indices of the lines that begin a numbered step.

    There must be at least two. Numbers count up by one, and may start again from 1 after a heading or an
    announcement.
    """
    starts: list[int] = []
    expected = 0
    deepest = 0
    for index, line in enumerate(lines):
        match = _match(markers, line)
        if match is None:
            continue
        number, indent = int(match["number"]), len(line) - len(line.lstrip())
        if not starts:
            if number > 1:
                continue
            deepest = indent + 2
        elif indent > deepest or (number != expected and not (number == 1 and _begins_again(lines, index))):
            continue
        starts.append(index)
        expected = number + 1
    return starts if len(starts) > 1 else []


def _begins_again(lines: list[str], index: int) -> bool:
    """True if a heading, or a paragraph ending in a colon, directly precedes the line at `index`."""
    before = index - 1
    while before >= 0 and not lines[before].strip():
        before -= 1
    if before < 0:
        return False
    last = lines[before]
    is_announced = last.rstrip(" *_").endswith(":") and not last[:1].isspace()
    return _HEADING.fullmatch(last) is not None or (is_announced and (before == 0 or not lines[before - 1].strip()))


def _items(lines: list[str], starts: list[int], markers: tuple[re.Pattern[str], ...]) -> list[str]:
    """Return the texts of marked steps without their marks. The text before the first mark and the answer after the
    last step are included as steps."""
    steps: list[str] = []
    heading, rest = _without_heading(lines[: starts[0]])
    steps.append("\n".join(rest))
    for start, stop in zip(starts, [*starts[1:], len(lines)], strict=True):
        item = [*heading, _unmarked(lines[start], markers), *lines[start + 1 : stop]]
        if stop < len(lines):
            # The beginning of a step is not a heading of the next.
            own, item = item[: len(heading) + 1], item[len(heading) + 1 :]
            heading, item = _without_heading(item)
            item = [*own, *item]
            is_first = "number" in markers[0].groupindex and _is_number(lines[stop], markers, 1)
            item, announced = _without_announcement(item) if is_first and not heading else (item, "")
            steps += ["\n".join(item), announced]
        else:
            item, answers = _without_answers(item, is_item=True)
            if markers[0] in (_NUMBER, _BULLET):
                item, answers = _without_end(item, answers)
            steps += ["\n".join(item), *answers]
    return steps


def _is_number(line: str, markers: tuple[re.Pattern[str], ...], number: int) -> bool:
    match = _match(markers, line)
    return match is not None and int(match["number"]) == number


def _unmarked(line: str, markers: tuple[re.Pattern[str], ...]) -> str:
    """Return a line without its step mark. Emphasis that starts before the number and ends after it is kept."""
    match = _match(markers, line)
    if match is None:
        return line
    rest = line[match.end() :]
    groups = match.groupdict()
    bold = groups.get("bold") or ""
    return f"{bold}{rest}" if bold and not groups.get("close") and bold in rest else rest


def _without_heading(lines: list[str]) -> tuple[list[str], list[str]]:
    """Split trailing headings off some lines. Returns the headings, and the lines before."""
    stop = len(lines)
    while stop and (not lines[stop - 1].strip() or _HEADING.fullmatch(lines[stop - 1])):
        stop -= 1
    return [line for line in lines[stop:] if line.strip()], lines[:stop]


def _without_announcement(lines: list[str]) -> tuple[list[str], str]:
    """Split off the last paragraph of a step, which announces the next list."""
    stop = len(lines)
    while stop and not lines[stop - 1].strip():
        stop -= 1
    start = stop
    while start and lines[start - 1].strip():
        start -= 1
    return (lines[:start], "\n".join(lines[start:stop])) if start else (lines, "")


def _without_end(item: list[str], answers: list[str]) -> tuple[list[str], list[str]]:
    """Split off a conclusion that follows the last item of a list after a blank line but is not part of it."""
    for index in range(len(item) - 1, 0, -1):
        if not item[index - 1].strip() and item[index].strip() and not item[index][0].isspace():
            if _CONCLUSION.match(item[index]):
                return item[:index], ["\n".join(item[index:]), *answers]
            break
    return item, answers


def _without_answers(lines: list[str], is_item: bool = False) -> tuple[list[str], list[str]]:
    """Split off the final answers at the end of some lines, since they are separate steps. If the lines are an item
    of a list, indented lines remain part of the item."""
    answers: list[str] = []
    while len(answers) < _MOST_ANSWERS and (start := _answer_start(lines)) is not None:
        if is_item and lines[start][0].isspace():
            break
        answers.insert(0, "\n".join(lines[start:]))
        lines = lines[:start]
    return lines, answers


def _answer_start(lines: list[str]) -> int | None:
    """Return the index of the line at which the final answer begins, or None if there is no final answer. It begins
    with a heading of its own, or in the last paragraph."""
    last = _last_paragraph(lines)
    found = None
    for index in range(len(lines) - 1, max(0, len(lines) - 1 - _LONGEST_ANSWER), -1):
        line = lines[index]
        if not line.strip():
            continue
        if _ANSWER_HEADING.fullmatch(line):
            return index
        if found is None and index >= last and (_ANSWER.match(line) or _concludes(lines, index)):
            found = index
    return found


def _last_paragraph(lines: list[str]) -> int:
    """Return the index of the first line of the last paragraph. A paragraph that ends in a colon or comma includes
    the text after it."""
    start = len(lines)
    while True:
        while start and not lines[start - 1].strip():
            start -= 1
        while start and lines[start - 1].strip():
            start -= 1
        before = start
        while before and not lines[before - 1].strip():
            before -= 1
        if (
            not before
            or len(lines) - before > _LONGEST_ANSWER
            or not lines[before - 1].rstrip().endswith((":", ","))
        ):
            return start


def _concludes(lines: list[str], index: int) -> bool:
    """True if a paragraph begins at the line `index`, states the conclusion, and boxes the answer."""
    is_first = index > 0 and not lines[index - 1].strip()
    return is_first and bool(_CONCLUSION.match(lines[index])) and "\\boxed" in "\n".join(lines[index:])


def _broken(text: str, marker: re.Pattern[str]) -> list[str]:
    """Return the lines of a text, with a line break inserted before each step mark inside a line. The result is
    empty if there are fewer than two such marks."""
    places: list[int] = []
    expected = 1
    for match in outside(marker.finditer(text), formulas(text)):
        if int(match["number"]) != expected or not _begins_step(text, match, marker is _INLINE_STEP):
            continue
        places.append(match.start())
        expected += 1
    if len(places) < 2:
        return []
    parts = [text[start:stop].rstrip() for start, stop in zip([0, *places], [*places, len(text)], strict=True)]
    return unbroken_lines("\n".join(part for part in parts if part))


def _begins_step(text: str, match: re.Match[str], is_named: bool) -> bool:
    before = text[max(0, match.start() - 20) : match.start()]
    line = before.rpartition("\n")[2]
    if not line.strip(" \t*_#>(") and ("\n" in before or match.start() < 20):
        return True
    return (
        not _OF_A_STEP.search(line) if is_named else bool(int(match["number"]) > 1 and _SENTENCE_ENDS.search(line))
    )


def _bullets(lines: list[str]) -> list[int]:
    """Return the indices of the lines that begin a bullet, or none unless the solution is a bulleted list.

    Such a list has at least two bullets and no other text between them, at most one paragraph before it, and only
    the conclusion after it.
    """
    matches = [(index, match) for index, line in enumerate(lines) if (match := _BULLET.match(line))]
    if len(matches) < 2:
        return []
    base = len(matches[0][1][1])
    starts = [index for index, match in matches if len(match[1]) <= base + 1]
    if len(starts) < 2 or len(_paragraphs(_without_heading(lines[: starts[0]])[1])) > 1:
        return []
    for index in range(starts[0] + 1, starts[-1]):
        line = lines[index]
        is_loose = line.strip() and not line[0].isspace() and not lines[index - 1].strip()
        if is_loose and not _BULLET.match(line) and not _HEADING.fullmatch(line):
            return []
    item, answers = _without_answers(lines[starts[-1] :], is_item=True)
    item, _ = _without_end(item, answers)
    is_over = all(
        line[0].isspace()
        for index, line in enumerate(item)
        if index and line.strip() and not item[index - 1].strip()
    )
    return starts if is_over else []


def _paragraphs(lines: list[str]) -> list[str]:
    """Return the paragraphs between blank lines.

    A heading is joined to the next paragraph, and so is a paragraph that ends in a colon before maths, code or a
    list.
    """
    groups: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            groups[-1].append(line)
        else:
            groups.append([])
    paragraphs: list[list[str]] = []
    is_open = False
    for text in ("\n".join(group) for group in groups if group):
        if paragraphs and (is_open or _goes_on(paragraphs[-1][-1], text)):
            paragraphs[-1].append(text)
        else:
            paragraphs.append([text])
        is_open = _HEADING.fullmatch(text) is not None
    return ["\n\n".join(parts) for parts in paragraphs]


def _goes_on(paragraph: str, following: str) -> bool:
    end = paragraph.rstrip()
    if end.rstrip("*_").endswith((":", ",")) and _GOES_ON.match(following):
        return True
    return end.endswith(("\\]", "$$", "}", ",")) and _SMALL_WORD.match(following) is not None and _ends_open(end)


def _ends_open(text: str) -> bool:
    """True if a text ends in a comma, or in a formula without a full stop."""
    if text.endswith(","):
        return True
    blocks = formula_blocks(text)
    return bool(blocks) and blocks[-1][1] == len(text) and not text.rstrip("\\]$ \n").endswith(".")


def _by_line(lines: list[str]) -> list[str]:
    """Split a solution into one step per line.

    Lines within a sentence stay together. A single line, or wrapped text, is split into sentences instead.
    """
    lines = [line for line in lines if line.strip()]
    if _is_wrapped(lines):
        return sentences("\n".join(lines))
    steps: list[str] = []
    is_open = False
    for line in lines:
        if steps and (is_open or _continues(steps[-1], line)):
            steps[-1] += f"\n{line}"
        else:
            steps.append(line)
        # One sign without a blank line around is a comment in code.
        is_open = _HEADING.fullmatch(line) is not None and not line.startswith("# ")
    return sentences(steps[0]) if len(lines) == 1 else steps


def _is_wrapped(lines: list[str]) -> bool:
    """True if the lines were wrapped at a fixed width.

    This means that the first word of the next line would never have fitted, and that at least one line break is
    inside a sentence.
    """
    width = max(map(len, lines), default=0)
    if len(lines) < 2 or width < _NARROWEST_WRAP or any("\n" in line for line in lines):
        return False
    breaks = list(itertools.pairwise(lines))
    is_full = all(len(line.rstrip()) + 1 + len(after.split()[0]) > width for line, after in breaks)
    return is_full and any(_is_cut(line, after) for line, after in breaks)


def _is_cut(line: str, after: str) -> bool:
    """True if the line break between `line` and `after` is inside a sentence."""
    return not line.rstrip().rstrip("*_\"')]$").endswith((".", "!", "?", ":", ";")) and bool(
        _SMALL_WORD.match(after)
    )


def _continues(step: str, line: str) -> bool:
    """True if a line belongs to the step before it: it is indented code, a table row, or inside a sentence."""
    last = step.rpartition("\n")[2]
    if line[0].isspace() and (last[0].isspace() or last.rstrip().endswith((":", "{", "(", "[", ","))):
        return True
    if line.startswith("|") and last.startswith("|"):
        return True
    return step.lstrip("\"'“(*_")[:1].isupper() and _is_cut(last, line)
