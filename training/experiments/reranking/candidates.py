r"""Candidate solutions of problems, read from a file with one candidate per line or from a stored dataset.

    {"problem": "What is 2 + 3?", "solution": "2 + 3 = 6.\nSo 6.", "answer": "6", "gold": "5"}
    {"problem": "What is 2 + 3?", "steps": ["2 + 3 = 5.", "So 5."], "answer": "5", "gold": "5", "id": "b"}

A `solution` is split into steps like a pasted solution. Problems are identified by `problem_id` if it is given, and
otherwise by their text. `answer` defaults to the content of the solution's last box, or to the text after its
`####`. `gold` is the right answer of the problem. `correct` marks a candidate as right or wrong, whatever its
answer. The lines of a problem need not be adjacent.

StrictPRMBench's candidates can also be read; their `answer` field holds the right answer. Its score files can be
read without its candidates, which then have no texts or answers but are marked as right or wrong.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.files.jsonl import open_input, read_row
from stepsight.core.scores import StepScores
from stepsight.core.text.split import split_steps
from stepsight.core.trace import Trace, check_text
from stepsight.storage.database.store import Store
from stepsight.storage.importers.benchmarks.strict_prmbench import SCORES, identify
from stepsight.storage.importers.guesses import rival_columns
from stepsight.storage.traces.queries import Dataset, StoredTrace, iterate_traces, trace_batches
from stepsight.training.experiments.reranking.answers import answer_of

CandidateScores = StepScores | None
"""The scores of a candidate's steps; None if it is too long for the evaluator."""

Row = dict[str, Any]
Rows = Callable[[Sequence[int]], Iterator[Row]]
"""The rows of some candidates by their numbers, read again."""

# The field by which StrictPRMBench's rows are recognised, and some of their fields by the names used here.
_NUMBER = "candidate_index"
_STRICT = {"answer": "extracted_answer", "gold": "answer", "correct": "is_correct"}
_FACTS = ("problem_id", *_STRICT)


@dataclass(frozen=True, slots=True)
class Candidate:
    """The facts about a candidate solution that are kept in memory.

    `line` is the candidate's line in the file, or its position in the dataset, counted from 1. `id` is None if the
    file gives none. `steps` is the number of steps and `size` the number of characters; both are 0 if the text is
    unknown. `answer` and `correct` are None if unknown.
    """

    line: int
    id: str | None
    steps: int
    size: int
    answer: str | None
    correct: bool | None


@dataclass(slots=True)
class ProblemGroup:
    """The candidates of one problem.

    `candidates` holds the indices of the candidates, in file order. `line` is the first line of the problem, and
    `digest` is the hash of the problem's text. `gold` is the right answer if the file gives it.
    """

    digest: str
    line: int
    gold: str | None = None
    candidates: list[int] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class CandidateSet:
    """The candidates in a file or dataset, and their problems in order of first occurrence.

    `name` is the name of the file or dataset, and `digest` is the hash of the file. Texts are not kept in memory:
    `read` takes the indices of candidates and reads their rows again. `has_texts` is False if only scores are
    known.
    """

    name: str
    digest: str
    candidates: tuple[Candidate, ...]
    problems: tuple[ProblemGroup, ...]
    read: Rows
    has_texts: bool = True
    of_file: bool = True

    def __len__(self) -> int:
        return len(self.candidates)

    def place(self, candidate: Candidate) -> str:
        """Return the words by which messages refer to a candidate: its file and line, or its dataset and id."""
        return f"{self.name} line {candidate.line}" if self.of_file else f"{self.name} {candidate.id!r}"

    def traces(self, start: int = 0) -> Iterator[Trace]:
        """Read the candidates from index `start` on again and yield them as traces, whose ids are their `place`."""
        wanted = self.candidates[start:]
        for candidate, row in zip(wanted, self.read(range(start, len(self.candidates))), strict=True):
            yield parse_candidate(row, self.place(candidate))


def read_candidates(path: Path) -> CandidateSet:
    """Read and check a file of candidates, without keeping their texts in memory.

    Raises `UserError` if there is no candidate, if a row is not a candidate or has other solutions too, or if it
    contradicts an earlier row about the text or gold answer of its problem. Except in the first case, the error
    names the line.
    """
    digest = hashlib.sha256()
    pool = _Pool()
    starts: list[int] = []
    start = 0
    with open_input(path) as file:
        for line, raw in enumerate(file, start=1):
            digest.update(raw)
            row = read_row(raw, line, str(path))
            if row is not None:
                _check_solution(row, f"{path} line {line}")
                pool.add(_translated(row, f"{path} line {line}"), line, f"{path} line {line}")
                starts.append(start)
            start += len(raw)
    if not pool.candidates:
        raise UserError(f"{path}: no candidate found.", "Write one JSON object per line.")
    candidates = tuple(pool.candidates)

    def read(numbers: Sequence[int]) -> Iterator[Row]:
        with open_input(path) as file:
            for number in numbers:
                file.seek(starts[number])
                yield _reread(file.readline(), candidates[number].line, path)

    return CandidateSet(
        str(path), digest.hexdigest(), candidates, tuple(pool.problems.values()), read, pool.has_texts
    )


def _check_solution(row: Row, where: str) -> None:
    """Raise `UserError` if a row holds other solutions besides its own, which is then probably the reference."""
    rivals = [] if _NUMBER in row or "solution" not in row else rival_columns([row], "solution")
    if rivals:
        raise UserError(
            f"{where}: 'solution' and {rivals[0]!r:.60} may each hold the candidates.",
            "Write one candidate in each line, as its 'solution', and leave the other field out.",
        )


def stored_candidates(store: Store, dataset: Dataset) -> CandidateSet:
    """Return the traces of a stored dataset as candidates. Their answers are taken from their meta or their last
    steps. Raises `UserError` in the same cases as `read_candidates`, but names the trace."""
    trace_ids: list[int] = []

    def noted() -> Iterator[StoredTrace]:
        for trace in iterate_traces(store, dataset.id):
            trace_ids.append(trace.trace_id)
            yield trace

    def read(numbers: Sequence[int]) -> Iterator[Row]:
        for batch in trace_batches(store, [trace_ids[number] for number in numbers]):
            yield from map(_row_of, batch)

    return _of_traces(noted(), dataset.name, dataset.sha256, read)


def _of_traces(traces: Iterable[StoredTrace], name: str, digest: str, read: Rows) -> CandidateSet:
    pool = _Pool()
    for trace in traces:
        pool.add(_row_of(trace), trace.position + 1, f"{name} {trace.id!r}")
    return CandidateSet(name, digest, tuple(pool.candidates), tuple(pool.problems.values()), read, of_file=False)


def _row_of(trace: StoredTrace) -> Row:
    """Return a stored trace as a row of a candidate file, including the facts about its answer in its meta."""
    meta = _by_our_names(trace.meta) if _NUMBER in trace.meta else trace.meta
    facts = {key: meta[key] for key in _FACTS if isinstance(meta.get(key), str | int | float) and meta[key] != ""}
    if not isinstance(facts.get("correct"), bool):
        facts.pop("correct", None)
    steps = [list(step.substeps) for step in trace.steps]
    return {"id": trace.id, "problem": trace.problem, "steps": steps} | facts


def _translated(row: Row, where: str) -> Row:
    """Rename StrictPRMBench's fields in a row to those of candidate files. Other rows are unchanged."""
    if _NUMBER not in row:
        return row
    try:
        return _by_our_names(row) | {"id": identify(row)}
    except UserError as error:
        raise error.at(where) from None


def _by_our_names(row: Mapping[str, Any]) -> Row:
    ours = {key: row.get(theirs) for key, theirs in _STRICT.items()}
    # What could not be extracted is empty.
    return {**row, **ours, "answer": ours["answer"] or None}


class _Pool:
    """The candidates and problems of the rows read so far."""

    def __init__(self) -> None:
        self.candidates: list[Candidate] = []
        self.problems: dict[tuple[str, str], ProblemGroup] = {}
        self.has_texts = True

    def add(self, row: Row, line: int, where: str) -> None:
        """Add a row. Raises `UserError`, with a message that starts with `where`, if the row is invalid."""
        if not self.candidates:
            self.has_texts = not _is_of_scores(row)
        trace = parse_candidate(row, where) if self.has_texts else None
        try:
            if trace is None and not _is_of_scores(row):
                raise UserError("a row without scores, the first has only scores.", "Use one kind per file.")
            _add(self.problems, row, line).candidates.append(len(self.candidates))
            self.candidates.append(_candidate(row, line, trace))
        except UserError as error:
            raise error.at(where) from None


def _is_of_scores(row: Row) -> bool:
    return SCORES[0] in row and "problem" not in row


def _candidate(row: Row, line: int, trace: Trace | None) -> Candidate:
    id = row.get("id")
    steps, size = (0, 0) if trace is None else (len(trace.steps), sum(map(len, trace.substeps)))
    return Candidate(
        line,
        str(id) if isinstance(id, str | int) and not isinstance(id, bool) else None,
        steps,
        size,
        None if trace is None else _answer(row, trace),
        _correct(row),
    )


def parse_candidate(row: Mapping[str, Any], where: str) -> Trace:
    """Parse a row as a trace with the id `where`. Raises `UserError`, with a message that starts with `where`, if
    the row is invalid."""
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
    """Return the answer that a row states or, failing that, the final answer of its solution."""
    if row.get("answer") is not None:
        return _short(row["answer"], "the answer")
    return answer_of(str(row.get("solution", "\n".join(trace.substeps))))


def _short(value: object, what: str) -> str:
    """Return a text or number as text. Raises `UserError` if the value is empty or of a different type."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return json.dumps(value)
    return check_text(value, what).strip()


def _correct(row: Mapping[str, Any]) -> bool | None:
    correct = row.get("correct")
    if correct is not None and not isinstance(correct, bool):
        raise UserError(f"correct is {correct!r:.40}, expected true or false.")
    return correct


def _add(problems: dict[tuple[str, str], ProblemGroup], row: Mapping[str, Any], line: int) -> ProblemGroup:
    """Return the problem that a row belongs to, adding it to `problems` if it is new. Raises `UserError` if the row
    contradicts an earlier row of the problem."""
    digest = hashlib.sha256(row.get("problem", "").encode()).hexdigest()
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


def _reread(raw: bytes, line: int, path: Path) -> Row:
    row = read_row(raw, line, str(path))
    if row is None:
        raise UserError(f"{path}: changed while it was read.", "Begin again.")
    return _translated(row, f"{path} line {line}")
