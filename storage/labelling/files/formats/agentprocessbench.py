"""The format of AgentProcessBench, which `storage.importers.benchmarks.agentprocessbench` can read.

    {"total_index": 0, "query_index": 0, "sample_index": 0, "question": "Which city …?", "data_source": "…",
     "messages": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…", "tool_calls": […]}, …],
     "step_labels": {"2": 1, "4": null, "6": -1}, "final_label": 1, "record_id": "searchR1_hotpotqa:0:0"}

The keys of `step_labels` are the indices of the assistant's messages, and null stands for a turn without a label.
`final_label` is 1 or -1 if people say that the agent succeeded or failed, and otherwise null; the benchmark's own
label is `gold_final_label`. All other fields are those of the trace. In a row of one person's labels, `annotator`
names the person. Traces that are not an agent's, and those without a label, are left out.
"""

from stepsight.storage.exports.agent_messages import labelled_messages
from stepsight.storage.labelling.annotation import FAILED, SUCCEEDED
from stepsight.storage.labelling.files.formats.label_format import InexpressibleError, LabelFormat, Row, lines
from stepsight.storage.labelling.results.consensus import LabelledTrace

NAME = "agentprocessbench"
_FINAL = "final_label"
_OUTCOMES = {SUCCEEDED: 1, FAILED: -1}


def format_row(labelled: LabelledTrace) -> Row:
    """Convert a labelled trace to a row. Raises `InexpressibleError` if it has no label or is not an agent's."""
    trace = labelled.trace
    if trace.context is None:
        raise InexpressibleError("traces that are not an agent's")
    if set(labelled.labels) == {None}:
        raise InexpressibleError("traces without a label")
    messages, step_labels = labelled_messages(trace, labelled.labels)
    kept = dict(trace.meta)
    gold = {} if kept.get(_FINAL) is None else {f"gold_{_FINAL}": kept[_FINAL]}
    return kept | {
        "question": trace.problem,
        "messages": messages,
        "step_labels": step_labels,
        _FINAL: _OUTCOMES.get(labelled.outcome or ""),
        **gold,
        "record_id": trace.id,
        **({} if labelled.annotator is None else {"annotator": labelled.annotator}),
    }


FORMAT = LabelFormat(NAME, "AgentProcessBench: an agent's messages with a label of each turn", lines(format_row))
