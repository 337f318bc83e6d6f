"""Splitting a pasted solution into its steps and the text around them that is not judged."""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from stepsight.core.text.marks import (
    BULLET,
    HEADINGS,
    INLINE,
    STYLES,
    Marks,
    begins_step,
    come_next,
    match_mark,
    numbers_of,
    plain_marks,
    unmarked,
)
from stepsight.core.text.printed import read_step_list
from stepsight.core.text.response import (
    STEP_TOKEN,
    at_step_tokens,
    marked_up_lines,
    plain_lines,
    set_openings_aside,
    thinking_in,
    unwrapped,
)
from stepsight.core.text.sentences import formula_blocks, formulas, outside, sentences, unbroken_lines
from stepsight.core.text.signs import is_blank
from stepsight.core.text.words import ANSWERS, THEREFORE, THEREFORE_SIGNS, any_of

_RULE = re.compile(r"(?:(?:-[ \t]*+){3,}+|(?:\*[ \t]*+){3,}+|(?:_[ \t]*+){3,}+|={3,})\s*")
_HEADING = re.compile(
    r"\s*(?:#{1,6}[ \t]+(?![-$\d])\S.*|(?:\*\*|__)[^*_=$\\]{1,100}(?:\*\*|__):?|【[^】\n]{1,40}】)\s*"
)

_ANSWERS = any_of(ANSWERS)
ANSWER_HEADING = re.compile(
    rf"[#>\s]*[*_]*(?:(?:the )?final (?:answer|result)|answer|conclusion|{_ANSWERS})[*_:：.\s]*", re.IGNORECASE
)
ANSWER = re.compile(
    r"[#>\s*_]*(?:(?:the )?final answer\b|answer[ \t]*[*_]*:|the answer is\b|"
    rf"(?:{_ANSWERS})[ \t]*[*_]*[:：]|"
    r"(?:therefore|thus|so|hence)[,:]?\s+(?:the\s+)?(?:final\s+)?answer\b)|\s*<answer>|\s*####\s*\S|[\s$*_\\\[(]*\\boxed\b",
    re.IGNORECASE,
)
CONCLUSION = re.compile(
    r"[#>\s*_]*(?:(?:therefore|thus|so|hence|in conclusion|consequently|finally|"
    # The English "also" has a comma, the German one has none.
    rf"also(?!,)|{any_of(THEREFORE)})\b|{any_of(THEREFORE_SIGNS)})",
    re.IGNORECASE,
)
THOUGHT_STEPS = "thought_steps"
"""The name of the metadata that says how many of the first steps are thinking."""
THINKING = "thinking_set_aside"
"""The name of the metadata with the thinking that is not judged."""

_LONGEST_ANSWER = 12
_MOST_ANSWERS = 3

_GOES_ON = re.compile(r"[ \t]*(?:\\\[|\$\$|\\begin|```|\[asy\]|\||[-*+•][ \t])")
# "So" and the like begin a step as often as they continue one.
_SMALL_WORD = re.compile(r"[ \t]*(?!(?:so|then|thus|hence|therefore)\b)[a-z]{2,}[\s,]")
_NARROWEST_WRAP = 50


@dataclass(frozen=True)
class Split:
    """The steps of a solution, each a text or a list of sub-steps, and the text around them that is not judged. The
    first `thinking` steps are those of the thinking before the solution."""

    steps: tuple[str | list[str], ...]
    set_aside: tuple[str, ...] = ()
    thinking: int = 0

    @property
    def meta(self) -> dict[str, Any]:
        """The metadata in which a trace keeps the thinking: what is set aside, without its tags, and the number of
        steps that are thinking."""
        thinking = "\n\n".join(filter(None, map(thinking_in, self.set_aside)))
        aside = {THINKING: thinking} if thinking else {}
        return aside | ({THOUGHT_STEPS: self.thinking} if self.thinking else {})

    def after_thoughts(self, thoughts: Sequence[str], *, judged: bool) -> "Split":
        """Return the split of the same solution preceded by thoughts that the source stores separately. If they are
        `judged`, their steps come first; otherwise they are set aside in tags, like other thinking."""
        if not judged:
            asides = (f"<think>\n{thought}\n</think>" for thought in thoughts)
            return replace(self, set_aside=(*asides, *self.set_aside))
        steps = [step for thought in thoughts for step in thought_steps(thought)]
        return replace(self, steps=(*steps, *self.steps), thinking=len(steps) + self.thinking)


def thought_steps(thought: str) -> list[str]:
    """Return the steps of a thought without its tags, which is split like a solution."""
    return _texts(plain_lines(thought))


def split_steps(text: str) -> list[str | list[str]]:
    """Return only the steps that `split_solution` finds."""
    return list(split_solution(text).steps)


def split_solution(text: str, *, judges_thinking: bool = False) -> Split:
    """Split a solution into steps, using the first of these forms that matches.

    - a list that a program printed, such as JSON, in which an inner list is a step with sub-steps
    - step tokens and tags, such as `<extra_0>` and `<step>`
    - headings such as `Step 1: …`, on separate lines or within a line
    - a numbered list, which may start again under a heading
    - bullets
    - paragraphs between blank lines
    - one step per line
    - the sentences of a paragraph, on one line or wrapped

    Numbers and bullets are removed. A heading belongs to the step after it. The text before the first number and
    the final answer are separate steps. LaTeX, code and `[asy]` are never cut. The prompt of a chat, thinking such
    as that between `<think>` and `</think>`, and openings such as "Sure!" are set aside. If
    `judges_thinking` is True, the thinking is split as well, and its steps come first.

    Raises `UserError` if a printed list contains both texts and other values.
    """
    text = unwrapped(plain_lines(text))
    listed = read_step_list(text)
    if isinstance(listed, list):
        return Split(tuple(listed))
    solution, set_aside = set_openings_aside(listed or text)
    thoughts: list[str] = []
    if judges_thinking:
        thoughts = [step for aside in set_aside for step in _texts(thinking_in(aside))]
        set_aside = [aside for aside in set_aside if not thinking_in(aside)]
    if solution != text and isinstance(listed := read_step_list(unwrapped(solution)), list):
        return Split((*thoughts, *listed), tuple(set_aside), len(thoughts))
    return Split((*thoughts, *_texts(solution)), tuple(set_aside), len(thoughts))


def split_answer(solution: str, thoughts: Sequence[str], *, judged: bool) -> Split:
    """Split a model's answer, which may have a token after each step, and `thoughts` that its source stores
    separately. If the answer is blank, the thoughts are always judged, like thinking that never ends."""
    if is_blank(solution):
        return Split(()).after_thoughts(thoughts, judged=True)
    parts = STEP_TOKEN.split(solution)
    whole = split_solution(solution, judges_thinking=judged) if len(parts) == 1 else None
    split = whole or Split(tuple(part.strip() for part in parts if not is_blank(part)))
    return split.after_thoughts(thoughts, judged=judged)


def _texts(solution: str) -> list[str]:
    """Return the texts of the steps of a solution that is not a printed list."""
    steps = (_trim(step) for step in _split(marked_up_lines(solution).strip("\n")))
    return [step for step in steps if not is_blank(step)]


def _split(text: str) -> list[str]:
    if parts := at_step_tokens(text):
        return _without_marks([part.strip() for part in parts])
    lines = unbroken_lines(text)
    for start, stop in _blocks(lines):
        # A rule below a sum does not separate parts.
        if stop == start + 1 and _RULE.fullmatch(lines[start]):
            lines[start] = ""
    for broken in itertools.chain([lines], (_break_at_marks(text, mark) for mark in INLINE)):
        for style in STYLES:
            if starts := _step_lines(broken, style):
                return _items(broken, starts, style)
    bullets = _bullets(lines)
    if bullets:
        return _items(lines, bullets, (BULLET,))
    if not any(not line.strip() for line in lines):
        return _split_lines(lines)
    body, answers = _without_answers(lines)
    paragraphs = _paragraphs(body)
    return [*(_split_lines(body) if len(paragraphs) == 1 else paragraphs), *answers]


def _without_marks(steps: list[str]) -> list[str]:
    """Remove the numbers at the beginning of steps if every step has one, in order. Otherwise the steps are
    returned unchanged."""
    for style in STYLES:
        if len(_step_lines(steps, style)) == len(steps):
            return [unmarked(step, style) for step in steps]
    return steps


def _blocks(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Return, for each run of lines that are not blank, the index of its first line and that after its last one."""
    filled = [False, *(bool(line.strip()) for line in lines), False]
    edges = [index for index in range(len(lines) + 1) if filled[index] != filled[index + 1]]
    return list(zip(edges[::2], edges[1::2], strict=True))


def _trim(step: str) -> str:
    """Remove the blank lines around a step. If all its lines are indented, as in code, only their common
    indentation is removed."""
    lines = step.strip("\n").rstrip().split("\n")
    while lines and not lines[0].strip():
        del lines[0]
    common = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[common:] for line in lines).strip()


def _step_lines(lines: list[str], style: Marks) -> list[int]:
    """Return the indices of the lines that begin a numbered step.

    There must be at least two. Numbers count up by one, and may start again from 1 after a heading or an
    announcement.
    """
    starts: list[int] = []
    before: tuple[int, ...] = ()
    deepest = 0
    for index, line in enumerate(lines):
        match = match_mark(style, line)
        if match is None:
            continue
        numbers, indent = numbers_of(match), len(line) - len(line.lstrip())
        if not starts:
            if max(numbers) > 1:
                continue
            deepest = indent + 2
        elif indent > deepest or not (
            come_next(numbers, before) or (_is_first(match) and _begins_again(lines, index))
        ):
            continue
        starts.append(index)
        before = numbers
    return starts if len(starts) > 1 else []


def _begins_again(lines: list[str], index: int) -> bool:
    """True if a heading, or a paragraph ending in a colon, directly precedes the line at `index`."""
    before = _blocks(lines[:index])
    if not before:
        return False
    start, stop = before[-1]
    last = lines[stop - 1]
    is_announced = last.rstrip(" *_").endswith(":") and not last[:1].isspace()
    return _HEADING.fullmatch(last) is not None or (is_announced and stop == start + 1)


def _items(lines: list[str], starts: list[int], style: Marks) -> list[str]:
    """Return the texts of marked steps without their marks. The text before the first mark and the answer after the
    last step are included as separate steps."""
    steps: list[str] = []
    heading, rest = _without_heading(lines[: starts[0]])
    steps.append("\n".join(rest))
    for start, stop in zip(starts, [*starts[1:], len(lines)], strict=True):
        item = [*heading, unmarked(lines[start], style), *lines[start + 1 : stop]]
        if stop < len(lines):
            # The beginning of a step is not a heading of the next.
            own, item = item[: len(heading) + 1], item[len(heading) + 1 :]
            heading, item = _without_heading(item)
            item = [*own, *item]
            is_first = style != (BULLET,) and (match := match_mark(style, lines[stop])) and _is_first(match)
            end = len(item)
            if is_first and not heading:
                # The last paragraph announces the list that follows.
                end = next((start for start, _ in reversed(_blocks(item))), 0) or end
            steps += ["\n".join(item[:end]), "\n".join(item[end:])]
        else:
            item, answers = _without_answers(item, is_item=True)
            if style not in HEADINGS:
                item, answers = _without_end(item, answers)
            steps += ["\n".join(item), *answers]
    return steps


def _is_first(match: re.Match[str]) -> bool:
    return come_next(numbers_of(match), ())


def _without_heading(lines: list[str]) -> tuple[list[str], list[str]]:
    """Split headings off the end of a list of lines. Returns the headings, and the lines before them."""
    stop = len(lines)
    while stop and (not lines[stop - 1].strip() or _HEADING.fullmatch(lines[stop - 1])):
        stop -= 1
    return [line for line in lines[stop:] if line.strip()], lines[:stop]


def _without_end(item: list[str], answers: list[str]) -> tuple[list[str], list[str]]:
    """Split off a conclusion that follows the last item of a list after a blank line but is not part of the item.
    The conclusion is put in front of `answers`."""
    outside_item = [start for start, _ in _blocks(item) if start and not item[start][0].isspace()]
    if outside_item and CONCLUSION.match(item[outside_item[-1]]):
        return item[: outside_item[-1]], ["\n".join(item[outside_item[-1] :]), *answers]
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
    """Return the index of the line at which the final answer begins, or None if there is none. The answer begins
    with a heading of its own, or in the last paragraph."""

    def concludes(index: int) -> bool:
        """True if a paragraph begins at a line, and it begins like a conclusion and contains a boxed answer."""
        is_first = index > 0 and not lines[index - 1].strip()
        return is_first and bool(CONCLUSION.match(lines[index])) and "\\boxed" in "\n".join(lines[index:])

    last = _last_paragraph(lines)
    start = None
    for index in range(len(lines) - 1, max(0, len(lines) - 1 - _LONGEST_ANSWER), -1):
        line = lines[index]
        if not line.strip():
            continue
        if ANSWER_HEADING.fullmatch(line):
            return index
        if start is None and index >= last and (ANSWER.match(line) or concludes(index)):
            start = index
    return start


def _last_paragraph(lines: list[str]) -> int:
    """Return the index of the first line of the last paragraph. A paragraph that ends in a colon or comma includes
    the text after it."""
    blocks = _blocks(lines)
    for (_, before), (start, _) in zip(blocks[-2::-1], blocks[:0:-1], strict=True):
        if len(lines) - before > _LONGEST_ANSWER or not lines[before - 1].rstrip().endswith((":", ",")):
            return start
    return blocks[0][0] if blocks else 0


def _break_at_marks(text: str, mark: re.Pattern[str]) -> list[str]:
    """Return the lines of a text, with a line break inserted before each step mark in the middle of a line. The
    result is empty if the text has fewer than two such marks."""
    marks = list(mark.finditer(plain_marks(text)))
    if len(marks) < 2:
        return []
    places: list[int] = []
    before: tuple[int, ...] = ()
    for match in outside(iter(marks), formulas(text)):
        numbers = numbers_of(match)
        if come_next(numbers, before) and begins_step(text, match):
            places.append(match.start())
            before = numbers
    if len(places) < 2:
        return []
    parts = [text[start:stop].rstrip() for start, stop in zip([0, *places], [*places, len(text)], strict=True)]
    return unbroken_lines("\n".join(part for part in parts if part))


def _bullets(lines: list[str]) -> list[int]:
    """Return the indices of the lines that begin a bullet, or none unless the solution is a bulleted list.

    Such a list has at least two bullets and no other text between them, at most one paragraph before it, and only
    the conclusion after it.
    """
    matches = [(index, match) for index, line in enumerate(lines) if (match := BULLET.match(line))]
    if len(matches) < 2:
        return []
    base = len(matches[0][1][1])
    starts = [index for index, match in matches if len(match[1]) <= base + 1]
    if len(starts) < 2 or len(_paragraphs(_without_heading(lines[: starts[0]])[1])) > 1:
        return []
    for place, _ in _blocks(lines[: starts[-1]]):
        line = lines[place]
        is_loose = place > starts[0] and not line[0].isspace()
        if is_loose and not BULLET.match(line) and not _HEADING.fullmatch(line):
            return []
    item, answers = _without_answers(lines[starts[-1] :], is_item=True)
    item, _ = _without_end(item, answers)
    return starts if all(item[place][0].isspace() for place, _ in _blocks(item) if place) else []


def _paragraphs(lines: list[str]) -> list[str]:
    """Return the paragraphs between blank lines.

    A heading is joined to the next paragraph, and so is a paragraph that ends in a colon before maths, code or a
    list.
    """
    paragraphs: list[list[str]] = []
    is_open = False
    for text in ("\n".join(lines[start:stop]) for start, stop in _blocks(lines)):
        if paragraphs and (is_open or _announces_more(paragraphs[-1][-1], text)):
            paragraphs[-1].append(text)
        else:
            paragraphs.append([text])
        is_open = _HEADING.fullmatch(text) is not None
    return ["\n\n".join(parts) for parts in paragraphs]


def _announces_more(paragraph: str, following: str) -> bool:
    """True if a paragraph announces the maths, code or list after it, or ends in a comma or an open formula."""
    end = paragraph.rstrip()
    if end.rstrip("*_").endswith((":", ",")) and _GOES_ON.match(following):
        return True
    if not end.endswith(("\\]", "$$", "}", ",")) or not _SMALL_WORD.match(following):
        return False
    blocks = formula_blocks(end)
    is_formula = bool(blocks) and blocks[-1][1] == len(end) and not end.rstrip("\\]$ \n").endswith(".")
    return end.endswith(",") or is_formula


def _split_lines(lines: list[str]) -> list[str]:
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
        # A single # without blank lines around it is a comment in code.
        is_open = _HEADING.fullmatch(line) is not None and not line.startswith("# ")
    return sentences(steps[0]) if len(lines) == 1 else steps


def _is_wrapped(lines: list[str]) -> bool:
    """True if the lines were wrapped at a fixed width.

    They count as wrapped if no line had room for the first word of the next line, and at least one line break is
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
    end = line.rstrip().rstrip("*_\"')]$")
    if end.endswith(("，", "、")):
        return True
    return not end.endswith((".", "!", "?", ":", ";")) and bool(_SMALL_WORD.match(after))


def _continues(step: str, line: str) -> bool:
    """True if a line belongs to the step before it: it is indented code, a table row, or inside a sentence."""
    last = step.rpartition("\n")[2]
    if line[0].isspace() and (last[0].isspace() or last.rstrip().endswith((":", "{", "(", "[", ","))):
        return True
    if line.startswith("|") and last.startswith("|"):
        return True
    first = step.lstrip("\"'“(*_")[:1]
    return (first.isupper() or first > "\u3040") and _is_cut(last, line)
