"""StrictPRMBench: solutions to GSM8K by one model, 32 per problem, and pairs with and without a step.

The step that a pair differs in is either necessary or not. A file has the candidates (`gsm8k_candidates.jsonl`) or
the texts with a step deleted (`gsm8k_necessary_pairs.jsonl`):

    {"problem_id": "gsm8k_000", "candidate_index": 0, "problem": "Janet's ducks …", "answer": "18", "steps": ["…"]}

The id of a trace is such as `gsm8k_000/0`, and the benchmark's score files name traces in the same way. The steps
have no gold. Some first steps begin with the prompt of a chat, which is kept because it was part of the scored
text.
"""

from stepsight.core.trace import Step, Trace
from stepsight.storage.importers.fields import field, located, rest, text, texts, whole
from stepsight.storage.importers.kind import FileKind, Row

STEP = "deleted_step_index_0based"
"""The field of its score files that names the step without which a solution was scored."""
# The largest number of a candidate or a step that is read.
_LARGEST = 2**31 - 2


def identify(row: Row) -> str:
    """Return the id of the trace that a row belongs to. Raises `UserError` if a field is missing or mistyped."""
    number = whole(field(row, "candidate_index"), 0, _LARGEST, "the field 'candidate_index'", "a whole number")
    return f"{text(row, 'problem_id')}/{number}"


def translated(row: Row) -> Row:
    """Translate a row of the benchmark's scores with a step deleted into StepSight's form.

    Raises `UserError` as `identify` does.
    """
    step = whole(field(row, STEP), 0, _LARGEST, f"the field {STEP!r}", "a step from 0")
    scores = {"whole": field(row, "clean_step_scores"), "scores": field(row, "modified_step_scores")}
    return {"id": identify(row), "left_out": step + 1, **scores}


def parse(row: Row, where: str) -> Trace:
    """Parse a row into a trace. Raises `UserError` if a field is missing or mistyped."""
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
