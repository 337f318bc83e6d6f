"""Perturbed PRM800K solutions: correct solutions into which one error each was inserted (GAIR-NLP/ReasonEval).

The file is JSON Lines despite its extension `.json`. `tags` holds 0-based indices into `hypothesis_steps`:

    {"id": 0, "rid": 0, "question": "Three pencils …", "ground_truth_answer": "29",
     "reference_steps": ["Let's call …", "We have …"], "hypothesis_steps": ["Let's call …", "We have … 1.15"],
     "error_type": "random number", "tags": 1}

The meaning of `tags` depends on the error type:

- `random number`, `random operation`, `remove step`: the wrong step, or the first step after the removed
  one.
- `swap steps`: the two swapped steps. The earlier one is the first error.
- `repeat step`: the step that is followed by its copy. The copy becomes neu, and all other steps become
  valid without a label.
- `swap solutions`: the number of the problem that the solution was taken from. This names no step, so all
  steps are unlabelled, and `tags` stays in the metadata.

In the first two cases, the steps before the first error become valid without a label, and those after it are
unlabelled.
"""

from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.trace import Label, Step, Trace
from stepsight.storage.importers.rows.fields import Id, RowFields, Text, Texts, describe, until_error, whole
from stepsight.storage.importers.rows.kind import Row

_ONE = ("random number", "random operation", "remove step")


class _Perturbation(RowFields):
    kept = ("error_type", "tags")

    id: Id
    question: Text
    hypothesis_steps: Texts
    error_type: Text
    tags: Any

    def trace(self, row: Row) -> Trace:
        return Trace(self.id, self.question, self._steps(), self.meta(row))

    def _steps(self) -> tuple[Step, ...]:
        steps, error, tags = self.hypothesis_steps, self.error_type, self.tags
        last = len(steps) - 1
        if error in _ONE:
            return until_error(steps, whole(tags, 0, last, "the field 'tags'"))
        if error == "swap steps":
            if not isinstance(tags, list) or len(tags) != 2:
                raise UserError(f"the field 'tags' is {describe(tags)}, expected the two steps that were swapped.")
            return until_error(steps, min(whole(tag, 0, last, "a tag") for tag in tags))
        if error == "repeat step":
            copy = whole(tags, 0, last - 1, "the field 'tags'") + 1
            valid = list(until_error(steps, None))
            return (*valid[:copy], Step((steps[copy],), Label.NEU), *valid[copy + 1 :])
        if error == "swap solutions":
            return tuple(Step((step,)) for step in steps)
        expected = ", ".join([*_ONE, "swap steps", "repeat step", "swap solutions"])
        raise UserError(f"the field 'error_type' is {error!r}.", f"Expected {expected}.")


KIND = _Perturbation.kind("perturbation", "PRM800K solutions with one planted error each", but={"id"})
