"""The sections in which a critic is asked about a long solution, and the summary of earlier sections.

For each section, the critic sees the problem, the summary, and the steps of that section. It sees no later section,
so its verdict on a step is final once the section is judged. The summary is built by rule, not by a model: it needs
no calls, is the same each time, and cannot add mistakes of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from stepsight.core.label import Label
from stepsight.core.text.sections import find_sections
from stepsight.core.trace import Trace

CHARACTERS = 3
"""The approximate number of characters per token, in problems and steps."""

# The longest line that a summary quotes, in characters, and the most numbers of steps in one list.
_QUOTED, _LISTED = 160, 20
# A summary has at most this fraction of the tokens of a section.
_SUMMARY_SHARE = 2


@dataclass(frozen=True)
class AskedSection:
    """The sub-steps of a section that a critic is asked about together, from index `start` up to but not including
    `stop`. `kind` is "" if no section words are known for the language of the solution."""

    start: int
    stop: int
    kind: str

    @property
    def name(self) -> str:
        """The numbers of its steps, such as `Steps 4 to 5`."""
        return _numbered(self.start, self.stop)


def asked_sections(trace: Trace, budget: int) -> tuple[AskedSection, ...]:
    """Divide a trace into sections of at most `budget` tokens each, as estimated from the number of characters.

    The borders are those of `core.text.sections` and, within a longer section, the last end of a step before the
    budget is exceeded. A step that alone exceeds it is a section of its own. No border depends on a later step.
    """
    found = find_sections([step.text for step in trace.steps], is_whole=False)
    places = [0, *accumulate(len(step.substeps) for step in trace.steps)]
    sections = []
    for part in found.parts:
        kind = part.kind.value if found.language else ""
        first, read = part.start, 0
        for step in range(part.start, part.stop):
            length = len(trace.steps[step].text) + len(trace.read_before(places[step]))
            if step > first and read + length > budget * CHARACTERS:
                sections.append(AskedSection(places[first], places[step], kind))
                first, read = step, 0
            read += length
        sections.append(AskedSection(places[first], places[part.stop], kind))
    return tuple(sections)


def summarise(trace: Trace, sections: Sequence[AskedSection], labels: Sequence[Label], budget: int) -> str:
    """Summarise the sections before the current one. `labels` are the critic's verdicts on their sub-steps.

    For each section, the summary says which steps it has, its kind, its first and its last line, cut to 160
    characters each, and which of its steps are neg or neu. It has at most half of `budget` tokens: if it is longer,
    the earliest sections are replaced by one line with the numbers of their neg and neu steps.
    """
    if not sections:
        return "Nothing. The solution begins with this section."
    lines: list[str] = []
    left = budget * CHARACTERS // _SUMMARY_SHARE
    for place in reversed(range(len(sections))):
        line = _line(trace, sections[place], labels)
        left -= len(line)
        if left < 0:
            last = sections[place].stop
            lines.append(f"{_numbered(0, last)}, not quoted here. {_verdicts(labels[:last], 0)}")
            break
        lines.append(line)
    return "\n".join(reversed(lines))


def _line(trace: Trace, section: AskedSection, labels: Sequence[Label]) -> str:
    kind = f", {section.kind}" if section.kind else ""
    first = _quoted(trace.substeps[section.start].strip().split("\n")[0])
    last = _quoted(trace.substeps[section.stop - 1].strip().split("\n")[-1])
    text = f"First line: {first}" if first == last else f"First line: {first} Last line: {last}"
    verdicts = _verdicts(labels[section.start : section.stop], section.start)
    return f"{section.name}{kind}. {text} {verdicts}"


def _numbered(start: int, stop: int) -> str:
    return f"Step {stop}" if stop - start == 1 else f"Steps {start + 1} to {stop}"


def _quoted(line: str) -> str:
    line = " ".join(line.split())
    return f'"{line}"' if len(line) <= _QUOTED else f'"{line[: _QUOTED - 1]}…"'


def _verdicts(labels: Sequence[Label], start: int) -> str:
    """Return the numbers of the steps that are neg or neu. The first of `labels` belongs to the step at `start`."""
    lists = []
    for label in (Label.NEG, Label.NEU):
        numbers = [str(start + place + 1) for place, one in enumerate(labels) if one == label]
        if numbers:
            more = f" and {len(numbers) - _LISTED} more" if len(numbers) > _LISTED else ""
            lists.append(f"{label.text}: {', '.join(numbers[:_LISTED])}{more}")
    return f"Your verdicts: {'; '.join(lists)}; pos: the others." if lists else "Your verdicts: all pos."
