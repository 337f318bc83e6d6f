"""ProcessBench's format, which `importers.benchmarks.processbench` reads: the 0-based first error, or -1.

    {"id": "gsm8k-0", "generator": "Qwen2-7B-Instruct", "problem": "…",
     "steps": ["To find out …", "On Saturday, …"], "final_answer_correct": null, "label": 1}

`final_answer_correct` is null if the trace's source does not say. A trace is left out if its first error is unknown
because an earlier step is unlabelled.
"""

from collections.abc import Mapping
from typing import Any

from stepsight.storage.labelling.files.formats.label_format import InexpressibleError, LabelFormat, Row, lines
from stepsight.storage.labelling.results.consensus import LabelledTrace

_MR_ANSWER = "model_output_answer_correctness"


def format_row(labelled: LabelledTrace) -> Row:
    """Convert a labelled trace to a row. Raises `InexpressibleError` if a step before the first error is
    unlabelled."""
    trace, error = labelled.trace, labelled.first_error
    if None in labelled.labels[:error]:
        raise InexpressibleError("traces whose first error is unknown")
    return {
        "id": trace.id,
        "generator": trace.meta.get("generator"),
        "problem": trace.problem,
        "steps": [step.text for step in trace.steps],
        "final_answer_correct": _answer_correct(trace.meta),
        "label": -1 if error is None else error,
    }


def _answer_correct(meta: Mapping[str, Any]) -> bool | None:
    """True if the final answer is correct according to a trace's metadata, None if the metadata do not say, and
    False otherwise."""
    correct = meta.get("final_answer_correct")
    if isinstance(correct, bool):
        return correct
    return {"correct": True, "wrong": False}.get(str(meta.get(_MR_ANSWER)))


FORMAT = LabelFormat("processbench", "ProcessBench: the first wrong step", lines(format_row))
