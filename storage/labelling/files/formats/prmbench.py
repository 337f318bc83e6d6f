"""PRMBench's format, which `storage.importers.benchmarks.prmbench` can read: 1-based error steps, all of one class.

    {"original_question": null, "modified_question": "…", "original_process": null,
     "modified_process": ["7.8 minutes is …", "In 0.8 minutes, …"], "modified_steps": [2], "error_steps": [2],
     "reason": "", "idx": "prm_train_p1_0", "question": "…", "classification": "missing_condition"}

PRMBench regards every step that is not listed as correct, so a trace with an unlabelled step is left out. Steps
labelled neg are error steps. Their class is the kind of error that annotators chose most often for them. In a tie,
the first class wins. If annotators chose none of PRMBench's classes, the trace is left out. If no step is neg,
steps labelled neu are errors of the class `redundency` (PRMBench's spelling). A trace with neither neg nor neu
belongs to the class `multi_solutions`.
"""

from collections import Counter

from stepsight.storage.labelling.error_kinds import PRMBENCH_KINDS
from stepsight.storage.labelling.files.formats.label_format import InexpressibleError, LabelFormat, Row, lines
from stepsight.storage.labelling.results.consensus import LabelledTrace

_REDUNDANT, _RIGHT = "redundency", "multi_solutions"
# The classes of valid but redundant steps, which a wrong step cannot have.
_SIMPLICITY = (_REDUNDANT, "circular")
_CLASSES = frozenset(PRMBENCH_KINDS) - {*_SIMPLICITY}


def format_row(labelled: LabelledTrace) -> Row:
    """Convert a labelled trace to a row of the file.

    Raises `InexpressibleError` if a step has no label or the errors have no class.
    """
    if None in labelled.labels:
        raise InexpressibleError("traces with unlabelled steps")
    trace, steps = labelled.trace, [step.text for step in labelled.trace.steps]
    wrong = _steps_called(labelled, "neg")
    named = _class(labelled, wrong) if wrong else ""
    errors = wrong or _steps_called(labelled, "neu")
    meta = trace.meta
    return {
        "original_question": meta.get("original_question"),
        "modified_question": trace.problem,
        "original_process": meta.get("original_process"),
        "modified_process": steps,
        "modified_steps": meta.get("modified_steps", errors),
        "error_steps": errors,
        "reason": meta.get("reason", ""),
        "idx": str(meta.get("idx", trace.id)),
        "question": meta.get("question", trace.problem),
        "classification": named or (_REDUNDANT if errors else _RIGHT),
    }


def _steps_called(labelled: LabelledTrace, name: str) -> list[int]:
    return [number for number, label in enumerate(labelled.labels, start=1) if label == name]


def _class(labelled: LabelledTrace, wrong: list[int]) -> str:
    named = Counter(
        annotation.errors[number - 1]
        for number in wrong
        for annotation in labelled.annotations
        if annotation.labels[number - 1] == "neg" and annotation.errors.get(number - 1) in _CLASSES
    )
    if not named:
        raise InexpressibleError("traces with an error whose class nobody named")
    return named.most_common(1)[0][0]


FORMAT = LabelFormat("prmbench", "PRMBench: error steps of one class", lines(format_row))
