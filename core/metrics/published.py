"""Published results: the paper's tables, stored in assets/reference with one file per table and one line per row.

`names.json` maps each table's rows to benchmarks, and alternative names to evaluators. An evaluator that this file
does not name is never taken for a published one, however similar its name is.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from stepsight.core.judgment import Mode
from stepsight.core.metrics.reasoneval import Errors
from stepsight.core.paths import asset

_NAMES = "names.json"
# Numbers that the paper prints outside its tables, read by `training.paper`.
_OTHERS = (_NAMES, "paper.json")
# The suffix that `core.models.placement.typed_name` adds.
_TYPE = re.compile(r" \((?:bfloat16|float16)\)$")


@dataclass(frozen=True)
class PublishedColumn:
    """A column of a printed table. `metric` is the name of the corresponding metric in an evaluation, or "" if
    there is none."""

    name: str
    unit: str
    metric: str = ""


@dataclass(frozen=True)
class PublishedRow:
    """A printed row, with a number for each column.

    Numbers are in the unit of their column, or in the row's own `unit` if it is not "". `section` is the heading
    above the row, or whatever distinguishes the row from others of the same name. `dataset`, `evaluator` and `mode`
    are "" unless the row shows one evaluator on a benchmark.
    """

    name: str
    values: tuple[float, ...]
    section: str = ""
    unit: str = ""
    dataset: str = ""
    evaluator: str = ""
    mode: str = ""


@dataclass(frozen=True)
class PublishedTable:
    """A printed table. `label` is its LaTeX label in the paper."""

    label: str
    caption: str
    columns: tuple[PublishedColumn, ...]
    rows: tuple[PublishedRow, ...]


@dataclass(frozen=True)
class PublishedBenchmark:
    """The benchmark behind a published result.

    It consists of the traces read by the importer of this `kind`, or of one `group` of these traces if `group` is
    not "". `errors` is the kind of error that evaluators look for, and `traces` the number of traces.
    """

    kind: str
    group: str
    traces: int
    errors: Errors


@dataclass(frozen=True)
class Published:
    """The published results of one evaluator on one benchmark in one mode. `values` maps metrics to fractions with
    three decimals."""

    table: str
    evaluator: str
    aliases: frozenset[str]
    dataset: str
    benchmark: PublishedBenchmark
    mode: Mode
    values: Mapping[str, float] = field(compare=False)

    def names(self, evaluator: str) -> bool:
        """True if an evaluator called `evaluator` is the published one, whatever the data type of its weights."""
        plain = _TYPE.sub("", evaluator)
        return plain == self.evaluator or plain in self.aliases

    def difference(self, metric: str, number: float) -> float:
        """Return `number` minus the published value of `metric`, rounded to the printed digits. `number` is a
        recomputed value."""
        return round(round(number, 3) - self.values[metric], 3) + 0.0

    def as_json(self) -> dict[str, object]:
        """Return the published values as fractions, together with the place where they are printed."""
        where = {"source": "published", "table": self.table, "dataset": self.dataset}
        what = {"mode": self.mode.value, "errors": self.benchmark.errors.value, "n_traces": self.benchmark.traces}
        return where | {"evaluator": self.evaluator} | what | dict(self.values)


@cache
def reference_tables() -> tuple[PublishedTable, ...]:
    """Return all tables of the paper, in the order of their file names."""
    folder = asset("reference")
    paths = sorted(path for path in folder.glob("*.json") if path.name not in _OTHERS)
    tables = []
    for path in paths:
        body = json.loads(path.read_text(encoding="utf-8"))
        columns = tuple(PublishedColumn(**column) for column in body["columns"])
        rows = tuple(PublishedRow(**row | {"values": tuple(row["values"])}) for row in body["rows"])
        tables.append(PublishedTable(body["label"], body["caption"], columns, rows))
    return tuple(tables)


@cache
def published(kind: str, group: str = "") -> tuple[Published, ...]:
    """Return the published results on the benchmark with this importer kind and group, in the paper's order. A row
    that is printed in several tables appears only once."""
    rows: dict[tuple[str, Mode], Published] = {}
    for row in _rows():
        if (row.benchmark.kind, row.benchmark.group) == (kind, group):
            rows.setdefault((row.evaluator, row.mode), row)
    return tuple(rows.values())


@cache
def _rows() -> list[Published]:
    names = json.loads(asset("reference", _NAMES).read_text(encoding="utf-8"))
    benchmarks = {
        name: PublishedBenchmark(**values | {"errors": Errors(values["errors"])})
        for name, values in names["datasets"].items()
    }
    return [
        Published(
            table=table.label,
            evaluator=row.evaluator,
            aliases=frozenset(names["evaluators"][row.evaluator]),
            dataset=row.dataset,
            benchmark=benchmarks[row.dataset],
            mode=Mode(row.mode),
            values={
                column.metric: round(value / 100, 3)
                for column, value in zip(table.columns, row.values, strict=True)
                if column.metric
            },
        )
        for table in reference_tables()
        for row in table.rows
        if row.evaluator
    ]
