"""ProcessBench: solutions by models, with the first error marked (Qwen).

The file is a JSON array or JSON Lines. `label` is the 0-based first error, or -1 if there is none:

    {"id": "gsm8k-0", "generator": "Qwen2-7B-Instruct", "problem": "Sue lives in …",
     "steps": ["To find out …", "On Saturday, …"], "final_answer_correct": false, "label": 1}

The steps before the first error become valid without a label, and those after it are unlabelled. If `label` is
null, all steps are unlabelled; if it is the word N/A, there is no error.
"""

from typing import Any

from stepsight.core.trace import Trace
from stepsight.storage.importers.rows.fields import Id, RowFields, Text, Texts, until_first_error
from stepsight.storage.importers.rows.kind import Row


class _ProcessBench(RowFields):
    kept = ("final_answer_correct",)

    id: Id
    problem: Text
    steps: Texts
    label: Any
    final_answer_correct: Any = None

    def trace(self, row: Row) -> Trace:
        steps = until_first_error(self.steps, self.label, 0, "the field 'label'")
        return Trace(self.id, self.problem, steps, self.meta(row))


KIND = _ProcessBench.kind("processbench", "ProcessBench with the first wrong step of each solution")
