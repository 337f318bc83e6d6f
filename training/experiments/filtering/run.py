"""Filtering: an evaluator scores a pool, and subsets of it are chosen by the scores.

FOLDER/run.json        the settings, thresholds and fingerprints that identify the run
FOLDER/NAME.jsonl      the subsets, in the order of the pool
FOLDER/manifest.json   the same with the counts; written last
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from stepsight.core.errors import UserError
from stepsight.core.files.whole_files import atomic_file, read_json, write_json
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.models.evaluator_base import Evaluator
from stepsight.core.models.location import can_load
from stepsight.core.models.placement import Placement
from stepsight.core.scores import Outputs, Thresholds
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.columns import read_table
from stepsight.storage.judgments.evaluators import StoredEvaluator, find_by_name, register_loaded
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import Dataset, list_left_out, trace_batches
from stepsight.training.evaluate.completion import find_stored, judge, open_evaluator
from stepsight.training.experiments.filtering.pool import (
    BOTH,
    QUERY,
    RANDOM,
    RESPONSE,
    SUBSETS,
    VALIDITY,
    ChosenSubset,
    Pool,
    PoolScores,
    SubsetRule,
    choose,
    output_row,
    overlaps,
)
from stepsight.training.runs.folder import RunFolder, versions
from stepsight.training.runs.progress import Watch, unwatched

MANIFEST = "manifest.json"
FORMAT = "stepsight-filter"
# The left-out rows that the manifest names, and those that an error names.
_NAMED, _SHOWN = 1_000, 5


@dataclass(frozen=True)
class Filtering:
    """The options of a filtering run. Those without an annotation, which is also the help text of the command's
    option, are these: `output` is the folder to write to. `evaluator` scores the pool at `place`; if it cannot run
    here, its stored scores are used. `by` and `match` are explained in `SubsetRule`. `validity` and `redundancy`
    are thresholds, which default to the evaluator's own."""

    output: Path
    evaluator: str = "mini-bidir"
    by: tuple[str, ...] = SUBSETS
    match: int | None = None
    seed: Annotated[int, "seed of the random choices"] = 0
    validity: float | None = None
    redundancy: float | None = None
    place: Placement = Placement()  # noqa: RUF009 (it is frozen)
    where: Annotated[
        tuple[str, ...], "only rows with FIELD=VALUE, FIELD=VALUE,VALUE or FIELD!=VALUE; may be repeated"
    ] = ()
    sample: Annotated[int | None, "only this many of those rows, drawn with --seed before any is scored"] = None
    skip_bad: Annotated[bool, "leave out and count rows that cannot be scored"] = False
    benchmarks: Annotated[
        tuple[Path, ...],
        "leave out rows whose query is a problem of this file, such as MATH-500's; may be repeated",
    ] = ()

    def rule(self, evaluator: StoredEvaluator) -> SubsetRule:
        """Return the rule for choosing subsets. Raises `UserError` if there is no such subset, or if the rule needs
        redundancy but the evaluator gives none."""
        unknown = sorted(set(self.by) - set(SUBSETS))
        if unknown or not self.by:
            raise UserError(
                f"there is no subset {unknown[0] if unknown else ''!r}.", f"Expected {', '.join(SUBSETS)}."
            )
        if self.match is not None and self.match < 1:
            raise UserError(f"{self.match} solutions per subset are requested, expected 1 or more.")
        own = evaluator.thresholds
        validity = own.validity if self.validity is None else self.validity
        redundancy = own.redundancy if self.redundancy is None else self.redundancy
        names = tuple(name for name in SUBSETS if name in self.by)
        rule = SubsetRule(names, self.match, self.seed, Thresholds(validity, redundancy))
        if rule.needs_redundancy and evaluator.outputs != Outputs.THREE_WAY:
            raise UserError(
                f"{evaluator.name} judges validity, but not redundancy.",
                f"Give --by {VALIDITY} --by {RANDOM} and --match N.",
            )
        return rule


def filter_pool(store: Store, dataset: Dataset, options: Filtering, watch: Watch = unwatched) -> dict[str, Any]:
    """Score the solutions of a pool that have no scores yet, write the subsets and return the manifest.

    If called again, return the manifest of the finished run. Raises `UserError` if an option is invalid, if a
    solution cannot be scored, if too few qualify, or if the folder belongs to a different run.
    """
    pool = Pool.read(store, dataset, options.where, options.sample, options.seed, options.benchmarks)
    run = cache(lambda: open_evaluator(options.evaluator, options.place)) if can_load(options.evaluator) else None
    if run is None:
        evaluator = find_by_name(store, options.evaluator)
    else:
        # An evaluator that has judged the whole pool is not loaded.
        evaluator = find_stored(store, options.evaluator, options.place) or register_loaded(store, run())
    rule = options.rule(evaluator)
    rows = Counter(pool.problem_of.values())
    benchmarks = [benchmark.records[0] for benchmark in pool.benchmarks]
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "pool": {"dataset": dataset.name, "sha256": pool.sha256, "rows": len(pool)},
        "written_as": [QUERY, RESPONSE],
        "evaluator": {
            "name": evaluator.name,
            "format": evaluator.format,
            "outputs": str(evaluator.outputs),
            "fingerprint": evaluator.fingerprint,
        },
        "mode": str(Mode.OFFLINE),
        "thresholds": {"validity": rule.thresholds.validity, "redundancy": rule.thresholds.redundancy},
        "by": list(rule.by),
        "match": BOTH if rule.match is None else rule.match,
        "seed": rule.seed,
        "skip_bad": options.skip_bad,
        "benchmarks": [
            {
                "name": benchmark["path"],
                "sha256": benchmark["files"][0]["sha256"],
                "problems": benchmark["problems"],
                "rows": rows[number],
            }
            for number, benchmark in enumerate(benchmarks)
        ],
    }
    if pool.draw:
        manifest["pool"]["drawn"] = dict(pool.draw)
    folder = RunFolder(options.output)
    folder.check(manifest)
    paths = {name: options.output / f"{name}.jsonl" for name in rule.by}
    if all(path.is_file() for path in (options.output / MANIFEST, *paths.values())):
        return read_json(options.output / MANIFEST)
    scores, errors = _score(store, pool, evaluator, run, watch)
    left_out = len(pool) - len(pool.problem_of) - len(scores)
    _check_scored(pool, left_out, errors, options.skip_bad)
    subsets = choose(scores, rule)
    counts = {"scored": len(scores), "valid": int((scores.validity >= rule.thresholds.validity).sum())}
    if evaluator.outputs == Outputs.THREE_WAY:
        counts["redundant"] = int((scores.redundancy >= rule.thresholds.redundancy).sum())
        counts["valid_and_not_redundant"] = int(scores.passing(rule.thresholds).sum())
    bad = [f"{row['file']} {row['place']}: {row['error']}" for row in list_left_out(store, dataset.id)]
    with folder.lock():
        folder.begin(manifest)
        hashes = {name: _write(store, pool, subset, paths[name]) for name, subset in subsets.items()}
        manifest |= {
            "size": max(len(subset.rows) for subset in subsets.values()),
            "solutions": counts,
            "left_out": {"rows": left_out + len(bad), "first": [*bad, *errors][:_NAMED]},
            "subsets": {name: subset.as_json() | {"sha256": hashes[name]} for name, subset in subsets.items()},
            "shared": overlaps(subsets),
            "versions": versions(),
        }
        write_json(options.output / MANIFEST, manifest)
    return manifest


def _score(
    store: Store, pool: Pool, evaluator: StoredEvaluator, load: Callable[[], Evaluator] | None, watch: Watch
) -> tuple[PoolScores, list[str]]:
    """Return the scores of the pool, after scoring what has none if the evaluator can be loaded, and the errors of
    solutions that are too long for it. Solutions of benchmark problems are left out."""
    values = _read_scores(store, pool, evaluator)
    missing = [
        id
        for id, validity in zip(pool.trace_ids, values[:, 0].tolist(), strict=True)
        if np.isnan(validity) and id not in pool.problem_of
    ]
    errors: list[str] = []
    if missing and load is not None:
        loaded = load()

        def skip(_: Trace, error: UserError) -> None:
            errors.append(error.message)

        def watched(judgments: Iterator[Judgment]) -> Iterator[Judgment]:
            for number, judgment in enumerate(judgments, start=1):
                yield judgment
                watch("solutions scored", number, len(missing))

        traces = chain.from_iterable(trace_batches(store, missing))
        judgments = judge(Scorer(loaded), traces, Mode.OFFLINE, skip)
        # Its files may have changed since the row was found.
        save_judgments(store, register_loaded(store, loaded).id, watched(judgments))
        values = _read_scores(store, pool, evaluator)
    values[[id in pool.problem_of for id in pool.trace_ids]] = np.nan
    rows = np.flatnonzero(~np.isnan(values[:, 0]))
    redundancy = values[rows, 1] if evaluator.outputs == Outputs.THREE_WAY else np.full(len(rows), np.nan)
    return PoolScores(rows + 1, values[rows, 0], redundancy), errors


def _read_scores(store: Store, pool: Pool, evaluator: StoredEvaluator) -> "np.ndarray[Any, np.dtype[np.float64]]":
    """Return the validity and redundancy of each solution of the pool, with shape (n, 2). They are NaN if a step
    has no scores. Steps that an evaluator in words does not judge count as faultless."""
    table = read_table(store, pool.gold, evaluator.id, Mode.OFFLINE)
    validity, redundancy = table.validity, table.redundancy
    if evaluator.outputs.in_words:
        validity, redundancy = np.nan_to_num(validity, nan=1.0), np.nan_to_num(redundancy, nan=0.0)
    values = np.full((len(pool.gold.ids), 2), np.nan)
    if len(table):
        starts = np.flatnonzero(np.diff(table.trace, prepend=-1))
        judged = table.trace[starts]
        values[judged, 0] = np.minimum.reduceat(validity, starts)
        values[judged, 1] = np.maximum.reduceat(redundancy, starts)
    return values[pool.gold.places(np.array(pool.trace_ids, np.int64))]


def _check_scored(pool: Pool, left_out: int, errors: list[str], skip_bad: bool) -> None:
    """Raise `UserError` if nothing can be scored, or if some solutions cannot be and `skip_bad` is not set."""
    if not len(pool):
        raise UserError("there is no solution in the pool.", "Write one object with query and response per line.")
    if len(pool.problem_of) == len(pool):
        raise UserError(
            f"all {len(pool):,} rows are problems of the benchmarks.", "Nothing is left to choose from."
        )
    if not left_out or (skip_bad and left_out < len(pool) - len(pool.problem_of)):
        return
    shown = [f"  {error}" for error in errors[:_SHOWN]]
    more = [f"  and {left_out - _SHOWN:,} more"] if left_out > _SHOWN else []
    head = f"{left_out:,} of {len(pool):,} solutions have no scores; leave them out with --skip-bad."
    raise UserError("\n".join([head, *shown, *more]))


def _write(store: Store, pool: Pool, subset: ChosenSubset, path: Path) -> str:
    """Write a subset to a file and return the file's SHA-256."""
    digest = hashlib.sha256()
    ids = [pool.trace_ids[row - 1] for row in subset.rows]
    with atomic_file(path) as partial, open(partial, "wb") as file:
        for trace in chain.from_iterable(trace_batches(store, ids)):
            line = f"{json.dumps(output_row(trace), ensure_ascii=False)}\n".encode()
            file.write(line)
            digest.update(line)
    return digest.hexdigest()


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
        conditions = f" that meet {' and '.join(drawn['where'])}" if drawn["where"] else ""
        lines.insert(0, f"The pool: {manifest['pool']['rows']:,} of {drawn['met']:,} solutions{conditions}.")
    match = manifest["match"]
    if isinstance(match, int) and match > manifest["size"]:
        lines.append(f"{match:,} were requested, and there are no more to choose from: all subsets have as many.")
    for benchmark in manifest["benchmarks"]:
        if rows := benchmark["rows"]:
            what = "row is a problem" if rows == 1 else "rows are problems"
            lines.append(f"{rows:,} {what} of {benchmark['name']}, and left out.")
    if rows := manifest["left_out"]["rows"]:
        lines.append(f"{rows:,} {'row was' if rows == 1 else 'rows were'} left out; {folder / MANIFEST} says why.")
    return "\n".join(lines)
