"""Tables of a stress test: the figures of each evaluator and transform."""

from collections.abc import Mapping, Sequence

from stepsight.training.report.tables import Cell, CellKind, Column, Table
from stepsight.training.stress.measure import StressFigures
from stepsight.training.stress.variant import Demand

_CAPTIONS = {
    Demand.CHANGE: "a step was made wrong: the share whose verdict turned",
    Demand.STAY: "nothing was made wrong: the share of steps whose verdict stayed",
}
_TITLES = {Demand.CHANGE: "turned", Demand.STAY: "stayed"}


def stress_tables(figures: Mapping[str, Sequence[StressFigures]], traces: int) -> list[Table]:
    """Return a table for each demand, with a row for each transform and evaluator. `figures` holds the figures of
    every transform by evaluator, all of the same `traces`. A transform that changed nothing is left out."""
    return [table for demand in Demand if (table := _table(demand, figures, traces)) is not None]


def _table(demand: Demand, figures: Mapping[str, Sequence[StressFigures]], traces: int) -> Table | None:
    columns = [
        Column("transform", "transform", CellKind.TEXT),
        Column("evaluator", "evaluator", CellKind.TEXT),
        Column("as_demanded", _TITLES[demand]),
        *([Column("fall", "fall", CellKind.POINTS)] if demand == Demand.CHANGE else []),
        Column("elsewhere", "moved elsewhere"),
        Column("inflation", "inflation", CellKind.POINTS),
        Column("steps", "steps", CellKind.COUNT),
        Column("variants", "variants", CellKind.COUNT),
    ]
    rows: list[tuple[Cell, ...]] = []
    rules: list[int] = []
    empty: list[str] = []
    for place, transform in enumerate(one.transform for one in next(iter(figures.values()), ())):
        if transform.demand != demand:
            continue
        found = {name: of[place] for name, of in figures.items() if of[place].variants}
        if not found:
            empty.append(transform.name)
            continue
        if rows:
            rules.append(len(rows))
        for name, one in found.items():
            fall: list[Cell] = [one.fall] if demand == Demand.CHANGE else []
            rows.append(
                (
                    transform.name,
                    name,
                    one.as_demanded,
                    *fall,
                    one.elsewhere,
                    one.inflation,
                    one.steps,
                    one.variants,
                )
            )
    notes = [f"Of {traces:,} traces. Intervals are 95 % bootstrap intervals over traces."]
    if empty:
        notes.append(f"Nothing to change for {', '.join(empty)}.")
    name = f"stress-{demand.name.lower()}"
    return Table(name, _CAPTIONS[demand], tuple(columns), tuple(rows), tuple(notes), tuple(rules)) if rows else None
