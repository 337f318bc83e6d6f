"""AgentProcessBench: trajectories of agents that call tools, with a label of every turn (RUC and others).

    {"total_index": 0, "query_index": 0, "sample_index": 0, "question": "Which city …?",
     "data_source": "searchR1_hotpotqa", "ground_truth": {"target": ["Marion"]}, "answer_text": "…",
     "messages": [{"role": "system", "content": "…"}, {"role": "user", "content": "…"},
                  {"role": "assistant", "content": "", "tool_calls": [{"id": "…", "function": …}]},
                  {"role": "tool", "name": "search", "content": "…", "tool_call_id": "…"}, …],
     "tools": […], "step_labels": {"2": 1, "4": 1, "6": -1}, "final_label": -1}

The keys of `step_labels` are the indices of the assistant's messages, from 0. 1, 0 and -1 become pos, neu and neg;
a step after an error is neg as long as it builds on the error. The label of the outcome stays in the metadata as
`final_label`, with all other fields. The id is the same as in the models' files: `searchR1_hotpotqa:0:0`.

In a file of a model's labels a row has `record_id`, `step_labels` and reasons, and no messages:

    {"record_id": "searchR1_hotpotqa:0:3", "annotator": "gpt-5.2", "query_index": 0, "sample_index": 3,
     "step_labels": {"2": 1, "4": 0}, "final_label": 1, "explanations": {"steps": {"2": "…"}, "final": "…"}}
"""

import re
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.label import LABEL_NAMES
from stepsight.core.trace import Trace
from stepsight.storage.importers.agents.turns import ASSISTANT, Turns
from stepsight.storage.importers.rows.fields import (
    describe,
    field,
    identifier,
    is_missing,
    listed,
    located,
    rest,
    text,
    whole,
)
from stepsight.storage.importers.rows.kind import FileKind, Row

LABELS = "step_labels"
_MOST = 10**6
_REASON = re.compile(r"(?:\A|\n\n)\*\*Step ([1-9][0-9]{0,5})\.\*\* ")


def parse(row: Row, where: str) -> Trace:
    """Parse a row into a trace. Raises `UserError` if a field is missing or mistyped, or if a label belongs to a
    message that is not the assistant's."""
    with located(where):
        messages, labels = listed(row, "messages"), read_labels(row)
        turns = Turns()
        for number, message in enumerate(messages, start=1):
            turns.read(message, number)
        indices = [i for i, one in enumerate(messages) if one["role"] in ASSISTANT]
        for index in labels:
            if index not in indices:
                raise UserError(f"there is a label of message {index}, which is no turn of the assistant.")
        id = ":".join([text(row, "data_source"), identifier(row, "query_index"), identifier(row, "sample_index")])
        return turns.trace(
            id,
            rest(row, "messages", "question", LABELS),
            text(row, "question"),
            [labels.get(index) for index in indices],
        )


def read_verdicts(row: Row) -> tuple[list[str | None], str]:
    """Return a model's label of each turn, in the order of the messages, and its reasons as Markdown. Raises
    `UserError` if the row has no labels, or others than -1, 0, 1 and null."""
    keys, labels = row[LABELS], read_labels(row)
    if not keys:
        raise UserError(f"the field {LABELS!r} is empty.", "Leave the row out: the model labelled nothing.")
    explained = row.get("explanations")
    reasons = explained.get("steps") if isinstance(explained, dict) else None
    said = reasons if isinstance(reasons, dict) else {}
    in_order = sorted(keys, key=int)
    paragraphs = [f"**Step {number}.** {said[key]}" for number, key in enumerate(in_order, 1) if said.get(key)]
    return [labels.get(int(key)) for key in in_order], "\n\n".join(paragraphs)


def step_reasons(rationale: str, count: int) -> dict[int, str]:
    """Return the reasons that `read_verdicts` joined, by the number of their step, counted from 1. The result is
    empty if a rationale has another form, or names a step behind `count`."""
    before, *parts = _REASON.split(rationale)
    reasons = {int(number): text for number, text in zip(parts[::2], parts[1::2], strict=True)}
    return {} if before or max(reasons, default=0) > count else reasons


def read_labels(row: Row) -> dict[int, str]:
    """Return the labels of a row by the index of their message. Raises `UserError` if they are not an object of
    labels."""
    values = field(row, LABELS)
    if not isinstance(values, dict):
        raise UserError(f"the field {LABELS!r} is {describe(values)}, expected an object.")
    indices = {key: whole(key, 0, _MOST, f"a key of {LABELS!r}", "the index of a message") for key in values}
    return {indices[key]: _name(value, key) for key, value in values.items() if not is_missing(value)}


def _name(value: Any, key: str) -> str:
    return LABEL_NAMES[whole(value, -1, 1, f"the label of message {key}", "-1, 0 or 1") + 1]


KIND = FileKind(
    name="agentprocessbench",
    title="AgentProcessBench with a label of every turn",
    fields=frozenset({"query_index", "sample_index", "question", "messages", LABELS}),
    parse=parse,
    dataset="agentprocessbench",
    score_fields=frozenset({LABELS}),
)
