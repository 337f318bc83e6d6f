"""Evaluators' verdicts on the turns of agents, in the shape of the files of models' labels that AgentProcessBench
publishes.

    {"record_id": "searchR1_hotpotqa:0:3", "annotator": "mini-bidir", "data_source": "searchR1_hotpotqa",
     "query_index": 0, "sample_index": 3, "step_labels": {"2": 1, "4": null, "6": -1}, "final_label": null,
     "explanations": {"steps": {}}, "comment": ""}

The keys of `step_labels` are the indices of the assistant's messages. A label is the most probable of -1, 0 and 1,
as in the benchmark's metrics, and null stands for a turn on which the evaluator says nothing. `final_label` is
null, since evaluators say nothing of the outcome. Reasons that came with such a file are `explanations` again, and
other ones are the `comment`. `stepsight import-scores` reads the file back.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.core.label import LABEL_NAMES
from stepsight.core.metrics.agent_turns import most_probable
from stepsight.core.metrics.table import SILENT
from stepsight.core.scores import Outputs
from stepsight.core.trace import Trace
from stepsight.storage.database.store import Store
from stepsight.storage.exports.agent_messages import labelled_messages
from stepsight.storage.exports.frames import MODES, read_judgment_columns
from stepsight.storage.importers.benchmarks.agentprocessbench import LABELS, step_reasons
from stepsight.storage.judgments.evaluators import StoredEvaluator
from stepsight.storage.traces.queries import trace_batches

_PLACE = ("data_source", "query_index", "sample_index")
# Traces are held with their texts.
_BATCH = 100


def check_three_classes(evaluator: StoredEvaluator) -> None:
    """Raise `UserError` if an evaluator does not tell the three labels apart."""
    if evaluator.outputs != Outputs.THREE_WAY:
        raise UserError(
            f"{evaluator.name} gives no probabilities of {', '.join(LABEL_NAMES)}.",
            "Choose an evaluator that does, or a table.",
        )


def verdict_lines(
    store: Store, trace_ids: Sequence[int], evaluator: StoredEvaluator, mode: Mode
) -> Iterator[list[str]]:
    """Yield lists of JSON lines, one line for each of the traces that is an agent's and that the evaluator has
    judged in the mode."""
    for start in range(0, len(trace_ids), _BATCH):
        ids = trace_ids[start : start + _BATCH]
        traces = {trace.id: trace for batch in trace_batches(store, ids) for trace in batch}
        lines = []
        for part in read_judgment_columns(store, ids, [evaluator], substeps=False):
            columns = part.columns
            probs = np.stack([columns[name] for name in LABEL_NAMES], axis=1)
            labels = most_probable(probs)
            of_mode = columns["mode"] == MODES.index(mode)
            for place in np.unique(columns["trace"][of_mode]).tolist():
                trace = traces.get(part.traces[place])
                if trace is None or trace.context is None:
                    continue
                rows = np.flatnonzero(of_mode & (columns["trace"] == place))
                said: list[str | None] = [None] * len(trace.steps)
                for row in rows.tolist():
                    if labels[row] != SILENT:
                        said[columns["step"][row] - 1] = LABEL_NAMES[labels[row]]
                reasons = columns["rationale"][rows[0]]
                rationale = "" if reasons == SILENT else part.rationales[reasons]
                lines.append(json.dumps(_row(trace, evaluator.name, said, rationale), ensure_ascii=False))
        yield lines


def _row(trace: Trace, name: str, labels: Sequence[str | None], rationale: str) -> dict[str, Any]:
    _, step_labels = labelled_messages(trace, labels)
    keys = list(step_labels)
    reasons = step_reasons(rationale, len(keys))
    return {
        "record_id": trace.id,
        "annotator": name,
        **{key: trace.meta[key] for key in _PLACE if key in trace.meta},
        LABELS: step_labels,
        "final_label": None,
        "explanations": {"steps": {keys[number - 1]: text for number, text in reasons.items()}},
        "comment": "" if reasons else rationale,
    }
