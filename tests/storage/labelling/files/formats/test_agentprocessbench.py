"""Labels of agents' turns, out in the benchmark's shape and in again."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from stepsight.core.errors import UserError
from stepsight.storage.database.store import Store
from stepsight.storage.importers import KINDS, read_traces
from stepsight.storage.labelling.files.export_labels import export_labels
from stepsight.storage.labelling.files.formats.agentprocessbench import format_row
from stepsight.storage.labelling.files.formats.label_format import InexpressibleError
from stepsight.storage.labelling.files.import_labels import import_labels
from stepsight.storage.people.users import local_user
from tests.cases import each
from tests.messages import refused
from tests.storage.labelling.files.formats.made import labelled
from tests.storage.labelling.samples import TWO, campaign, do, label_all, people, take, together

CALL = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q": "un'}}
ROW: dict[str, Any] = {
    "total_index": 0, "query_index": 0, "sample_index": 3, "question": "When was it?", "data_source": "x",
    "messages": [
        {"role": "system", "content": "Use tools."}, {"role": "user", "content": "Question: When was it?"},
        {"role": "assistant", "content": " So:\n", "reasoning_content": "Hm.", "tool_calls": [CALL]},
        {"role": "tool", "name": "search", "content": "1838", "tool_call_id": "c1"},
        {"role": "assistant", "content": "\n"},
        {"role": "assistant", "content": "In 1838. "}, {"role": "user", "content": "Thanks."},
    ],
    "tools": [{"type": "function"}], "step_labels": {"2": 1, "4": 0, "5": None}, "final_label": -1,
}  # fmt: skip


def test_trajectories_labelled_by_people_come_out_as_they_went_in(store: Store, tmp_path: Path) -> None:
    ((_, trace),) = read_traces(KINDS["agentprocessbench"], [json.dumps(ROW).encode()], "f")
    made = campaign(store, [trace, TWO], after_error=True, overlap=3)
    for user, outcome in zip(people(store, 3), ("succeeded", "succeeded", "failed"), strict=True):
        task = take(store, made, user)
        do(store, task.slot_id, user, "outcome", None, outcome)
        label_all(store, task, user, ["neg", "pos", "unsure"])
    with refused(UserError):
        do(store, take(store, made, user).slot_id, user, "outcome", None, "failed")
    (said,) = together(store, made.id)
    assert (said.outcome, [one.outcome for one in said.annotations][-1]) == ("succeeded", "failed")
    out = tmp_path / "out.jsonl"
    export_labels(store, made.name, out, "agentprocessbench")
    assert json.loads(out.read_text()) == ROW | {
        "step_labels": {"2": -1, "4": 1, "5": None}, "final_label": 1, "gold_final_label": -1,
        "record_id": "x:0:3",
    }  # fmt: skip
    # The format of our own has each person's outcome, and gives it back.
    export_labels(store, made.name, tmp_path / "own.jsonl", "jsonl")
    import_labels(store, tmp_path / "own.jsonl", local_user(store), campaign="again")
    export_labels(store, "again", tmp_path / "again.jsonl", "agentprocessbench", exposed=True)
    assert (tmp_path / "again.jsonl").read_text() == out.read_text()


@each("labels", [("pos", None, None), (None, None, None)])
def test_other_traces_are_left_out(labels: tuple[str | None, ...]) -> None:
    one = labelled(*labels)
    if labels[0] is None:
        ((_, trace),) = read_traces(KINDS["agentprocessbench"], [json.dumps(ROW).encode()], "f")
        one = replace(one, trace=replace(one.trace, context=trace.context))
    with refused(InexpressibleError):
        format_row(one)
