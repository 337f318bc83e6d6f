"""AgentProcessBench: its trajectories, and the labels of models."""

from typing import Any

from stepsight.core.label import Label
from stepsight.storage.importers import guess_kind
from stepsight.storage.importers.benchmarks.agentprocessbench import KIND, read_verdicts
from tests.cases import each
from tests.messages import refused

ROW: dict[str, Any] = {
    "total_index": 3, "query_index": 0, "sample_index": 3, "question": "When?", "data_source": "searchR1_hotpotqa",
    "messages": [
        {"role": "system", "content": "Help."}, {"role": "user", "content": "Answer: When?"},
        {"role": "assistant", "content": "", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}]},
        {"role": "tool", "name": "search", "tool_call_id": "c1", "content": "1838"},
        {"role": "assistant", "content": "In 1838."}, {"role": "assistant", "content": "Done."},
    ],
    "step_labels": {"4": -1, "2": 1, "5": 0}, "final_label": -1,
}  # fmt: skip
JUDGED: dict[str, Any] = {
    "record_id": "searchR1_hotpotqa:0:3", "annotator": "gpt", "step_labels": {"2": 1, "4": None, "5": -1},
    "explanations": {"steps": {"2": "A good query.", "5": "Too soon."}, "final": "…"},
}  # fmt: skip


def test_labels_belong_to_the_assistant_s_messages() -> None:
    assert guess_kind(ROW) == "agentprocessbench"
    trace = KIND.parse(ROW, "f line 1")
    assert (trace.id, trace.problem) == ("searchR1_hotpotqa:0:3", "When?")
    assert trace.substeps == ("search({})", "In 1838.", "Done.")
    assert trace.labels == (Label.POS, Label.NEG, Label.NEU)
    assert trace.meta["final_label"] == -1


def test_a_model_s_labels_are_in_the_order_of_the_turns_with_its_reasons() -> None:
    labels, reasons = read_verdicts(JUDGED)
    assert labels == ["pos", None, "neg"]
    assert reasons == "**Step 1.** A good query.\n\n**Step 3.** Too soon."


@each(
    "change",
    [
        {"step_labels": {"3": 1}},
        {"step_labels": {"2": 2}},
        {"step_labels": {"two": 1}},
        {"step_labels": [1, 1, 1]},
        {"question": None},
    ],
)
def test_bad_rows_are_refused(change: dict[str, object]) -> None:
    with refused():
        KIND.parse(ROW | change, "f line 1")
