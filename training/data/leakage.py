"""Finding benchmark problems among the training problems.

PRM800K, PRMBench and MR-MATH all draw on MATH, so a model trained on one of them may have seen problems of the
rest. Problems are compared by their normalised text, so that copies that differ only in typesetting count as the
same problem.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from stepsight.core.trace import Trace
from stepsight.training.data.sources import SourceReading, open_origin, open_problems
from stepsight.training.data.sources_config import PROBLEMS, TraceOrigin

# A shorter beginning, such as "Find the value of x", does not identify a problem.
_HEAD = 50

# Some copies of MATH spell a line break as a backslash and an n; LaTeX's own commands are left alone.
_LINE_BREAK = re.compile(
    r"\\n(?!(?:abla|atural|e|eq|earrow|eg|ewline|exists|geq|i|leq|mid|onumber|ot|otin|u|warrow)(?![A-Za-z]))"
)
_DASHES = re.compile(r"[−–—]|-{2,3}")
_HYPHEN = re.compile(r"(?<=[a-z]{2})-(?=[a-z]{2})")
_SPELLINGS = tuple(
    (re.compile(rf"\\(?:{written})(?![a-z])"), rf"\\{meant}")
    for written, meant in (("[dt]frac", "frac"), ("leq", "le"), ("geq", "ge"), ("neq", "ne"), ("[lc]dots", "dots"))
)
_REMOVED = re.compile(
    r"\\(?:begin|end)\{(?:align|aligned|equation|gather|gathered|eqnarray)\*?\}"
    r"|\\(?:left|right|quad|qquad|newline|displaystyle|textstyle|(?:text|math)(?:bf|it|rm)?)(?![a-z])"
    r"|\\\\|\\[,;:!>()\[\] ]|[$~&]|\s"
)
_THOUSANDS = re.compile(r"(?<=\d)\{?,\}?(?=\d{3}(?!\d))")
_MARKS = re.compile(r"""[\\{}"'`:;?“”‘’]""")
_POINTS = re.compile(r"(?<!\d)[.,]|[.,](?!\d)")
_WORDS = re.compile(r"\(?[a-z]{3}.{7}")


def normalise(problem: str) -> str:
    r"""Return the text of a problem without the details in which copies of a problem tend to differ.

    The text becomes lower case. These are removed: white space and LaTeX for it (`\,`, `\quad`, `~`, `\\`); `$`,
    `\(`, `\[`, `\left`, `\right`, `\displaystyle`, `\text`, bold type and alignment; backslashes, braces and
    quotation marks; commas in numbers such as 10,000 and hyphens between words; and punctuation, except a point or
    comma between digits (1.5 is not 15). `\dfrac` becomes `\frac`, and `\leq` becomes `\le`. Operators, parentheses
    and digits are kept, so that problems that differ in them remain different.
    """
    text = _LINE_BREAK.sub(" ", unicodedata.normalize("NFKC", problem)).lower()
    text = _DASHES.sub("-", text)
    for spelling, meant in _SPELLINGS:
        text = spelling.sub(meant, text)
    text = _THOUSANDS.sub("", _REMOVED.sub("", _HYPHEN.sub("", text)))
    return _POINTS.sub("", _MARKS.sub("", text)) or problem


class Benchmarks:
    """The problems of the benchmarks named in a configuration. The constructor reads all problems, and raises
    `UserError` if a benchmark cannot be read."""

    def __init__(self, origins: Iterable[TraceOrigin], root: Path, db: str | None = None) -> None:
        self._whole: dict[str, set[int]] = defaultdict(set)
        self._by_head: dict[str, list[str]] = defaultdict(list)
        self.records: list[dict[str, Any]] = []
        for number, origin in enumerate(origins):
            self._add(number, origin, root, db)

    def _add(self, number: int, origin: TraceOrigin, root: Path, db: str | None) -> None:
        reading, texts = _open(origin, root, f"data.benchmarks[{number}]", db)
        problems = {normalise(problem) for problem in texts}
        for problem in sorted(problems):
            if problem not in self._whole:
                self._by_head[problem[:_HEAD]].append(problem)
            self._whole[problem].add(number)
        self.records.append(reading.record | {"problems": len(problems)})

    def overlaps(self, trace: Trace) -> set[int]:
        """Return the indices, in the configuration, of the benchmarks that contain the trace's problem.

        Two problems count as the same if their normalised texts are equal, or if one text has at least 50
        characters and the other begins with it, adding for example a hint or the first step of a solution.
        """
        if not self.records:
            return set()
        overlapping: set[int] = set()
        for problem in map(normalise, problems_of(trace)):
            overlapping |= self._whole.get(problem, set())
            for other in self._by_head.get(problem[:_HEAD], ()) if len(problem) >= _HEAD else ():
                if _extends(problem, other) or _extends(other, problem):
                    overlapping |= self._whole[other]
        return overlapping


def _open(origin: TraceOrigin, root: Path, key: str, db: str | None) -> tuple[SourceReading[Any], Iterable[str]]:
    """Open a benchmark. Return its reading, which has a `record`, and the texts of its problems."""
    if origin.kind == PROBLEMS:
        listed = open_problems(origin, root, key)
        return listed, listed
    reading = open_origin(origin, root, key, db)
    return reading, (text for trace in reading for text in problems_of(trace))


def _extends(longer: str, shorter: str) -> bool:
    return longer.startswith(shorter) and _WORDS.match(longer, len(shorter)) is not None


def problems_of(trace: Trace) -> Iterator[str]:
    """Yield the problem of a trace and any original problems that its meta contains, as in PRMBench."""
    yield trace.problem
    for key in ("original_question", "question"):
        text = trace.meta.get(key)
        if isinstance(text, str):
            yield text
