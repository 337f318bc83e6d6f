"""Writing a dataset's traces and judgments as a folder that `datasets.load_dataset` can read and that can be
uploaded to a hub: Parquet files, and a dataset card that lists them as configurations.

    FOLDER/README.md
    FOLDER/data/NAME.parquet
"""

import os
import secrets
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import yaml

from stepsight.core.errors import UserError
from stepsight.core.escaping import escape_markdown
from stepsight.core.files.arrow import load_pyarrow
from stepsight.storage.database.store import Store
from stepsight.storage.exports.frames import judgment_frames
from stepsight.storage.exports.left_out_frames import left_out_frames
from stepsight.storage.exports.table_files import Row, frame_parts, table_parts
from stepsight.storage.judgments.evaluators import StoredEvaluator, evaluators_of
from stepsight.storage.traces.queries import find_dataset, trace_batches

NAME = "datasets"
"""The name of the format in commands."""

_TRACES: dict[str, type] = {"id": str, "problem": str, "steps": list, "labels": list, "shares": list[float]}
_COLUMNS = {
    "left_out": {
        "dataset, trace": "what is judged",
        "evaluator, fingerprint": "who judged, with the whole solution but one sub-step in view",
        "gap": "what stands in place of the missing sub-step: deleted (nothing) or placeholder (a sentence without"
        " content)",
        "missing_step, missing_substep": "the missing sub-step, counted from 1",
        "step, substep": "the sub-step that the scores are of",
        "neg, neu, pos, validity": "the scores",
        "change": "validity minus that with nothing missing",
    },
    "traces": {
        "id": "the trace's id, `trace` in the judgments",
        "problem": "the problem",
        "steps": "the steps in order, the sub-steps of one joined by line breaks",
        "labels": "the gold of each step: neg (wrong), neu (valid but redundant), pos (correct and useful), valid"
        " where the benchmark says that alone, or null",
        "shares": "the soft label of each step, from 0 to 1, or null",
    },
    "judgments": {
        "dataset, trace, step, substep": "what is judged; steps and sub-steps are counted from 1",
        "gold, share": "the gold and the soft label of the step, as in the traces",
        "evaluator, fingerprint, mode": "who judged; online with only the steps before in view, offline with all",
        "neg, neu, pos": "the probabilities",
        "validity, redundancy": "neu + pos, and neu",
        "spread": "of an ensemble, how far its members disagree",
        "valid, redundant": "the verdicts by the thresholds in force",
        "change": "the retroactive change in the hindsight judgment: offline minus online validity",
        "solution_score, rationale": "what the evaluator says of the whole solution by itself, and its words",
    },
}
"""The columns of each table, with what they are."""
# The size categories used on hubs.
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"),
          (10_000_000, "1M<n<10M"))  # fmt: skip
_LARGEST = "n>10M"


def write_judgments(
    store: Store,
    path: Path,
    dataset: str,
    trace_ids: Sequence[int],
    evaluators: Collection[int] | None = None,
) -> dict[str, int]:
    """Write the given traces of a dataset and their judgments to a folder and return the row count of each table.

    `trace_ids` and `evaluators` are database ids. By default all evaluators that have judged the dataset are
    included. Each table becomes a configuration of its name, and the first one the default. If writing fails, no
    folder remains. Raises `UserError` if the folder exists or cannot be written, or if pyarrow is missing.
    """
    parquet = load_pyarrow().parquet
    judged = evaluators_of(store, find_dataset(store, dataset).id)
    chosen = [evaluator for evaluator in judged if evaluators is None or evaluator.id in evaluators]
    scope = store, dataset, trace_ids, [evaluator.id for evaluator in chosen]
    tables: dict[str, Iterable[bytes]] = {"judgments": frame_parts(judgment_frames(*scope), "parquet", plain=True)}
    if any(len(frame) for frame in left_out_frames(*scope)):
        tables["left_out"] = frame_parts(left_out_frames(*scope), "parquet", plain=True)
    tables["traces"] = table_parts(_TRACES, _traces(store, trace_ids), "parquet")
    if path.exists():
        raise UserError(f"{path}: already exists.", "Name another folder.")
    partial = path.with_name(f"{path.name}.{secrets.token_hex(8)}.partial")
    try:
        (partial / "data").mkdir(parents=True)
        rows = {}
        for name, parts in tables.items():
            file = partial / "data" / f"{name}.parquet"
            with open(file, "wb") as content:
                content.writelines(parts)
            rows[name] = int(parquet.read_metadata(file).num_rows)
        (partial / "README.md").write_text(_card(dataset, chosen, rows), encoding="utf-8", newline="")
        os.rename(partial, path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror}).", "Check the path.") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return rows


def _card(dataset: str, evaluators: Sequence[StoredEvaluator], rows: Mapping[str, int]) -> str:
    title = f"Judgments of {dataset}"
    configs = [
        {"config_name": name, "data_files": [{"split": "train", "path": f"data/{name}.parquet"}]}
        | ({"default": True} if name == next(iter(rows)) else {})
        for name in rows
    ]
    most = max(rows.values())
    front = {
        "pretty_name": title,
        "tags": ["stepsight", "process-reward-model"],
        "size_categories": [next((name for limit, name in _SIZES if most < limit), _LARGEST)],
        "configs": configs,
    }
    names = [f"- {escape_markdown(judge.name)}, fingerprint `{judge.fingerprint}`" for judge in evaluators]
    lines = ["---", yaml.safe_dump(front, sort_keys=False, allow_unicode=True).rstrip(), "---", ""]
    lines += [f"# {escape_markdown(title)}", ""]
    lines += [f"What evaluators say of each step of the traces of {escape_markdown(dataset)}:", ""]
    lines += names or ["- nobody yet"]
    for name, count in rows.items():
        lines += ["", f"## {name}", "", f"{count:,} rows.", "", "| column | is |", "|---|---|"]
        lines += [f"| {column} | {what} |" for column, what in _COLUMNS[name].items()]
    return "\n".join([*lines, "", "Written by StepSight.", ""])


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
