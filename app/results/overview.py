"""The overview of results: one figure of every evaluator on every dataset that is measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal
from urllib.parse import urlencode

from stepsight.app.results.computations import Pending
from stepsight.app.results.measured import Differences, Measured, Results
from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.core.metrics.baselines import PREFIX
from stepsight.core.metrics.published import Published
from stepsight.core.metrics.reasoneval import Errors
from stepsight.core.metrics.value import Value
from stepsight.storage.traces.queries import Dataset
from stepsight.training.evaluate.evaluation import Row
from stepsight.training.report.html import breakable, table_html
from stepsight.training.report.results import EVALUATOR, PROTOCOL, measured_on, merged, notes, slug
from stepsight.training.report.tables import Cell, CellKind, Column, Table, show

Figure = Literal["step_auc", "step_f1", "sol_auc", "sol_f1"]

FIGURES: tuple[Figure, ...] = ("step_auc", "step_f1", "sol_auc", "sol_f1")
_NONE = Value.none("")


@dataclass(frozen=True, eq=False)
class Place:
    """A column: a dataset with a kind of error, in the mode that is shown, which is online where offline figures
    mean nothing. `minus` is of the chosen reference."""

    measured: Measured
    mode: Mode
    errors: Errors
    minus: Differences

    @property
    def name(self) -> str:
        return measured_on(self.measured.evaluation)

    @property
    def title(self) -> str:
        return f"{self.name}, {self.told}"

    @property
    def told(self) -> str:
        """What is measured of it."""
        online = ", online" if self.measured.evaluation.warning else ""
        return f"{self.errors} errors, {self.measured.evaluation.size}{online}"

    @property
    def rows(self) -> Mapping[str, Row]:
        """The rows that were measured, by evaluator."""
        found = self.measured.evaluation.rows
        return {row.evaluator: row for row in found if (row.mode, row.errors) == (self.mode, self.errors)}

    @property
    def printed(self) -> Mapping[str, Published]:
        """What is published and no row recomputes, by evaluator."""
        found = self.measured.evaluation.published
        return {one.evaluator: one for one in found if (one.mode, one.benchmark.errors) == (self.mode, self.errors)}

    def difference(self, evaluator: str, figure: Figure) -> Value:
        """The evaluator minus the reference."""
        return self.minus.get((evaluator, self.mode, self.errors), {}).get(figure, _NONE)


@dataclass(frozen=True)
class Line:
    """A row: an evaluator, measured here or only published."""

    evaluator: str
    published: bool = False


@dataclass(frozen=True)
class Overview:
    """The columns that can be shown; what readers must know of them; why other datasets have none; and those that
    are still to be measured."""

    places: Sequence[Place]
    warnings: Sequence[str]
    told: Sequence[str]
    waiting: Sequence[Dataset]


def gather(results: Results, datasets: Sequence[Dataset], mode: Mode, reference: str = "") -> Overview:
    """What is measured of the datasets, with the differences to the reference, if there is one. One dataset at a
    time is set going, so that who asks for a single one does not wait for all."""
    places: list[Place] = []
    warnings: dict[str, None] = {}
    told: list[str] = []
    waiting: list[Dataset] = []
    for dataset in datasets:
        try:
            found = _measured(results, dataset, reference, busy=bool(waiting))
        except UserError as error:
            told.append(str(error))
            continue
        if isinstance(found, Pending):
            waiting.append(dataset)
        elif not found[0].has_gold:
            told.append(f"{dataset.name} has no gold to measure against.")
        else:
            measured, minus = found
            shown = mode if mode in measured.modes or not measured.evaluation.warning else measured.modes[0]
            places += [Place(measured, shown, errors, minus) for errors in measured.kinds]
            warnings |= {measured.evaluation.warning: None} if measured.evaluation.warning else {}
    return Overview(places, list(warnings), told, waiting)


def _measured(
    results: Results, dataset: Dataset, reference: str, *, busy: bool
) -> tuple[Measured, Differences] | Pending:
    if busy and not results.is_measured(dataset):
        return Pending()
    measured = results.measure(dataset)
    if isinstance(measured, Pending) or not reference:
        return Pending() if isinstance(measured, Pending) else (measured, {})
    minus = results.minus(measured, reference)
    return Pending() if isinstance(minus, Pending) else (measured, minus)


def lines_of(places: Sequence[Place]) -> list[Line]:
    """Evaluators by name, then the baselines, then what is only published."""
    names = dict.fromkeys(name for place in places for name in place.rows)
    measured = sorted(names, key=lambda name: (name.startswith(PREFIX), "" if name.startswith(PREFIX) else name))
    printed = dict.fromkeys(name for place in places for name in place.printed)
    return [Line(name) for name in measured] + [Line(name, published=True) for name in printed]


def overview_table(places: Sequence[Place], figure: Figure, mode: Mode, reference: str = "") -> Table:
    """The figure of every evaluator on every dataset; beside each the difference to the reference, if there is one.
    What is published stands in rows of its own."""
    lines = lines_of(places)
    columns = [EVALUATOR, Column("source", "Source", CellKind.TEXT)]
    for place in places:
        key = f"{slug(place.name)}-{place.errors}"
        columns.append(Column(key, place.title))
        if reference:
            columns.append(Column(f"{key}-minus", f"minus {reference}", CellKind.POINTS))
    published = [i for i, line in enumerate(lines) if line.published]
    baselines = [i for i, line in enumerate(lines) if line.evaluator.startswith(PREFIX)]
    return Table(
        name=f"overview-{figure.replace('_', '-')}-{mode}",
        caption=f"{PROTOCOL[figure]}, {mode}, in percent with 95 % intervals over traces",
        columns=tuple(columns),
        rows=tuple(_cells(line, places, figure, reference) for line in lines),
        notes=merged(note for place in places for note in _notes(place, figure)),
        rules=tuple(i for i in [*baselines[:1], *published[:1]] if i),
        faint=tuple(published),
    )


def _cells(line: Line, places: Sequence[Place], figure: Figure, reference: str) -> tuple[Cell, ...]:
    cells: list[Cell] = [line.evaluator, "published" if line.published else "measured"]
    for place in places:
        cells.append(_value(line, place, figure))
        if reference:
            cells.append(_NONE if line.published else place.difference(line.evaluator, figure))
    return tuple(cells)


def _value(line: Line, place: Place, figure: Figure) -> Value:
    if line.published:
        one = place.printed.get(line.evaluator)
        return Value(one.values[figure]) if one is not None and figure in one.values else _NONE
    row = place.rows.get(line.evaluator)
    return row.measured[figure].value if row is not None else _NONE


def _notes(place: Place, figure: Figure) -> list[str]:
    """What qualifies the figures of a column, by evaluator and dataset."""
    told = []
    for note in notes(list(place.rows.values()), [figure], place.measured.evaluation.traces):
        evaluator, _, reason = note.rpartition(": ")
        told.append(f"{evaluator} on {place.name}: {reason}")
    return told


def overview_html(places: Sequence[Place], figure: Figure, mode: Mode, reference: str, files: str) -> str:
    """The table as HTML: each figure leads to its dataset, with its difference and its marks below it."""
    table = overview_table(places, figure, mode)
    lines = lines_of(places)

    def wrap(row: int, column: int, html: str) -> str:
        if column < 2:
            return html
        place = places[column - 2]
        if row < 0:
            return _head(place)
        return html + _below(lines[row], place, figure, reference)

    return table_html(table, wrap, files)


def _head(place: Place) -> str:
    name = escape(f"{place.name}, {place.errors} errors")
    link = f'<a data-go href="{_url(place)}" aria-label="{name}">{breakable(place.name)}</a>'
    return f"{link}<small>{escape(place.told)}</small>"


def _below(line: Line, place: Place, figure: Figure, reference: str) -> str:
    row = place.rows.get(line.evaluator)
    if line.published or row is None:
        return ""
    told = []
    change = place.difference(line.evaluator, figure)
    if reference and change.exists:
        told.append(("minus", f"{show(change, CellKind.POINTS)}"))
    if row.published is not None and figure in row.published.values:
        told.append(("printed", f"published {show(Value(row.published.values[figure]), CellKind.PERCENT)}"))
    if not row.is_baseline and row.beats.exists and not row.above_baselines:
        where = "" if row.beats_in == figure else f" in {PROTOCOL[row.beats_in]}"
        told.append(("mark", f"≤ best baseline{where}"))
    if row.chosen_here:
        told.append(("mark", "thresholds chosen here"))
    return "".join(f'<small class="{kind}">{escape(text)}</small>' for kind, text in told)


def _url(place: Place) -> str:
    query = {"dataset": place.measured.evaluation.dataset.name, "mode": place.mode, "errors": place.errors}
    return escape(f"/results?{urlencode(query)}")
