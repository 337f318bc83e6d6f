r"""Reading candidate solutions from JSON Lines, one candidate per line, and grouping them by problem.

    {"problem": "What is 2 + 3?", "solution": "2 + 3 = 6.\nSo 6.", "answer": "6", "gold": "5"}
    {"problem": "What is 2 + 3?", "steps": ["2 + 3 = 5.", "So 5."], "answer": "5", "gold": "5", "id": "b"}

A solution is split into steps in the same way as a pasted one. Problems are identified by `problem_id` if it is
given, or else by their text. `answer` defaults to the content of the solution's last box, or the text after its
`####`. `gold` is the right answer of a problem. `correct` marks a candidate as right or wrong, whatever its answer.
The lines of a problem need not be adjacent.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.files.jsonl import open_input, read_row
from stepsight.core.text.split import split_steps
from stepsight.core.trace import Trace, check_text
from stepsight.training.experiments.reranking.answers import answer_of


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate in the file, with the values that are needed for choosing. Its text stays in the file.

    `line` is its line, counted from 1, and `start` the byte at which the line begins. `size` is the number of
    characters in its steps.
    """

    line: int
    start: int
    size: int
    answer: str | None
    correct: bool | None


@dataclass(slots=True)
class ProblemGroup:
    """The candidates of one problem, as their numbers in file order.

    `gold` is the right answer, if the file gives it.
    """

    digest: str
    line: int
    gold: str | None = None
    candidates: list[int] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class CandidateSet:
    """The candidates of a file, and its problems in order of first occurrence.

    `digest` is the digest of the file's bytes.
    """

    path: Path
    digest: str
    candidates: tuple[Candidate, ...]
    problems: tuple[ProblemGroup, ...]

    def __len__(self) -> int:
        return len(self.candidates)

    @property
    def where(self) -> str:
        return str(self.path)

    def traces(self, start: int = 0) -> Iterator[Trace]:
        """Read the candidates from number `start` on again, and yield them as traces with ids that name their
        lines."""
        if start >= len(self.candidates):
            return
        with open_input(self.path) as file:
            file.seek(self.candidates[start].start)
            for candidate in self.candidates[start:]:
                file.seek(candidate.start)
                row = _reread(file.readline(), candidate, self)
                yield parse_candidate(row, f"{self.path} line {candidate.line}")

    def rows(self, numbers: Iterator[int]) -> Iterator[dict[str, Any]]:
        """Read the rows of these candidates again and yield them."""
        with open_input(self.path) as file:
            for number in numbers:
                candidate = self.candidates[number]
                file.seek(candidate.start)
                yield _reread(file.readline(), candidate, self)


def read_candidates(path: Path) -> CandidateSet:
    """Read and check the whole file, keeping little of it in memory.

    Raises `UserError` naming the line if a row is not a candidate, or if it contradicts an earlier row about the
    text or gold answer of its problem. Also raises it if there is no candidate.
    """
    digest = hashlib.sha256()
    candidates: list[Candidate] = []
    problems: dict[tuple[str, str], ProblemGroup] = {}
    start = 0
    with open_input(path) as file:
        for line, raw in enumerate(file, start=1):
            digest.update(raw)
            row = read_row(raw, line, str(path))
            if row is not None:
                where = f"{path} line {line}"
                trace = parse_candidate(row, where)
                try:
                    candidate = Candidate(
                        line, start, sum(map(len, trace.substeps)), _answer(row, trace), _correct(row)
                    )
                    _add(problems, row, line).candidates.append(len(candidates))
                except UserError as error:
                    raise error.at(where) from None
                candidates.append(candidate)
            start += len(raw)
    if not candidates:
        raise UserError(f"{path}: no candidate found.", "Write one JSON object per line.")
    return CandidateSet(path, digest.hexdigest(), tuple(candidates), tuple(problems.values()))


def parse_candidate(row: Mapping[str, Any], where: str) -> Trace:
    """Parse a row as a trace with the id `where`. Raises `UserError` that starts with `where` if the row is
    invalid."""
    try:
        if "problem" not in row:
            raise UserError("the field 'problem' is missing.", "Each row needs problem, and steps or solution.")
        return Trace.of(row["problem"], _steps(row), id=where)
    except UserError as error:
        raise error.at(where) from None


def _steps(row: Mapping[str, Any]) -> list[str | list[str]]:
    if ("steps" in row) == ("solution" in row):
        count = "both" if "steps" in row else "neither"
        raise UserError(f"{count} of 'steps' and 'solution' found.", "Each row needs one of them.")
    if "solution" in row:
        return split_steps(check_text(row["solution"], "the solution"))
    steps = row["steps"]
    if not isinstance(steps, list):
        raise UserError(f"steps is {type(steps).__name__}, expected a list.")
    for number, step in enumerate(steps, start=1):
        texts = step if isinstance(step, list) else [step]
        if not all(isinstance(text, str) for text in texts):
            raise UserError(f"step {number} is {step!r:.60}, expected a text or a list of texts.")
    return steps


def _answer(row: Mapping[str, Any], trace: Trace) -> str | None:
    """Return the answer that the row states, or else the answer in which the solution ends."""
    if row.get("answer") is not None:
        return _short(row["answer"], "the answer")
    return answer_of(str(row.get("solution", "\n".join(trace.substeps))))


def _short(value: object, what: str) -> str:
    """Return a text or number as text. Raises `UserError` if the value is neither, or is empty."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return json.dumps(value)
    return check_text(value, what).strip()


def _correct(row: Mapping[str, Any]) -> bool | None:
    correct = row.get("correct")
    if correct is not None and not isinstance(correct, bool):
        raise UserError(f"correct is {correct!r:.40}, expected true or false.")
    return correct


def _add(problems: dict[tuple[str, str], ProblemGroup], row: Mapping[str, Any], line: int) -> ProblemGroup:
    """Return the problem of a row, creating it if it is new.

    Raises `UserError` if the row contradicts an earlier row of the problem.
    """
    digest = hashlib.sha256(row["problem"].encode()).hexdigest()
    named = row.get("problem_id")
    key = ("text", digest) if named is None else ("id", _short(named, "problem_id"))
    problem = problems.setdefault(key, ProblemGroup(digest, line))
    if problem.digest != digest:
        raise UserError(
            f"problem {key[1]!r} has another text than on line {problem.line}.",
            "Give each problem an id of its own.",
        )
    gold = None if row.get("gold") is None else _short(row["gold"], "gold")
    if gold is not None and problem.gold is not None and gold != problem.gold:
        raise UserError(
            f"gold is {gold!r:.60}, and {problem.gold!r:.60} in an earlier line of this problem.",
            "A problem has one right answer.",
        )
    problem.gold = gold if problem.gold is None else problem.gold
    return problem


def _reread(raw: bytes, candidate: Candidate, pool: CandidateSet) -> dict[str, Any]:
    row = read_row(raw, candidate.line, pool.where)
    if row is None:
        raise UserError(f"{pool.path}: changed while it was read.", "Begin again.")
    return row
