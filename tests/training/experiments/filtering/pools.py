"""Small pools, and a tiny evaluator to judge them."""

import json
from pathlib import Path

from stepsight.training.experiments.filtering.pool import Pool
from stepsight.training.experiments.filtering.run import Filtering


def sums(count: int) -> list[dict]:
    """Rows with MMIQC's field names, no two alike."""
    return [
        {
            "instruction": f"What is {i} + 3?",
            "output": f"{i} + 3 = {i + 3}.\nSo the answer is {i + 3}.",
            "source": "é",
        }
        for i in range(count)
    ]


def write_rows(path: Path, rows: list) -> Path:
    """One line each; what is text already is written as it stands."""
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def open_pool(folder: Path, rows: list) -> Pool:
    return Pool.open([write_rows(folder / "pool.jsonl", rows)])


def wanted(folder: Path, evaluator: Path, name: str = "out", rows: int = 40, **changes) -> Filtering:
    """Of a pool of sums in `folder`, in chunks of 8. A tiny random evaluator calls hardly a solution not redundant,
    so the threshold of redundancy is high."""
    pool = folder / "pool.jsonl"
    if not pool.exists():
        write_rows(pool, sums(rows))
    given = {"pool": (pool,), "output": folder / name, "evaluator": str(evaluator), "chunk": 8}
    return Filtering(**(given | {"validity": 0.3, "redundancy": 0.6} | changes))


def files(folder: Path) -> dict[str, bytes]:
    """Everything in it."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
