"""PRMBench: correct solutions rewritten so that each contains errors of one class (ssmisya/PRMBench).

`error_steps` are 1-based indices into `modified_process`:

    {"original_question": "…", "modified_question": "How many seconds are in 7.8 minutes?",
     "original_process": ["7.8 minutes is …", "…"], "modified_process": ["7.8 minutes is …", "In 0.8 minutes, …"],
     "modified_steps": [2], "error_steps": [2], "reason": "…", "idx": "prm_train_p1_0", "question": "…",
     "classification": "missing_condition"}

The trace is the modified question with the modified process. PRMBench regards every step that is not an error step
as correct, even after the first error, so these steps become valid. It does not say whether they are redundant, so
they have no label. Error steps become neg, except in the two classes of its Simplicity category, `redundency` (its
spelling) and `circular`. PRMBench calls these a specific form of redundancy, so there the error steps become neu.
(The `reason` of some circular rows calls the reasoning fallacious as well. PRMScore, which only distinguishes right
from wrong, has to count neu as wrong in these two classes.) Rows of `multi_solutions` have no error.

`idx` repeats across classes, and also within `multi_solutions`, where one problem has several solutions. The id is
therefore `class/idx`, followed by a hash of the content in the case of `multi_solutions`.
"""

from stepsight.core.errors import UserError
from stepsight.core.label import Label
from stepsight.core.trace import Step, Trace
from stepsight.storage.importers.fields import content_id, identifier, listed, located, rest, text, texts, whole
from stepsight.storage.importers.kind import FileKind, PublicFile, Row

_SIMPLICITY = ("redundency", "circular")
ERROR_CLASSES = (
    *_SIMPLICITY,
    "counterfactual",
    "step_contradiction",
    "domain_inconsistency",
    "confidence",
    "missing_condition",
    "deception",
)
"""The classes of errors, in PRMBench's spelling."""

_CLASSES = (*ERROR_CLASSES, "multi_solutions")


def parse(row: Row, where: str) -> Trace:
    """Parse a row into a trace. Raises `UserError` if a field is missing or mistyped, or an index out of range."""
    with located(where):
        steps, kind = texts(row, "modified_process"), _class(row)
        errors = {whole(step, 1, len(steps), "an error step") for step in listed(row, "error_steps")}
        label = Label.NEU if kind in _SIMPLICITY else Label.NEG
        return Trace(
            id=_id(row, kind),
            problem=text(row, "modified_question"),
            steps=tuple(
                Step((step,), label) if number in errors else Step((step,), valid=True)
                for number, step in enumerate(steps, start=1)
            ),
            meta=rest(row, "modified_question", "modified_process", "error_steps"),
        )


def _class(row: Row) -> str:
    name = text(row, "classification")
    if name not in _CLASSES:
        raise UserError(f"the field 'classification' is {name!r}.", f"Expected {', '.join(_CLASSES)}.")
    return name


def _id(row: Row, kind: str) -> str:
    named = f"{kind}/{identifier(row, 'idx')}"
    return f"{named}/{content_id(row)}" if kind == "multi_solutions" else named


KIND = FileKind(
    name="prmbench",
    title="PRMBench with the error steps of each modified solution",
    fields=frozenset({"idx", "modified_question", "modified_process", "error_steps", "classification"}),
    parse=parse,
    dataset="prmbench",
    files=(
        PublicFile(
            "prmbench_preview.jsonl",
            "https://huggingface.co/datasets/hitsmy/PRMBench_Preview/resolve/"
            "5cc7683d0ae5797f84d7aeac0607966f277c39e1/prmbench_preview.jsonl",
            "3efe79ff688751369da6161635c247318611032071ee46cde6a20a95125bc966",
        ),
    ),
)
