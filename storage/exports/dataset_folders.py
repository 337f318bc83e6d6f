"""Writing a dataset as a folder that `datasets.load_dataset` can read and that can be uploaded to a hub.

The folder contains Parquet files, and a dataset card that lists them as configurations:

    FOLDER/README.md
    FOLDER/data/NAME.parquet
"""

import os
import secrets
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from stepsight.core.errors import UserError
from stepsight.core.escaping import escape_markdown
from stepsight.core.files.arrow import load_pyarrow

NAME = "datasets"
"""The name of the format in commands."""

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
    partial = path.with_name(f"{path.name}.{secrets.token_hex(8)}.partial")
    try:
        (partial / "data").mkdir(parents=True)
        rows = {}
        for name, table in tables.items():
            file = partial / "data" / f"{name}.parquet"
            with open(file, "wb") as content:
                content.writelines(table.parts)
            rows[name] = int(parquet.read_metadata(file).num_rows)
        (partial / "README.md").write_text(_card(title, about, tables, rows), encoding="utf-8", newline="")
        os.rename(partial, path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror}).", "Check the path.") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return rows


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
    lines += [f"# {escape_markdown(title)}", "", about]
    for name, table in tables.items():
        lines += ["", f"## {name}", "", f"{rows[name]:,} rows.", "", "| column | is |", "|---|---|"]
        lines += [f"| {column} | {what} |" for column, what in table.columns.items()]
    return "\n".join([*lines, "", "Written by StepSight.", ""])


def _size(rows: int) -> str:
    return next((name for limit, name in _SIZES if rows < limit), _LARGEST)
