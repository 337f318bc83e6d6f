r"""Candidate solutions of problems: the traces of a dataset, with what their metadata say of their answers.

A file has a candidate in each line and is imported as a dataset:

    {"problem": "What is 2 + 3?", "solution": "2 + 3 = 6.\nSo 6.", "answer": "6", "gold": "5"}
    {"problem": "What is 2 + 3?", "steps": ["2 + 3 = 5.", "So 5."], "answer": "5", "gold": "5", "id": "b"}

`answer` defaults to the content of the solution's last box, or to the text after its `####`. `gold` is the right
answer of the problem, and `correct` marks a candidate as right or wrong, whatever its answer. These are stored as
StrictPRMBench names them: `extracted_answer`, `answer`, which pages show as the right answer, and `is_correct`.
Problems are identified by `problem_id` if it is given, and otherwise by their text.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.files.text_lines import stem_of
from stepsight.core.trace import Trace, check_text, find_answer
from stepsight.storage.database.store import Store
from stepsight.storage.importers.benchmarks.strict_prmbench import identify
from stepsight.storage.importers.column_mapping import ColumnMap
from stepsight.storage.importers.guesses import rival_columns
from stepsight.storage.importers.rows.kind import Row
from stepsight.storage.traces.queries import Dataset, StoredTrace, iterate_traces, trace_batches
from stepsight.training.experiments.reranking.answers import answer_of
from stepsight.training.experiments.solutions import import_solutions, solution_text

# The field by which StrictPRMBench's rows are recognised, and its names for the fields of a file.
_NUMBER = "candidate_index"
_STORED = {"answer": "extracted_answer", "gold": "answer", "correct": "is_correct"}
_COLUMNS = tuple(ColumnMap(problem="problem", steps=steps) for steps in ("steps", "solution"))


def import_candidates(store: Store, path: Path, dataset: str | None = None, *, skip_bad: bool = False) -> Dataset:
    """Import a file of candidates as a dataset, named after the file by default.

    Raises `UserError` in the same cases as `import_solutions`, and if a row states its answers in a wrong type or
    has other solutions too.
    """
    name = dataset or stem_of(path.resolve())
    return import_solutions(store, {path: _COLUMNS}, name, _with_facts, skip_bad=skip_bad)


def _with_facts(row: Row, columns: ColumnMap, trace: Trace) -> Trace:
    if _NUMBER in row:
        return replace(trace, id=identify(row))
    if "steps" in row and "solution" in row:
        raise UserError("both of 'steps' and 'solution' found.", "Each row needs one of them.")
    if columns.steps == "solution" and (rivals := rival_columns([row], "solution")):
        raise UserError(
            f"'solution' and {rivals[0]!r:.60} may each hold the candidates.",
            "Write one candidate in each line, as its 'solution', and leave the other field out.",
        )
    if not isinstance(row.get("correct"), bool | None):
        raise UserError(f"correct is {row['correct']!r:.40}, expected true or false.")
    for key in ("answer", "gold", "problem_id"):
        if row.get(key) is not None and _short(row[key]) is None:
            raise UserError(f"{key} is {row[key]!r:.40}, expected a text or a number.")
    id = row.get("id")
    meta = {key: value for key, value in _renamed(trace.meta).items() if key != "id"}
    is_named = isinstance(id, str | int) and not isinstance(id, bool)
    return replace(trace, id=check_text(str(id), "the id") if is_named else trace.id, meta=meta)


def _renamed(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata with the names of a file replaced by those that are stored."""
    return {_STORED.get(key, key): value for key, value in meta.items() if value is not None}


def _short(value: object) -> str | None:
    """Return a text or number as text, or None if it is empty or something else."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return json.dumps(value)
    return value.strip() or None if isinstance(value, str) else None


@dataclass(frozen=True, slots=True)
class Candidate:
    """The facts about a candidate solution that are kept in memory.

    `line` is its position in the dataset, counted from 1, and `size` the number of characters of its steps.
    `answer` and `correct` are None if unknown.
    """

    trace_id: int
    id: str
    line: int
    size: int
    answer: str | None
    correct: bool | None


@dataclass(slots=True)
class ProblemGroup:
    """A problem with the indices of its candidates, in the order of the dataset, and its right answer if known."""

    text: str
    gold: str | None = None
    candidates: list[int] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class CandidateSet:
    """The candidates of a dataset, and their problems in order of first occurrence. Texts are not kept."""

    store: Store
    dataset: Dataset
    candidates: tuple[Candidate, ...]
    problems: tuple[ProblemGroup, ...]

    @classmethod
    def read(cls, store: Store, dataset: Dataset) -> "CandidateSet":
        """Read the candidates. Raises `UserError` if traces of a problem disagree about its text or answer."""
        candidates: list[Candidate] = []
        problems: dict[tuple[str, str], ProblemGroup] = {}
        for trace in iterate_traces(store, dataset.id):
            meta = _renamed(trace.meta) if trace.meta.keys() & {"gold", "correct"} else trace.meta
            named = _short(meta.get("problem_id"))
            key = ("text", trace.problem) if named is None else ("id", named)
            problem = problems.setdefault(key, ProblemGroup(trace.problem))
            gold = find_answer(meta)
            if problem.text != trace.problem:
                raise UserError(
                    f"{dataset.name} {trace.id!r}: the problem {named!r} has another text before.",
                    "Give each problem an id of its own.",
                )
            if gold and problem.gold and gold != problem.gold:
                raise UserError(
                    f"{dataset.name} {trace.id!r}: the right answer is {gold!r:.60}, before {problem.gold!r:.60}.",
                    "A problem has one right answer; a candidate's own answer is its extracted_answer.",
                )
            problem.gold = problem.gold or gold
            problem.candidates.append(len(candidates))
            answer = _short(meta.get("extracted_answer")) or answer_of(solution_text(trace))
            correct = meta.get("is_correct")
            size = sum(map(len, trace.substeps))
            is_correct = correct if isinstance(correct, bool) else None
            candidates.append(Candidate(trace.trace_id, trace.id, trace.position + 1, size, answer, is_correct))
        return cls(store, dataset, tuple(candidates), tuple(problems.values()))

    def traces(self, numbers: Iterable[int]) -> Iterator[StoredTrace]:
        """Read the candidates with these indices again, with their texts."""
        ids = [self.candidates[number].trace_id for number in numbers]
        return chain.from_iterable(trace_batches(self.store, ids))

    def check_answers(self, method: str) -> None:
        """Raise `UserError` if no candidate has an answer, which the voting `method` counts."""
        if not any(candidate.answer is not None for candidate in self.candidates):
            raise UserError(
                f"{self.dataset.name}: no candidate has an answer, and {method} counts answers.",
                "Give each an answer, or use --method best-of-n.",
            )
