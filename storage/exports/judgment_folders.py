"""Writing a dataset's traces and judgments as a folder for `datasets.load_dataset` (see `dataset_folders`).

This module is separate because it imports pandas.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from stepsight.core.escaping import escape_markdown
from stepsight.storage.database.store import Store
from stepsight.storage.exports.dataset_folders import ParquetTable, write_dataset
from stepsight.storage.exports.frames import judgment_frames
from stepsight.storage.exports.left_out_frames import left_out_frames
from stepsight.storage.exports.table_files import Row, frame_parts, table_parts
from stepsight.storage.judgments.evaluators import evaluators_of
from stepsight.storage.traces.queries import find_dataset, trace_batches

TRACES: dict[str, type] = {"id": str, "problem": str, "steps": list, "labels": list, "shares": list[float]}
_LEFT_OUT_COLUMNS = {
    "dataset, trace": "what is judged",
    "evaluator, fingerprint": "who judged, with the whole solution but one sub-step in view",
    "gap": "what stands in place of the missing sub-step: deleted (nothing) or placeholder (a sentence without"
    " content)",
    "missing_step, missing_substep": "the missing sub-step, counted from 1",
    "step, substep": "the sub-step that the scores are of",
    "neg, neu, pos, validity": "the scores",
    "change": "validity minus that with nothing missing",
}
_TRACE_COLUMNS = {
    "id": "the trace's id, `trace` in the judgments",
    "problem": "the problem",
    "steps": "the steps in order, the sub-steps of one joined by line breaks",
    "labels": "the gold of each step: neg (wrong), neu (valid but redundant), pos (correct and useful), valid where"
    " the benchmark says that alone, or null",
    "shares": "the soft label of each step, from 0 to 1, or null",
}
_JUDGMENT_COLUMNS = {
    "dataset, trace, step, substep": "what is judged; steps and sub-steps are counted from 1",
    "gold, share": "the gold and the soft label of the step, as in the traces",
    "evaluator, fingerprint, mode": "who judged; online with only the steps before in view, offline with all",
    "neg, neu, pos": "the probabilities",
    "validity, redundancy": "neu + pos, and neu",
    "spread": "of an ensemble, how far its members disagree",
    "valid, redundant": "the verdicts by the thresholds in force",
    "change": "the retroactive change in the hindsight judgment: offline minus online validity",
    "solution_score, rationale": "what the evaluator says of the whole solution by itself, and its words",
}


def write_judgments(
    store: Store,
    path: Path,
    dataset: str,
    trace_ids: Sequence[int],
    evaluators: Collection[int] | None = None,
) -> dict[str, int]:
    """Write the given traces of a dataset and their judgments to a folder, like `write_dataset`.

    `trace_ids` and `evaluators` are database ids. By default all evaluators that have judged the dataset are
    included.
    """
    dataset_id = find_dataset(store, dataset).id
    judged = evaluators_of(store, dataset_id)
    chosen = [one for one in judged if evaluators is None or one.id in evaluators]
    of = store, dataset, trace_ids, [one.id for one in chosen]
    frames = judgment_frames(*of)
    names = [f"- {escape_markdown(one.name)}, fingerprint `{one.fingerprint}`" for one in chosen]
    about = "\n".join(
        [
            f"What evaluators say of each step of the traces of {escape_markdown(dataset)}:",
            "",
            *(names or ["- nobody yet"]),
        ]
    )
    tables = {
        "judgments": ParquetTable(frame_parts(frames, "parquet", plain=True), _JUDGMENT_COLUMNS),
        **_if_any("left_out", _LEFT_OUT_COLUMNS, partial(left_out_frames, *of)),
        "traces": ParquetTable(table_parts(TRACES, _traces(store, trace_ids), "parquet"), _TRACE_COLUMNS),
    }
    return write_dataset(path, f"Judgments of {dataset}", about, tables)


def _if_any(
    name: str, columns: Mapping[str, str], read: Callable[[], Iterator[pd.DataFrame]]
) -> dict[str, ParquetTable]:
    """Return a table of the frames that `read` yields, by its name. Empty if there are no rows."""
    if not any(len(frame) for frame in read()):
        return {}
    return {name: ParquetTable(frame_parts(read(), "parquet", plain=True), columns)}


def _traces(store: Store, trace_ids: Sequence[int]) -> Iterator[Row]:
    for batch in trace_batches(store, trace_ids):
        for trace in batch:
            yield {
                "id": trace.id,
                "problem": trace.problem,
                "steps": [step.text for step in trace.steps],
                "labels": [step.gold for step in trace.steps],
                "shares": [step.share for step in trace.steps],
            }
