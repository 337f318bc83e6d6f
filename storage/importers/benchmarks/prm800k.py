"""PRM800K: solutions to MATH problems that were labelled step by step while they were written (OpenAI).

    {"labeler": "cc88bf76-…", "timestamp": "2022-11-22T…", "generation": 6, "is_quality_control_question": false,
     "is_initial_screening_question": false,
     "question": {"problem": "A Senate committee …", "ground_truth_answer": "28800",
                  "pre_generated_steps": ["I notice …", "So 60 …"], "pre_generated_answer": "7200"},
     "label": {"steps": [
        {"completions": [{"text": "I notice …", "rating": 1, "flagged": null}],
         "human_completion": null, "chosen_completion": 0},
        {"completions": [{"text": "So 60 …", "rating": -1, "flagged": null}, {"text": "Other …", "rating": 1}],
         "human_completion": null, "chosen_completion": null}],
      "total_time": 164458, "finish_reason": "found_error"}}

In phase 1 the labeler chose among several completions of each step, or wrote one if none was good enough. In phase
2 a whole solution was generated beforehand (`pre_generated_steps`) and labelled up to its first error. A step of
the trace is the completion that the labeler continued with: the chosen one, or else the human one. The last step
may have neither; the first completion is then used, which in phase 2 is the pre-generated step in which the error
was found. Ratings of -1, 0 and 1 become neg, neu and pos. A step is unlabelled if its rating is null or if a human
wrote it, because such steps were not rated. `completions` may be null if there are none.

The trace ends where the labelling ended. The rest of a phase 2 solution stays in the metadata as
`pre_generated_steps`, next to `finish_reason` and `phase`. `phase` is 1 if nothing was generated beforehand. The
other completions are left out. The file has no ids, so each trace gets a hash of its row as id. It stays the same
when rows are added or moved, and records by different labelers get different ids. Identical rows become one trace.
"""

from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.trace import Trace, check_text
from stepsight.storage.importers.rows.fields import (
    RATINGS,
    check_object,
    content_id,
    field,
    labelled_steps,
    listed,
    rest,
    text,
    whole,
)
from stepsight.storage.importers.rows.kind import FileKind, Row

PAPER = {"training": (96_280, 663_101), "test": (2_726, 18_559)}
"""Traces and labelled steps of phase 2 in the paper's training and test sets."""

_NOTHING: tuple[list[Any] | None, ...] = ([], None)
_GIVEN_UP = tuple({"completions": none, "human_completion": None, "chosen_completion": None} for none in _NOTHING)


def _read(row: Row) -> Trace:
    question = check_object(field(row, "question"), "question")
    label = check_object(field(row, "label"), "label")
    # A labeler who gave up left a step without any text; this can only be the last step.
    items = listed(label, "steps")
    if items and items[-1] in _GIVEN_UP:
        items = items[:-1]
    texts, ratings = [], []
    for number, item in enumerate(items, start=1):
        what = f"step {number}"
        picked = _pick_completion(check_object(item, what), what)
        texts.append(check_text(field(picked, "text"), what))
        ratings.append(field(picked, "rating"))
    return Trace(
        id=content_id(row),
        problem=text(question, "problem"),
        steps=labelled_steps(texts, ratings, RATINGS),
        meta=rest(row, "question", "label")
        | rest(question, "problem")
        | rest(label, "steps")
        | {"phase": 2 if question.get("pre_generated_steps") else 1},
    )


def write(trace: Trace) -> Row:
    """Return a record with the labels of a trace, which `_read` reads back.

    As in PRM800K, the labels end at the first error if no step after it has one, and the whole solution is in
    `pre_generated_steps`; PRM800K has no labels after an error, but if there are any, they are written too.
    `finish_reason` is `found_error` if a step is neg, `solution` if every step is labelled and none is neg, and
    `give_up` otherwise.
    """
    texts, labels, error = [step.text for step in trace.steps], trace.labels, trace.first_error
    last = len(texts) if error is None or any(label is not None for label in labels[error + 1 :]) else error + 1
    reason = "give_up" if None in labels else "solution"
    return {
        "labeler": None,
        "timestamp": None,
        "generation": None,
        "is_quality_control_question": False,
        "is_initial_screening_question": False,
        "question": {
            "problem": trace.problem,
            "ground_truth_answer": trace.meta.get("ground_truth_answer"),
            "pre_generated_answer": trace.meta.get("pre_generated_answer"),
            "pre_generated_steps": texts,
        },
        "label": {
            "steps": [
                {
                    "completions": [
                        {"text": text, "rating": None if label is None else label - 1, "flagged": None}
                    ],
                    "human_completion": None,
                    # The solution does not continue from an error that was found.
                    "chosen_completion": None if place == error else 0,
                }
                for place, (text, label) in enumerate(zip(texts[:last], labels, strict=False))
            ],
            "total_time": None,
            "finish_reason": reason if error is None else "found_error",
        },
    }


def beside_the_paper(traces: int, labelled: int) -> str:
    """Return a sentence that compares the number of traces and of labelled steps with those in the paper. The paper
    (appendix "Data and Reproducibility") does not say which records of the files it counts."""
    counts = "; ".join(f"{name}: {n:,} and {steps:,}" for name, (n, steps) in PAPER.items())
    return f"{traces:,} traces with {labelled:,} labelled steps; the paper has {counts}"


def _pick_completion(step: Row, what: str) -> Row:
    completions = [] if field(step, "completions") is None else listed(step, "completions")
    chosen, human = field(step, "chosen_completion"), None
    if chosen is None:
        human = field(step, "human_completion")
    if human is not None:
        return {"rating": None} | check_object(human, f"the human completion of {what}")
    if not completions:
        raise UserError(f"{what} has no completion.", "Give it one, or a human completion.")
    last = len(completions) - 1
    index = 0 if chosen is None else whole(chosen, 0, last, f"the chosen completion of {what}", f"0 to {last}")
    return check_object(completions[index], f"the completion of {what}")


KIND = FileKind(
    name="prm800k",
    title="PRM800K with ratings of the labelled steps",
    read=_read,
    fields=frozenset({"question", "label"}),
    # In other tables, these fields hold a text and a number.
    holds=lambda row: isinstance(row["question"], dict) and isinstance(row["label"], dict),
    dataset="prm800k",
)
