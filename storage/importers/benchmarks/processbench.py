"""ProcessBench: solutions by models, with the first error marked (Qwen).

The file is a JSON array or JSON Lines. `label` is the 0-based first error, or -1 if there is none:

    {"id": "gsm8k-0", "generator": "Qwen2-7B-Instruct", "problem": "Sue lives in …",
     "steps": ["To find out …", "On Saturday, …"], "final_answer_correct": false, "label": 1}

The steps before the first error become valid without a label, and those after it are unlabelled. If `label` is
null, all steps are unlabelled; if it is the word N/A, there is no error.
"""

from stepsight.core.trace import Trace
from stepsight.storage.importers.rows.fields import (
    field,
    identifier,
    located,
    rest,
    text,
    texts,
    until_first_error,
)
from stepsight.storage.importers.rows.kind import FileKind, PublicFile, Row


def parse(row: Row, where: str) -> Trace:
    """Parse a row into a trace. Raises `UserError` if a field is missing or mistyped, or `label` out of range."""
    with located(where):
        steps = [(step,) for step in texts(row, "steps")]
        return Trace(
            id=identifier(row, "id"),
            problem=text(row, "problem"),
            steps=until_first_error(steps, field(row, "label"), 0, "the field 'label'"),
            meta=rest(row, "id", "problem", "steps", "label"),
        )


_PUBLIC = "https://huggingface.co/datasets/Qwen/ProcessBench/resolve/main"
_PARTS = ("gsm8k.json", "math.json", "olympiadbench.json", "omnimath.json")

KIND = FileKind(
    name="processbench",
    title="ProcessBench with the first wrong step of each solution",
    fields=frozenset({"id", "problem", "steps", "final_answer_correct", "label"}),
    parse=parse,
    dataset="processbench",
    files=tuple(PublicFile(name, f"{_PUBLIC}/{name}") for name in _PARTS),
)
