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
from stepsight.core.trace import Step, Trace, check_text
from stepsight.storage.importers.rows.fields import (
    RATINGS,
    content_id,
    describe,
    field,
    labelled_step,
    listed,
    located,
    rest,
    text,
    whole,
)
from stepsight.storage.importers.rows.kind import FileKind, PublicFile, Row

PAPER = {"training": (96_280, 663_101), "test": (2_726, 18_559)}
"""Traces and labelled steps of phase 2 in the paper's training and test sets."""

_NOTHING: tuple[list[Any] | None, ...] = ([], None)
_GIVEN_UP = tuple({"completions": none, "human_completion": None, "chosen_completion": None} for none in _NOTHING)


def parse(row: Row, where: str) -> Trace:
    """Parse a row into a trace. Raises `UserError` if fields are missing, mistyped or contradictory."""
    with located(where):
        question, label = _object(field(row, "question"), "question"), _object(field(row, "label"), "label")
        return Trace(
            id=content_id(row),
            problem=text(question, "problem"),
            steps=_steps(listed(label, "steps")),
            meta=rest(row, "question", "label")
            | rest(question, "problem")
            | rest(label, "steps")
            | _phase(question),
        )


def beside_the_paper(traces: int, labelled: int) -> str:
    """Return a sentence that compares the number of traces and of labelled steps with those in the paper. The paper
    (appendix "Data and Reproducibility") does not say which records of the files it counts."""
    counts = "; ".join(f"{of}: {n:,} and {steps:,}" for of, (n, steps) in PAPER.items())
    return f"{traces:,} traces with {labelled:,} labelled steps; the paper has {counts}"


def _phase(question: Row) -> dict[str, int]:
    return {"phase": 2 if question.get("pre_generated_steps") else 1}


def _steps(items: list[Any]) -> tuple[Step, ...]:
    # A labeler who gave up left a step without any text, which can only be the last one.
    if items and items[-1] in _GIVEN_UP:
        items = items[:-1]
    return tuple(_step(item, number) for number, item in enumerate(items, start=1))


def _step(item: object, number: int) -> Step:
    what = f"step {number}"
    picked = _picked(_object(item, what), what)
    return labelled_step((check_text(field(picked, "text"), what),), field(picked, "rating"), number, RATINGS)


def _picked(step: Row, what: str) -> Row:
    """Return the completion of a step that becomes a step of the trace."""
    completions = [] if field(step, "completions") is None else listed(step, "completions")
    chosen, human = field(step, "chosen_completion"), None
    if chosen is None:
        human = field(step, "human_completion")
    if human is not None:
        return {"rating": None} | _object(human, f"the human completion of {what}")
    if not completions:
        raise UserError(f"{what} has no completion.", "Give it one, or a human completion.")
    last = len(completions) - 1
    index = 0 if chosen is None else whole(chosen, 0, last, f"the chosen completion of {what}", f"0 to {last}")
    return _object(completions[index], f"the completion of {what}")


def _object(value: object, what: str) -> Row:
    if not isinstance(value, dict):
        raise UserError(f"{what} is {describe(value)}, expected an object.")
    return value


_PUBLIC = (
    "https://media.githubusercontent.com/media/openai/prm800k/00811d6de065642a6967b9017d4cee59550c0ef4/prm800k/data"
)
_SHA256 = {
    "phase1_train.jsonl": "e9da6a73f827ffb9a8c0dc644c541d34ed76b3d4d1e4896ff5f7b37ddf5ae34d",
    "phase1_test.jsonl": "f4b3bc5b095e45c816453dc4d748b755c680d61d55f9895d929a335b487c727d",
    "phase2_train.jsonl": "1110237feeb51d1bc200cb37b8f965cfdc1036eac7d506094049366fe7dc1089",
    "phase2_test.jsonl": "6b172efa884ac8341a946dd82e06947c135b7254109fb3f7aa907c715d98aaad",
}

KIND = FileKind(
    name="prm800k",
    title="PRM800K with ratings of the labelled steps",
    fields=frozenset({"question", "label"}),
    # Of other tables they are a text and a number.
    holds=lambda row: isinstance(row["question"], dict) and isinstance(row["label"], dict),
    parse=parse,
    dataset="prm800k",
    files=tuple(PublicFile(name, f"{_PUBLIC}/{name}", sha256) for name, sha256 in _SHA256.items()),
)
