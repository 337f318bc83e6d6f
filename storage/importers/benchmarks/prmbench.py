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

In about 100 of the 6,216 published rows, an error step lies beyond the last step or a step is empty. PRMBench's
script counts these rows. An error step beyond the last is therefore ignored, as there, and an empty step is left
out. Such a trace keeps the row's `error_steps` in its metadata, and is not trained on, since its labels are in
doubt.

`idx` repeats across classes, and also within `multi_solutions`, where one problem has several solutions. The id is
therefore `class/idx`, followed by a hash of the content in the case of `multi_solutions`.
"""

from stepsight.core.errors import UserError
from stepsight.core.text.signs import is_blank
from stepsight.core.trace import Label, Step, Trace, check_text
from stepsight.storage.importers.rows.fields import Id, Items, RowFields, Text, content_id, listed, rest, whole
from stepsight.storage.importers.rows.kind import Row

_MOST = 1_000_000
_SIMPLICITY = ("redundency", "circular")
_CLASSES = (
    *_SIMPLICITY,
    "counterfactual",
    "step_contradiction",
    "domain_inconsistency",
    "confidence",
    "missing_condition",
    "deception",
    "multi_solutions",
)


class _PrmBench(RowFields):
    modified_process: Items
    classification: Text
    error_steps: Items
    idx: Id
    modified_question: Text

    def trace(self, row: Row) -> Trace:
        kind, written = self.classification, self.modified_process
        if kind not in _CLASSES:
            raise UserError(f"the field 'classification' is {kind!r}.", f"Expected {', '.join(_CLASSES)}.")
        steps = {
            number: check_text(step, f"step {number} of 'modified_process'")
            for number, step in enumerate(written, start=1)
            if not (isinstance(step, str) and is_blank(step))
        }
        if not steps:
            raise UserError("the field 'modified_process' has no step.")
        errors = {whole(step, 1, _MOST, "an error step", "a step from 1") for step in self.error_steps}
        label = Label.NEU if kind in _SIMPLICITY else Label.NEG
        read_whole = len(steps) == len(written) and errors <= steps.keys()
        id = f"{kind}/{self.idx}"
        return Trace(
            f"{id}/{content_id(row)}" if kind == "multi_solutions" else id,
            self.modified_question,
            tuple(
                Step((step,), label) if number in errors else Step((step,), valid=True)
                for number, step in steps.items()
            ),
            rest(row, "modified_question", "modified_process", *(["error_steps"] if read_whole else [])),
        )


def _check_labels(row: Row) -> None:
    steps = listed(row, "modified_process")
    for number, step in enumerate(steps, start=1):
        check_text(step, f"step {number} of 'modified_process'")
    for error in listed(row, "error_steps"):
        whole(error, 1, len(steps), "an error step")


KIND = _PrmBench.kind(
    "prmbench", "PRMBench with the error steps of each modified solution", check_labels=_check_labels
)
