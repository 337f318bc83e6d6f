"""The sections of a long solution: an approach, a computation, a check, a doubt, a repair or an answer.

A section begins at a step whose first words say so. The words of some languages are known (see `section_words`). A
solution in another language is a single section.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from stepsight.core.text.section_words import BEGINNINGS, FREQUENT, SectionKind
from stepsight.core.text.signs import plain
from stepsight.core.text.split import ANSWER, ANSWER_HEADING, CONCLUSION


@dataclass(frozen=True)
class StepSection:
    """Consecutive steps of a solution, from index `start` up to but not including `stop`."""

    start: int
    stop: int
    kind: SectionKind


@dataclass(frozen=True)
class StepSections:
    """All sections of a solution, in order.

    `language` is the code of the language whose words divide the solution. It is "" if there are no words for its
    language, and the whole solution is then one section.
    """

    parts: tuple[StepSection, ...]
    language: str


# The number of characters at the beginning of a step that are read, and that two beginnings are compared by.
_READ, _COMPARED = 160, 24
# The fewest steps of a section before another of its kind, and before a computation, whose words are weaker. If its
# first sentence states a result, it is more often the next line of the section so far.
_FEWEST, _FEWEST_AGAIN = 2, 3
_BEFORE_COMPUTATION, _AFTER_OTHERS = 3, 2

_HEADING = re.compile(r"#{1,6}[ \t]+\S|(?:\*\*|__)[^*_\n]{1,100}(?:\*\*|__)[ \t]*:?[ \t]*(?:\n|$)")
_MARKUP = re.compile(r"[#>*_\s\"'(\[]{1,20}")
_STATES = re.compile(r"[^.?!\n]*(?:=|≈|\\approx|\\equiv)")
_NUMBERS = re.compile(r"[-\d.,$()\\]+")
_WORD = re.compile(r"[^\W\d_]{2,}")
_HAN, _KANA = re.compile(r"[\u4e00-\u9fff]"), re.compile(r"[\u3040-\u30ff]")
# The smallest share of a language's frequent words among all words.
_SHARE = 1 / 12


def find_sections(steps: Sequence[str], *, is_whole: bool = True) -> StepSections:
    """Divide the steps of a solution into sections by the first words of each step and by headings.

    Only the beginning of each step is read, so the time grows with the number of steps and not with their length.
    If `is_whole` is False, the last step counts as any other, so that no border depends on a later step; only the
    language is that of all steps.
    """
    language = _language(steps)
    if not language:
        return StepSections((StepSection(0, len(steps), SectionKind.COMPUTATION),) if steps else (), "")
    starts: list[tuple[int, SectionKind]] = []
    opening = ""
    for index, step in enumerate(steps):
        kind = _kind_begun(step, language, is_last=is_whole and index == len(steps) - 1)
        beginning = _NUMBERS.sub("0", step[:_COMPARED])
        is_announced = beginning == opening or not _STATES.match(step[:_READ])
        if not starts or (kind and _is_turn(kind, index, *starts[-1], is_announced)):
            starts.append((index, kind or SectionKind.COMPUTATION))
            opening = beginning
    stops = [*(start for start, _ in starts[1:]), len(steps)]
    parts = (StepSection(start, stop, kind) for (start, kind), stop in zip(starts, stops, strict=True))
    return StepSections(tuple(parts), language)


def _is_turn(kind: SectionKind, index: int, start: int, before: SectionKind, is_announced: bool) -> bool:
    """True if the step at `index`, whose words begin a section of `kind`, does begin one.

    The section so far is of kind `before` and began at `start`. `is_announced` is True unless the first sentence
    states a result and differs from the beginning of that section.
    """
    length = index - start
    if kind == SectionKind.COMPUTATION:
        fewest = _BEFORE_COMPUTATION if before in (kind, SectionKind.APPROACH) else _AFTER_OTHERS
        return length >= fewest + (not is_announced)
    again = _FEWEST_AGAIN if kind in (SectionKind.CHECK, SectionKind.ANSWER) else _FEWEST
    return kind != before or length >= again


def _kind_begun(step: str, language: str, is_last: bool) -> SectionKind | None:
    """Return the kind of section that the first words of a step begin, or None if they begin none."""
    head = plain(step[:_READ]).lstrip()
    if ANSWER.match(head) or ANSWER_HEADING.fullmatch(head.partition("\n")[0]):
        return SectionKind.ANSWER
    if is_last and (CONCLUSION.match(head) or any(map(ANSWER_HEADING.fullmatch, step.split("\n")))):
        return SectionKind.ANSWER
    words = _MARKUP.sub("", head, count=1) if _MARKUP.match(head) else head
    found = next((kind for kind, pattern in BEGINNINGS[language] if pattern.match(words)), None)
    if _HEADING.match(head) and found in (None, SectionKind.COMPUTATION):
        return SectionKind.APPROACH
    return found


def _language(steps: Sequence[str]) -> str:
    """Return the code of the language of the steps, or "" if there are no words for it."""
    heads = [step[:_READ] for step in steps]
    if any(map(_KANA.search, heads)):
        return ""
    if sum(_HAN.search(head) is not None for head in heads) * 2 > len(heads):
        return "zh"
    words = Counter(word.lower() for head in heads for word in _WORD.findall(head))
    counts = {language: sum(words[word] for word in frequent) for language, frequent in FREQUENT.items()}
    best = max(counts, key=lambda language: counts[language])
    return best if counts[best] > words.total() * _SHARE else ""
