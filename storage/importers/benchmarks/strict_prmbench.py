"""StrictPRMBench: one model's solutions to GSM8K, 32 per problem, and pairs of solutions with and without a step.

The files are read as published. A "pool" holds the candidate solutions to one problem. An "edit" holds a solution
and the step that is deleted from it. Both may also be published with one solution per row:

    {"problem_id": "gsm8k_000", "n": 32, "candidates": [{"problem": {"question": "Janet's ducks …",
     "ground_truth": "18"}, "steps": [{"text": "…"}], "extracted_answer": "18", "is_correct": true}]}
    {"problem_id": "gsm8k_000", "candidate_index": 4, "pair_type": "necessary", "deleted_step_index_0based": 7,
     "original_trace": {"problem": {"question": "Janet's ducks …"}, "steps": [{"text": "…"}]}}
    {"problem_id": "gsm8k_000", "candidate_index": 0, "problem": "Janet's ducks …", "answer": "18", "steps": ["…"]}

The id of a trace looks like `gsm8k_000/0`, and the benchmark's score files refer to traces in the same way. The
steps have no gold labels. The metadata fields `necessary` and `inert` list the steps, counted from 1, whose
deletion breaks the solution or leaves it intact. An edit must come before the pool that contains its solution. Some
first steps begin with a chat prompt, which is kept because it was part of the scored text.
"""

from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.trace import Step, Trace
from stepsight.storage.importers.rows.fields import (
    RowFields,
    Text,
    Texts,
    canonical,
    check_object,
    field,
    listed,
    rest,
    text,
    whole,
)
from stepsight.storage.importers.rows.kind import OnBad, Row, Rows

STEP = "deleted_step_index_0based"
"""The field of its score files that names the step without which a solution was scored."""
SCORES = ("step_scores", "clean_step_scores")
"""The fields of its score files with the scores of a whole solution, without or with a step deleted."""
NECESSARY, INERT = "necessary", "inert"
"""The metadata with the steps of each kind."""
_KINDS = (NECESSARY, INERT)
_CANDIDATES, _ORIGINAL = "candidates", "original_trace"
# The fields of a solution that are kept, under their names in the file.
_FACTS = {"extracted_answer": "extracted_answer", "is_correct": "is_correct", "model_name": "generator"}
# The largest number of a candidate or a step that is read.
_LARGEST = 2**31 - 2


def identify(row: Row) -> str:
    """Return the id of a row's trace. Raises `UserError` if a field is missing or mistyped."""
    number = whole(field(row, "candidate_index"), 0, _LARGEST, "the field 'candidate_index'", "a whole number")
    return f"{text(row, 'problem_id')}/{number}"


def translated(row: Row) -> Row:
    """Convert a row of the benchmark's score files to the format of StepSight's score files.

    Raises `UserError` in the same cases as `identify`.
    """
    if STEP not in row:
        return {"id": identify(row), "scores": field(row, SCORES[0])}
    scores = {"whole": field(row, SCORES[1]), "scores": field(row, "modified_step_scores")}
    return {"id": identify(row), "left_out": _deleted_step(row), **scores}


def _solutions(rows: Rows, name: str, on_bad: OnBad | None) -> Rows:
    """Yield one row per solution.

    The solutions of a pool are yielded one by one, each with the steps that edits delete from it. Solutions that
    occur in edits but not in any pool come at the end, because several edits can concern the same solution.
    """
    edited: dict[str, tuple[str, Row]] = {}
    count = 0
    for where, row in rows:
        try:
            if STEP in row and _kind_of_edit(row) in _KINDS:
                edit = _edit(row)
                place, before = edited.get(identify(edit), (where, {}))
                edited[identify(edit)] = place, _with_deletions(edit, before)
                continue
            solutions = [row]
            if _CANDIDATES in row:
                id, candidates = text(row, "problem_id"), listed(row, _CANDIDATES)
                solutions = [_solution(candidate, id, number) for number, candidate in enumerate(candidates)]
        except UserError as error:
            if on_bad is None:
                raise error.at(where) from None
            on_bad(where, error, canonical(row))
            continue
        for solution in solutions:
            count += 1
            if _CANDIDATES in row:
                where = f"{name} row {count}"
                solution = _with_deletions(solution, edited.pop(identify(solution), ("", {}))[1])
            yield where, solution
    yield from edited.values()


def _deleted_step(row: Row) -> int:
    """Return the 1-based index of the deleted step."""
    return whole(field(row, STEP), 0, _LARGEST, f"the field {STEP!r}", "a step from 0") + 1


def _kind_of_edit(row: Row) -> str:
    return str(row.get("pair_type", row.get("pair_id", ""))).rpartition("::")[2]


def _edit(row: Row) -> Row:
    if _ORIGINAL in row:
        solution = _solution(field(row, _ORIGINAL), field(row, "problem_id"), field(row, "candidate_index"))
    else:
        solution = rest(row, "pair_id", STEP, *_KINDS)
    step, steps = _deleted_step(row), len(listed(solution, "steps"))
    if step > steps:
        raise UserError(f"the field {STEP!r} is {step - 1}, expected a step from 0 to {steps - 1}.")
    return solution | {_kind_of_edit(row): [step]}


def _with_deletions(solution: Row, other: Row) -> Row:
    steps = {kind: sorted({*solution.get(kind, ()), *other.get(kind, ())}) for kind in _KINDS}
    return solution | {kind: deleted for kind, deleted in steps.items() if deleted}


def _solution(solution: Any, problem_id: str, number: int) -> Row:
    solution = check_object(solution, "a solution")
    problem = check_object(field(solution, "problem"), "the field 'problem'")
    steps = [field(check_object(step, "a step"), "text") for step in listed(solution, "steps")]
    facts = {name: solution[key] for key, name in _FACTS.items() if key in solution}
    named = {"problem_id": problem_id, "candidate_index": number, "problem": field(problem, "question")}
    return named | {"answer": problem.get("ground_truth"), "steps": steps} | facts


class _StrictPrmBench(RowFields):
    kept = ("problem_id", "candidate_index")

    problem_id: Any
    candidate_index: Any
    problem: Text
    steps: Texts

    def trace(self, row: Row) -> Trace:
        return Trace(identify(row), self.problem, tuple(Step((step,)) for step in self.steps), self.meta(row))


KIND = _StrictPrmBench.kind(
    "strict-prmbench",
    "StrictPRMBench's candidates, or its solutions with a step to leave out",
    through=_solutions,
    score_fields=frozenset(SCORES),
)
