"""A subset of a pool as a file: one object a line, of which `query` and `response` are learnt.

{"query": "How many positive divisors does 196 have?", "response": "196 = 2^2 * 7^2, so 3 * 3 = 9.", "source": "…"}
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.files import read_json
from stepsight.core.jsonl import open_input, read_rows
from stepsight.storage.importers.fields import located, text
from stepsight.training.experiments.filtering.manifest import MANIFEST
from stepsight.training.experiments.filtering.subsets import SUBSETS


@dataclass(frozen=True)
class SubsetFile:
    """`rows` are pairs of a query and a response; `sha256` is of the file. `scorer` is the name of the evaluator
    that chose them, "" where nothing tells."""

    name: str
    rows: tuple[tuple[str, str], ...]
    sha256: str
    scorer: str = ""

    def as_json(self) -> dict[str, Any]:
        """What it is, without its rows."""
        return {"name": self.name, "rows": len(self.rows), "sha256": self.sha256, "scorer": self.scorer}


def read_subset(path: Path) -> SubsetFile:
    """Read a file. Raises `UserError` naming the line where a row has no query or no response, or there is none."""
    rows = []
    with open_input(path) as file:
        for number, row in read_rows(file, str(path)):
            with located(f"{path} line {number}"):
                rows.append((_filled(row, "query"), _filled(row, "response")))
    if not rows:
        raise UserError(
            f"{path}: there is no row to learn from.", "Write one object with query and response a line."
        )
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return SubsetFile(path.stem, tuple(rows), digest, _scorer(path))


def _filled(row: dict[str, Any], key: str) -> str:
    value = text(row, key)
    if not value.strip():
        raise UserError(f"{key} is empty.", "Every row needs a query and a response.")
    return value


def _scorer(path: Path) -> str:
    """The evaluator that the manifest beside a subset names."""
    manifest = path.parent / MANIFEST
    if path.stem not in SUBSETS or not manifest.is_file():
        return ""
    told = read_json(manifest).get("evaluator")
    name = told.get("name") if isinstance(told, dict) else told
    return name if isinstance(name, str) else ""
