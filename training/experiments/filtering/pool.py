"""Pools of solutions: the traces of a dataset, or a sample of them, from which subsets of equal size are chosen.

The paper's pool is a random sample of 10,000 MATH problems with solutions, taken from MMIQC (section 6.1). A row of
MMIQC:

    {"instruction": "Compute $2 + 3$.", "output": "We add.\\nThe answer is: 5", "source": "MATH"}

Four subsets can be chosen:

    val+red   solutions in which every step is valid and none is redundant, by the thresholds
    val       the solutions with the highest validity
    red       the solutions with the lowest redundancy
    random    a uniform sample

If scores are equal at the cut-off, or more solutions qualify than are needed, a hash of the seed, the subset and
the row decides. The choice therefore does not depend on anything else, such as the order of scoring.
"""

import hashlib
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepsight.core.errors import UserError
from stepsight.core.files.row_conditions import parse_conditions
from stepsight.core.files.text_lines import stem_of
from stepsight.core.scores import Thresholds
from stepsight.core.text.split import THINKING, THOUGHT_STEPS
from stepsight.core.trace import Trace
from stepsight.storage.database.store import Store
from stepsight.storage.importers.column_mapping import ColumnMap
from stepsight.storage.importers.data_files import find_data
from stepsight.storage.importers.rows.kind import Row
from stepsight.storage.judgments.columns import Gold, read_gold
from stepsight.storage.traces.queries import Dataset, StoredTrace, iterate_traces, trace_batches
from stepsight.training.data.mixture import Benchmarks
from stepsight.training.data.sources_config import PROBLEMS, TraceOrigin
from stepsight.training.experiments.solutions import SOLUTION_TEXT, import_solutions, solution_text

QUERY, RESPONSE = "query", "response"
"""The names of the two fields in output, whatever the pool calls them."""


def import_pool(
    store: Store,
    files: Sequence[Path],
    dataset: str | None = None,
    fields: tuple[str, str] | None = None,
    *,
    skip_bad: bool = False,
    where: Sequence[str] = (),
) -> Dataset:
    """Import the files of a pool as one dataset, named after the first file by default.

    `fields` gives the names of the query and response fields; if it is None, they are recognised. Raises
    `UserError` in the same cases as `import_solutions`, and if the fields of a file cannot be recognised.
    """
    columns = {path: [ColumnMap(*fields) if fields else _recognised_columns(path)] for path in files}
    name = dataset or stem_of(files[0].resolve())
    return import_solutions(store, columns, name, _check_names, skip_bad=skip_bad, where=where)


def _recognised_columns(path: Path) -> ColumnMap:
    finding = find_data(path).recognise(str(path))
    columns = finding.columns
    if columns is None or finding.doubts or not (columns.problem and columns.steps):
        doubt = finding.doubts[0].message if finding.doubts else f"Its fields are {', '.join(finding.names[:12])}."
        raise UserError(
            f"{path}: the query and the response are not recognised. {doubt}", "Name the two with --fields."
        )
    return ColumnMap(columns.problem, columns.steps)


def _check_names(row: Row, columns: ColumnMap, trace: Trace) -> Trace:
    if taken := (row.keys() - {columns.problem, columns.steps}) & {QUERY, RESPONSE}:
        raise UserError(
            f"{columns.problem} and {columns.steps} are read, but the row also has a field {min(taken)!r}.",
            "Name the right two with --fields.",
        )
    # Thoughts are part of the written response.
    meta = {key: value for key, value in trace.meta.items() if key not in (THINKING, THOUGHT_STEPS)}
    return replace(trace, meta=meta)


def output_row(trace: Trace) -> dict[str, Any]:
    """Return a trace as a row of a subset: `query`, `response`, and its metadata."""
    meta = {key: value for key, value in trace.meta.items() if key != SOLUTION_TEXT}
    return {QUERY: trace.problem, RESPONSE: solution_text(trace)} | meta


@dataclass(frozen=True, eq=False)
class Pool:
    """The traces of a dataset from which subsets are chosen, in the order of the dataset.

    `trace_ids` are their database ids. `problem_of` maps those whose problem is in a benchmark, on which a model
    would be tested with a problem that it has learnt by heart, to the index of the benchmark. They are never
    chosen. `draw` describes the conditions and the sample; it is empty if the pool is the whole dataset.
    """

    dataset: Dataset
    gold: Gold
    trace_ids: tuple[int, ...]
    benchmarks: tuple[Benchmarks, ...]
    problem_of: Mapping[int, int]
    draw: Mapping[str, Any]

    @classmethod
    def read(
        cls,
        store: Store,
        dataset: Dataset,
        where: Sequence[str] = (),
        sample: int | None = None,
        seed: int = 0,
        benchmarks: Sequence[Path] = (),
    ) -> "Pool":
        """Read the pool: the traces whose metadata meet `where`, or `sample` of them, drawn at random with `seed`.

        Every sample of that size is equally likely. Raises `UserError` if a condition is invalid, if no trace meets
        all conditions, if too few do for the sample, or if a benchmark cannot be read.
        """
        conditions, gold = parse_conditions(where), read_gold(store, dataset)
        trace_ids = gold.trace_ids.tolist()
        if where:
            traces = iterate_traces(store, dataset.id)
            trace_ids = [trace.trace_id for trace in traces if conditions.hold(trace.meta)]
            conditions.check()
        qualified = len(trace_ids)
        if sample is not None:
            if not 1 <= sample <= qualified:
                raise UserError(
                    f"a sample of {sample:,} solutions is requested, but only {qualified:,} qualify.",
                    "Give another --sample, or loosen --where.",
                )
            places = random.Random(f"pool:{seed}").sample(range(qualified), sample)
            trace_ids = [trace_ids[place] for place in sorted(places)]
        draw: dict[str, Any] = {}
        if where or sample is not None:
            draw = {"where": [*where], "size": sample, "seed": seed, "met": qualified}
        problems = tuple(map(_read_benchmark, benchmarks))
        pool = cls(dataset, gold, tuple(trace_ids), problems, {}, draw)
        return replace(pool, problem_of=pool._overlaps(store)) if problems else pool

    def __len__(self) -> int:
        return len(self.trace_ids)

    def traces(self, store: Store) -> Iterator[StoredTrace]:
        """Yield the traces of the pool that are in no benchmark."""
        for batch in trace_batches(store, [id for id in self.trace_ids if id not in self.problem_of]):
            yield from batch

    @property
    def sha256(self) -> str:
        """The SHA-256 of the digests of all traces, which identifies the pool."""
        digests = dict(zip(self.gold.trace_ids.tolist(), self.gold.digests, strict=True))
        return hashlib.sha256("".join(f"{digests[id]}\n" for id in self.trace_ids).encode()).hexdigest()

    def _overlaps(self, store: Store) -> dict[int, int]:
        return {
            trace.trace_id: number
            for trace in self.traces(store)
            for number, benchmark in reversed([*enumerate(self.benchmarks)])
            if benchmark.overlaps(trace)
        }


def _read_benchmark(path: Path) -> Benchmarks:
    if not path.is_file():
        raise UserError(f"there is no file {path}.", "Check the path of the benchmark.")
    whole = path.resolve()
    # A benchmark's file is often just called test.jsonl: its folder identifies it.
    origin = TraceOrigin(PROBLEMS, path=f"{whole.parent.name}/{whole.name}")
    try:
        return Benchmarks([origin], whole.parent.parent)
    except UserError as error:
        raise UserError(error.message, "A benchmark is JSON Lines, with problem or question in each.") from None


BOTH, VALIDITY, REDUNDANCY, RANDOM = "val+red", "val", "red", "random"
SUBSETS = (BOTH, VALIDITY, REDUNDANCY, RANDOM)

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class PoolScores:
    """The row numbers, counted from 1, and the scores of all scored solutions of a pool, in arrays of shape (n,).
    Redundancy is NaN if the evaluator does not give it."""

    rows: Rows
    validity: NDArray[np.float64]
    redundancy: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.rows)

    def passing(self, thresholds: Thresholds) -> NDArray[np.bool_]:
        """Return a mask that selects the solutions that are valid and not redundant by the thresholds."""
        return (self.validity >= thresholds.validity) & (self.redundancy < thresholds.redundancy)


@dataclass(frozen=True)
class SubsetRule:
    """A rule for choosing subsets. `by` names the subsets. Each subset gets `match` solutions or, if `match` is
    None, as many as val+red has. `seed` decides between equally good solutions."""

    by: tuple[str, ...] = SUBSETS
    match: int | None = None
    seed: int = 0
    thresholds: Thresholds = Thresholds()  # noqa: RUF009 (it is frozen)

    @property
    def needs_redundancy(self) -> bool:
        return self.match is None or BOTH in self.by or REDUNDANCY in self.by


@dataclass(frozen=True)
class ChosenSubset:
    """The rows of a subset, in the order of the pool.

    If the rows were chosen by a score, `edge` is the worst score among them, and `tied` is the number of solutions
    in the whole pool with exactly that score.
    """

    rows: Rows
    edge: float | None = None
    tied: int | None = None

    def as_json(self) -> dict[str, Any]:
        ranked = {} if self.edge is None else {"edge": self.edge, "tied_at_edge": self.tied}
        return {"rows": len(self.rows)} | ranked


def choose(scores: PoolScores, rule: SubsetRule) -> dict[str, ChosenSubset]:
    """Choose the subsets that the rule names, all of the same size.

    The size is `match`, or the number of solutions that qualify if that is smaller. Raises `UserError` if no
    solution qualifies for val+red and the size depends on it.
    """
    passing = scores.passing(rule.thresholds)
    available = int(passing.sum()) if rule.match is None or BOTH in rule.by else len(scores)
    if not available:
        valid, redundant = rule.thresholds.validity, rule.thresholds.redundancy
        raise UserError(
            f"none of {len(scores):,} solutions is valid (from {valid:g}) and not redundant (below {redundant:g}).",
            "Give other thresholds, or --by val, red or random with --match N; the scores are stored.",
        )
    size = min(available, rule.match or available)
    chosen = {}
    for name in rule.by:
        # Pseudo-random numbers that are the same on every machine.
        salt = f"{rule.seed} {name}"
        hashes = (hashlib.blake2b(f"{salt} {row}".encode(), digest_size=8).digest() for row in scores.rows)
        chance = np.fromiter((int.from_bytes(digest) for digest in hashes), np.uint64, len(scores.rows))
        # The order is ascending, so validity is negated.
        ranked = {BOTH: ~passing, RANDOM: chance, VALIDITY: -scores.validity, REDUNDANCY: scores.redundancy}[name]
        order = np.lexsort((scores.rows, chance, ranked))[:size]
        rows = np.sort(scores.rows[order])
        if name in (BOTH, RANDOM):
            chosen[name] = ChosenSubset(rows)
        else:
            values = scores.validity if name == VALIDITY else scores.redundancy
            edge = float(values[order[-1]])
            chosen[name] = ChosenSubset(rows, edge, int((values == edge).sum()))
    return chosen


def overlaps(subsets: Mapping[str, ChosenSubset]) -> dict[str, int]:
    """Return the number of rows that each pair of subsets has in common."""
    return {
        f"{first} and {second}": len(np.intersect1d(subsets[first].rows, subsets[second].rows, assume_unique=True))
        for first, second in combinations(subsets, 2)
    }
