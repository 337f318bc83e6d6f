"""Writing the output of a filtering run: its subsets and their manifest.

FOLDER/NAME.jsonl      the rows of a subset, in the order of the pool
FOLDER/manifest.json   counts, thresholds and fingerprints; written last
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from stepsight.core.errors import UserError
from stepsight.core.files.atomic import atomic_file
from stepsight.core.judgment import Mode
from stepsight.core.models.evaluator_base import Evaluator
from stepsight.core.scores import Outputs
from stepsight.training.experiments.filtering.pool import QUERY, RESPONSE, Pool, Solution
from stepsight.training.experiments.filtering.scores import ChunkedScores, OverlappingRow, ScoredRow, UnscoredRow
from stepsight.training.experiments.filtering.subsets import ChosenSubset, PoolScores, SubsetRule, overlaps
from stepsight.training.runs.progress import Watch
from stepsight.training.runs.provenance import versions

MANIFEST = "manifest.json"
FORMAT = "stepsight-filter"
# The number of left-out rows that the manifest names; the scores name all.
_NAMED = 1_000


def subset_path(folder: Path, name: str) -> Path:
    return folder / f"{name}.jsonl"


def write_subsets(
    folder: Path, pool: Pool, scores: ChunkedScores, subsets: Mapping[str, ChosenSubset], watch: Watch
) -> dict[str, str]:
    """Write each subset to its file and return the SHA-256 of each file. A file is written completely or not at
    all. Raises `UserError` if the pool has changed since it was scored, or if a file cannot be written."""
    with ExitStack() as stack:
        files = {name: stack.enter_context(_open(subset_path(folder, name))) for name in subsets}
        chosen = _members(subsets, scores.rows)
        # The hash shows a pool that has grown or shrunk.
        for entry, row in zip(pool, scores.scores(), strict=False):
            if isinstance(row, ScoredRow):
                if not isinstance(entry, Solution) or entry.digest != row.digest:
                    raise UserError(
                        f"row {row.row} of the pool is not what was scored.", "Start again, with another --output."
                    )
                for bit, file in enumerate(files.values()):
                    if chosen[row.row] >> bit & 1:
                        file.write(entry.line)
            watch("rows written", row.row, scores.rows)
        pool.check_unchanged()
    return {name: file.digest.hexdigest() for name, file in files.items()}


@dataclass
class _HashedFile:
    """A file together with a running hash of the bytes written to it."""

    file: IO[bytes]
    digest: Any = field(default_factory=hashlib.sha256)

    def write(self, line: bytes) -> None:
        self.file.write(line)
        self.digest.update(line)


@contextmanager
def _open(path: Path) -> Iterator[_HashedFile]:
    with atomic_file(path) as partial, open(partial, "wb") as file:
        yield _HashedFile(file)
        file.flush()


def _members(subsets: Mapping[str, ChosenSubset], rows: int) -> "np.ndarray[Any, np.dtype[np.uint8]]":
    """Return an array of shape (rows + 1,) with, for each row, a bit mask of the subsets that contain it. Rows are
    counted from 1."""
    members = np.zeros(rows + 1, np.uint8)
    for bit, subset in enumerate(subsets.values()):
        members[subset.rows] |= np.uint8(1 << bit)
    return members


def make_manifest(
    pool: Pool,
    evaluator: Evaluator,
    rule: SubsetRule,
    scores: ChunkedScores,
    pool_scores: PoolScores,
    subsets: Mapping[str, ChosenSubset],
    hashes: Mapping[str, str],
) -> dict[str, Any]:
    """Return the manifest of a filtering run. The manifest depends only on the pool, the evaluator and the rule,
    not on the machine or the number of workers."""
    left_out = (row.left_out for row in scores.scores() if isinstance(row, UnscoredRow))
    overlapping = Counter(row.problem_of for row in scores.scores() if isinstance(row, OverlappingRow))
    size = max(len(subset.rows) for subset in subsets.values())
    return {
        "format": FORMAT,
        "pool": {"files": pool.as_json(), "rows": scores.rows, **_drawn(pool)},
        "written_as": [QUERY, RESPONSE],
        "evaluator": {
            "name": evaluator.name,
            "format": evaluator.format,
            "outputs": str(evaluator.outputs),
            "fingerprint": evaluator.fingerprint,
        },
        "mode": str(Mode.OFFLINE),
        "thresholds": {"validity": rule.thresholds.validity, "redundancy": rule.thresholds.redundancy},
        "match": "val+red" if rule.match is None else rule.match,
        "size": size,
        "seed": rule.seed,
        "solutions": _counts(pool_scores, rule, evaluator.outputs),
        "left_out": {
            "rows": scores.rows - len(pool_scores) - overlapping.total(),
            "first": list(islice(left_out, _NAMED)),
        },
        "benchmarks": [
            {
                "name": one["path"],
                "sha256": one["files"][0]["sha256"],
                "problems": one["problems"],
                "rows": overlapping[digest],
            }
            for digest, benchmark in pool.benchmarks.items()
            for one in benchmark.records
        ],
        "subsets": {name: subset.as_json() | {"sha256": hashes[name]} for name, subset in subsets.items()},
        "shared": overlaps(subsets),
        "versions": versions(),
    }


def _drawn(pool: Pool) -> dict[str, Any]:
    """Describe how the rows of the pool were chosen. The result is empty if the pool contains all rows."""
    if pool.drawn is None:
        return {}
    drawn = pool.drawn
    return {"drawn": pool.draw.as_json() | {"of": drawn.read, "met": drawn.met, "left_out": drawn.left_out}}


def summary(manifest: Mapping[str, Any], folder: Path) -> str:
    """Summarise a manifest in a few lines of text."""
    solutions, thresholds = manifest["solutions"], manifest["thresholds"]
    names = ", ".join(manifest["subsets"])
    judged = f"{solutions['scored']:,} solutions judged by {manifest['evaluator']['name']}"
    judged += f": {solutions['valid']:,} valid (from {thresholds['validity']:g})"
    if "redundant" in solutions:
        judged += f", {solutions['redundant']:,} redundant (from {thresholds['redundancy']:g})"
        judged += f", {solutions['valid_and_not_redundant']:,} valid and not redundant"
    lines = [f"{judged}.", f"{manifest['size']:,} of them in each of {names}."]
    if drawn := manifest["pool"].get("drawn"):
        met = (
            ""
            if drawn["met"] == drawn["of"]
            else f" {drawn['met']:,} rows that meet {' and '.join(drawn['where'])}, of"
        )
        lines.insert(0, f"The pool: {manifest['pool']['rows']:,} rows of{met} {drawn['of']:,}.")
    wanted = manifest["match"]
    if isinstance(wanted, int) and wanted > manifest["size"]:
        lines.append(f"{wanted:,} were wanted, and there are no more to choose from: all subsets have as many.")
    lines += [_overlap(one["rows"], one["name"]) for one in manifest["benchmarks"] if one["rows"]]
    if rows := manifest["left_out"]["rows"]:
        lines.append(f"{rows:,} {'row was' if rows == 1 else 'rows were'} left out; {folder / MANIFEST} says why.")
    return "\n".join(lines)


def _overlap(rows: int, benchmark: str) -> str:
    return f"{rows:,} {'row is a problem' if rows == 1 else 'rows are problems'} of {benchmark}, and left out."


def _counts(scores: PoolScores, rule: SubsetRule, outputs: Outputs) -> dict[str, int]:
    counts = {"scored": len(scores), "valid": int((scores.validity >= rule.thresholds.validity).sum())}
    if outputs != Outputs.THREE_WAY:
        return counts
    return counts | {
        "redundant": int((scores.redundancy >= rule.thresholds.redundancy).sum()),
        "valid_and_not_redundant": int(scores.passing(rule.thresholds).sum()),
    }
