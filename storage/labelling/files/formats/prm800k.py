"""PRM800K's format, which `storage.importers.benchmarks.prm800k` can read.

    {"labeler": "ada", "timestamp": "2026-03-01T09:30:00+00:00", "generation": null,
     "is_quality_control_question": false, "is_initial_screening_question": false,
     "question": {"problem": "…", "ground_truth_answer": null, "pre_generated_answer": null,
                  "pre_generated_steps": ["I notice …", "So 60 …", "Thus …"]},
     "label": {"steps": [
        {"completions": [{"text": "I notice …", "rating": 1, "flagged": null}],
         "human_completion": null, "chosen_completion": 0},
        {"completions": [{"text": "So 60 …", "rating": -1, "flagged": null}],
         "human_completion": null, "chosen_completion": null}],
      "total_time": 164458, "finish_reason": "found_error"}}

Ratings of -1, 0 and 1 stand for neg, neu and pos, and null for unlabelled. As in PRM800K, the labels end at the
first error if nothing after it was labelled, and the whole solution is in `pre_generated_steps`. PRM800K has no
labels after an error, but if annotators gave any, they are written too.

`finish_reason` is `bad_problem` if more than half of the annotators flagged the problem. Otherwise it is
`found_error` if a step is neg, `solution` if every step was labelled and none is neg, and `give_up` if some step
was not labelled. If there are several annotators, `labeler` is "consensus" and the timestamp is the latest one.
"""

from stepsight.storage.labelling.files.formats.label_format import Row
from stepsight.storage.labelling.results.consensus import LabelledTrace

CONSENSUS = "consensus"
_RATINGS = {"neg": -1, "neu": 0, "pos": 1, None: None}
_ANSWERS = ("ground_truth_answer", "pre_generated_answer")


def rows(versions: list[LabelledTrace], campaign: str) -> list[Row]:
    """Return a PRM800K record for each version of a trace."""
    return [format_row(labelled) for labelled in versions]


def format_row(labelled: LabelledTrace) -> Row:
    """Convert a labelled trace to a PRM800K record."""
    trace, error = labelled.trace, labelled.first_error
    texts = [step.text for step in trace.steps]
    ends = error is not None and all(label is None for label in labelled.labels[error + 1 :])
    last = len(texts) if error is None or not ends else error + 1
    moments = [*(one.submitted for one in labelled.annotations), *(one.moment for one in labelled.decisions)]
    seconds = sum(annotation.seconds for annotation in labelled.annotations)
    return {
        "labeler": labelled.annotator or CONSENSUS,
        "timestamp": max(moments).isoformat(),
        "generation": None,
        "is_quality_control_question": False,
        "is_initial_screening_question": False,
        "question": {"problem": trace.problem}
        | {key: trace.meta.get(key) for key in _ANSWERS}
        | {"pre_generated_steps": texts},
        "label": {
            "steps": [
                _step(text, label, place != error)
                for place, (text, label) in enumerate(zip(texts[:last], labelled.labels, strict=False))
            ],
            "total_time": round(seconds * 1000),
            "finish_reason": _finish_reason(labelled),
        },
    }


def _step(text: str, label: str | None, chosen: bool) -> Row:
    return {
        "completions": [{"text": text, "rating": _RATINGS[label], "flagged": None}],
        "human_completion": None,
        # The solution does not continue from an error that was found.
        "chosen_completion": 0 if chosen else None,
    }


def _finish_reason(labelled: LabelledTrace) -> str:
    if 2 * len(labelled.flags) > len(labelled.annotations):
        return "bad_problem"
    if labelled.first_error is not None:
        return "found_error"
    return "give_up" if None in labelled.labels else "solution"
