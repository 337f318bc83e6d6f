"""StrictPRMBench: GSM8K solutions of one model, 32 a problem, and pairs with a step that is needed or not.

Candidates (`gsm8k_candidates.jsonl`), and the texts of its deletions (`gsm8k_necessary_pairs.jsonl`):

    {"problem_id": "gsm8k_000", "candidate_index": 0, "problem": "Janet's ducks …", "answer": "18", "steps": ["…"]}

A trace's id is `gsm8k_000/0`. There is no gold of steps. Some first steps begin with the prompt of a chat, which
was scored with them and is kept. Its score files name the trace in the same way.
"""

from stepsight.core.trace import Step, Trace
from stepsight.storage.importers.fields import field, located, rest, text, texts, whole
from stepsight.storage.importers.kind import FileKind, Row

STEP = "deleted_step_index_0based"
"""The field of its score files that names the step without which a solution was scored."""
# The largest number of a candidate or a step that is read.
_LARGEST = 2**31 - 2


def identify(row: Row) -> str:
    """The id of the trace that a row belongs to. Raises `UserError` if a field is missing or mistyped."""
    number = whole(field(row, "candidate_index"), 0, _LARGEST, "the field 'candidate_index'", "a whole number")
    return f"{text(row, 'problem_id')}/{number}"


def translated(row: Row) -> Row:
    """A row of its scores with a step deleted in StepSight's form. Raises `UserError` as `identify` does."""
    step = whole(field(row, STEP), 0, _LARGEST, f"the field {STEP!r}", "a step from 0")
    scores = {"whole": field(row, "clean_step_scores"), "scores": field(row, "modified_step_scores")}
    return {"id": identify(row), "left_out": step + 1, **scores}


def parse(row: Row, where: str) -> Trace:
    """A row as a trace. Raises `UserError` on missing or mistyped fields."""
    with located(where):
        return Trace(
            id=identify(row),
            problem=text(row, "problem"),
            steps=tuple(Step((step,)) for step in texts(row, "steps")),
            meta=rest(row, "problem", "steps"),
        )


KIND = FileKind(
    name="strict-prmbench",
    title="StrictPRMBench's candidates, or its solutions with a step to leave out",
    fields=frozenset({"problem_id", "candidate_index", "problem", "steps"}),
    parse=parse,
    dataset="strict-prmbench",
)
