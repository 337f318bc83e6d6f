"""Writing a dataset as a folder that `datasets.load_dataset` can read and that can be uploaded to a hub.

The folder contains Parquet files, a dataset card that lists them as configurations, and their Croissant metadata:

    FOLDER/README.md
    FOLDER/croissant.json
    FOLDER/data/NAME.parquet
"""

import json
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from stepsight.core.errors import UserError
from stepsight.core.files.arrow import load_pyarrow
from stepsight.core.files.judgment_table import number_of
from stepsight.storage.database.store import Store
from stepsight.storage.exports.croissant import FILE as CROISSANT
from stepsight.storage.exports.croissant import describe_folder
from stepsight.storage.exports.frames import judgment_frames
from stepsight.storage.exports.left_out_frames import left_out_frames
from stepsight.storage.exports.stress_frames import stress_frames
from stepsight.storage.exports.table_files import Row, plain_parquet_parts, table_parts
from stepsight.storage.judgments.evaluators import evaluators_of
from stepsight.storage.traces.queries import find_dataset, has_contexts, trace_batches

if TYPE_CHECKING:
    # Loaded by what makes the frames.
    import pandas as pd

NAME = "datasets"
"""The name of the format in commands."""

TRACES: dict[str, type] = {"id": str, "problem": str, "steps": list, "labels": list, "shares": list[float],
                            "repaired": list[int], "notices": list[int]}  # fmt: skip
_SIGNS = re.compile(r"([\\`*_{}\[\]<>()#+\-!|~])")
# The size categories of hubs.
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"),
          (10_000_000, "1M<n<10M"))  # fmt: skip
_LARGEST = "n>10M"


@dataclass(frozen=True)
class ParquetTable:
    """The content of a Parquet file: `parts` yields its bytes in chunks, and `columns` maps column names to
    descriptions."""

    parts: Iterable[bytes]
    columns: Mapping[str, str]


def write_dataset(path: Path, title: str, about: str, tables: Mapping[str, ParquetTable]) -> dict[str, int]:
    """Write a folder with one Parquet file per table and return the row count of each table.

    Each table becomes a configuration of the same name, and the first one becomes the default. `title` is plain
    text and `about` is Markdown; both go into the dataset card. If writing fails, no folder remains. Raises
    `UserError` if the folder exists or cannot be written, or if pyarrow is missing.
    """
    parquet = load_pyarrow().parquet
    if path.exists():
        raise UserError(f"{path}: already exists.", "Name another folder.")
    partial = path.with_name(f"{path.name}.partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        (partial / "data").mkdir(parents=True)
        rows = {}
        for name, table in tables.items():
            file = partial / "data" / f"{name}.parquet"
            with open(file, "wb") as content:
                content.writelines(table.parts)
            rows[name] = int(parquet.read_metadata(file).num_rows)
        (partial / "README.md").write_text(_card(title, about, tables, rows), encoding="utf-8", newline="")
        about_columns = {name: table.columns for name, table in tables.items()}
        described = json.dumps(describe_folder(partial, title, about_columns), ensure_ascii=False, indent=1)
        (partial / CROISSANT).write_text(described, encoding="utf-8", newline="")
        os.rename(partial, path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror}).", "Check the path.") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return rows


def write_judgments(
    store: Store,
    path: Path,
    dataset: str,
    trace_ids: Sequence[int],
    evaluators: Collection[int] | None = None,
    convention: str = "",
) -> dict[str, int]:
    """Write the given traces of a dataset and their judgments to a folder, like `write_dataset`.

    `trace_ids` and `evaluators` are database ids. By default all evaluators that have judged the dataset are
    included. The gold follows the convention, if any.
    """
    dataset_id = find_dataset(store, dataset).id
    judged = evaluators_of(store, dataset_id)
    chosen = [one for one in judged if evaluators is None or one.id in evaluators]
    of = store, dataset, trace_ids, [one.id for one in chosen]
    frames = judgment_frames(*of, convention)
    names = [f"- {plain(one.name)}, fingerprint `{one.fingerprint}`" for one in chosen]
    about = "\n".join(
        [f"What evaluators say of each step of the traces of {plain(dataset)}:", "", *(names or ["- nobody yet"])]
    )
    tables = {
        "judgments": ParquetTable(plain_parquet_parts(frames), _JUDGMENT_COLUMNS),
        **_if_any("left_out", _LEFT_OUT_COLUMNS, partial(left_out_frames, *of)),
        **_if_any("stress", _STRESS_COLUMNS, partial(stress_frames, *of[:3], evaluators)),
        "traces": _trace_table(store, dataset_id, trace_ids, convention),
    }
    return write_dataset(path, f"Judgments of {dataset}", about, tables)


def _if_any(
    name: str, columns: Mapping[str, str], read: Callable[[], Iterator["pd.DataFrame"]]
) -> dict[str, ParquetTable]:
    """Return a table of the frames that `read` yields, by its name. Empty if there are no rows."""
    if not any(len(frame) for frame in read()):
        return {}
    return {name: ParquetTable(plain_parquet_parts(read()), columns)}


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
_STRESS_COLUMNS = {
    "dataset, trace": "what is changed",
    "evaluator, fingerprint": "who judged the original and the variant",
    "seed, transform, demand, said": "how the variant was made, what it demands, and what was changed; without a"
    " step if there was nothing to change",
    "step, origin": "a step of the variant, and that of the original that it came from; a sub-step counts as one",
    "text": "the step as it stands in the variant",
    "target": "true if the verdict must turn to not valid",
    "before, after, change": "the validity in the original and in the variant, and the difference",
}
_TRACE_COLUMNS = {
    "id": "the trace's id, `trace` in the judgments",
    "problem": "the problem",
    "steps": "the steps in order, the sub-steps of one joined by line breaks",
    "labels": "the gold of each step: neg (wrong), neu (valid but redundant), pos (correct and useful), valid where"
    " the benchmark says that alone, or null",
    "shares": "the soft label of each step, from 0 to 1, or null",
    "repaired, notices": "the number of the step that repairs each one, and of the one that each notices, counted"
    " from 1, or null",
}
_CONTEXT = {
    "context": "of an agent's trace, as JSON: the messages between its steps, and the calls that the steps make",
}
_JUDGMENT_COLUMNS = {
    "dataset, trace, step, substep": "what is judged; steps and sub-steps are counted from 1",
    "gold, share, repaired, notices": "the gold, the soft label and the links of the step, as in the traces",
    "evaluator, fingerprint, mode": "who judged; online with only the steps before in view, offline with all",
    "neg, neu, pos": "the probabilities",
    "validity, redundancy": "neu + pos, and neu",
    "spread": "of an ensemble, how far its members disagree",
    "valid, redundant": "the verdicts by the thresholds in force",
    "change": "the retroactive change in the hindsight judgment: offline minus online validity",
    "solution_score, rationale": "what the evaluator says of the whole solution by itself, and its words",
}


def _trace_table(store: Store, dataset_id: int, trace_ids: Sequence[int], convention: str) -> ParquetTable:
    """Return the table of traces. It has the column of contexts only if the dataset has traces of agents."""
    of_agents = has_contexts(store, dataset_id)
    rows = _traces(store, trace_ids, convention, with_context=of_agents)
    columns: dict[str, type] = TRACES | ({"context": str} if of_agents else {})
    return ParquetTable(table_parts(columns, rows, "parquet"), _TRACE_COLUMNS | (_CONTEXT if of_agents else {}))


def _traces(store: Store, trace_ids: Sequence[int], convention: str, *, with_context: bool) -> Iterator[Row]:
    for batch in trace_batches(store, trace_ids):
        for trace in batch:
            converted = trace.in_convention(convention)
            row: dict[str, Any] = {
                "id": trace.id,
                "problem": trace.problem,
                "steps": [step.text for step in trace.steps],
                "labels": [step.gold for step in converted.steps],
                "shares": [step.share for step in trace.steps],
                "repaired": [number_of(step.repaired) for step in converted.steps],
                "notices": [number_of(step.notices) for step in trace.steps],
            }
            if with_context:
                context = trace.context and trace.context.to_dict()
                row["context"] = None if context is None else json.dumps(context, ensure_ascii=False)
            yield row


def plain(text: str) -> str:
    """Escape the characters of a text that have a meaning in Markdown."""
    return _SIGNS.sub(r"\\\1", text)


def _card(title: str, about: str, tables: Mapping[str, ParquetTable], rows: Mapping[str, int]) -> str:
    configs = [
        {"config_name": name, "data_files": [{"split": "train", "path": f"data/{name}.parquet"}]}
        | ({"default": True} if name == next(iter(tables)) else {})
        for name in tables
    ]
    front = {
        "pretty_name": title,
        "tags": ["stepsight", "process-reward-model"],
        "size_categories": [_size(max(rows.values()))],
        "configs": configs,
    }
    lines = ["---", yaml.safe_dump(front, sort_keys=False, allow_unicode=True).rstrip(), "---", ""]
    lines += [f"# {plain(title)}", "", about]
    for name, table in tables.items():
        lines += ["", f"## {name}", "", f"{rows[name]:,} rows.", "", "| column | is |", "|---|---|"]
        lines += [f"| {column} | {what} |" for column, what in table.columns.items()]
    return "\n".join([*lines, "", "Written by StepSight.", ""])


def _size(rows: int) -> str:
    return next((name for limit, name in _SIZES if rows < limit), _LARGEST)
