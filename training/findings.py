"""The findings of an evaluation as tables."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from core.judgment import Mode
from core.metrics.reasoneval import Errors
from core.metrics.value import Value
from core.reference import Published
from storage.evaluators import StoredEvaluator
from training.evaluation import Evaluation, Row
from training.tables import Cell, Column, Kind, Table

PROTOCOL = {"sol_f1": "Sol-F1", "sol_auc": "Sol-AUC", "step_f1": "Step-F1", "step_auc": "Step-AUC"}
THREE_WAY = {
    "accuracy": "Accuracy", "macro_f1": "Macro-F1", "macro_auc": "Macro-AUC",
    "neg_auc": "neg AUC", "neu_auc": "neu AUC", "pos_auc": "pos AUC",
}  # fmt: skip
FIRST_ERRORS = {
    "first_error_accuracy": "First-error accuracy", "processbench_f1": "ProcessBench F1",
    "mr_mcc": "MR-Score, solutions (MCC)",
}  # fmt: skip
CALIBRATION = {"ece": "ECE", "brier": "Brier"}
PRMSCORE = "prmscore"
EVALUATOR = Column("evaluator", "Evaluator", Kind.TEXT)
MODE = Column("mode", "Mode", Kind.TEXT)


def slug(name: str) -> str:
    """A name as part of a file's name."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.") or "dataset"


def ordered(rows: Iterable[Row]) -> list[Row]:
    """Evaluators one after another, each with its modes; the baselines below them."""
    kept = list(rows)
    places = {name: place for place, name in enumerate(dict.fromkeys(row.evaluator for row in kept))}
    return sorted(kept, key=lambda row: (row.is_baseline, places[row.evaluator]))


def measured_on(found: Evaluation) -> str:
    """What was measured on."""
    parts = (found.dataset.name, found.group, "patched" if found.patch else "")
    return ", ".join(part for part in parts if part)


def make_table(
    found: Evaluation,
    name: str,
    caption: str,
    columns: Sequence[Column],
    rows: Iterable[tuple[Row, tuple[Cell, ...]]],
    notes: Iterable[str] = (),
) -> Table:
    """A table whose rows are of rows of the evaluation, with a line before the baselines."""
    kept = list(rows)
    baselines = [i for i, (row, _) in enumerate(kept) if row.is_baseline]
    return Table(
        name=f"{slug(measured_on(found))}-{name}",
        caption=f"{measured_on(found)}: {caption}",
        columns=tuple(columns),
        rows=tuple(cells for _, cells in kept),
        notes=merged(notes),
        rules=tuple(baselines[:1]) if baselines[:1] != [0] else (),
    )


def results(found: Evaluation, mode: Mode, errors: Errors) -> Table:
    """The protocol's four figures for one kind of error, and what an evaluator is above the best baseline. What the
    paper prints and no row recomputes stands below, as published."""
    rows = ordered(row for row in found.rows if (row.mode, row.errors) == (mode, errors))
    columns = [
        EVALUATOR,
        Column("source", "Source", Kind.TEXT),
        *(Column(name, title) for name, title in PROTOCOL.items()),
        Column("beats_baseline_by", "Above best baseline", Kind.POINTS),
        Column("above_baselines", "Beyond its interval", Kind.TEXT),
        Column("n_solutions", "Solutions", Kind.COUNT),
        Column("n_steps", "Steps", Kind.COUNT),
    ]
    cells = [
        (row, (row.evaluator, "measured", *_values(row, PROTOCOL), *_against(row), row.n_solutions, row.n_steps))
        for row in rows
    ]
    printed: list[tuple[Cell, ...]] = [
        (one.evaluator, "published", *_printed(one), None, "", None, None)
        for one in found.published
        if (one.mode, one.benchmark.errors) == (mode, errors)
    ]
    told = notes(rows, PROTOCOL, found.traces)
    told += [
        f"{one.evaluator}: published in {one.table}, not measured here"
        for one in found.published
        if (one.mode, one.benchmark.errors) == (mode, errors)
    ]
    caption = f"{errors} errors, {mode}, {found.size}, in percent with 95 % intervals over traces"
    table = make_table(found, f"{errors}-{mode}", caption, columns, cells, told)
    start = len(table.rows)
    return replace(
        table,
        rows=table.rows + tuple(printed),
        rules=table.rules + ((start,) if printed else ()),
        faint=tuple(range(start, start + len(printed))),
    )


def _printed(one: Published) -> tuple[Value, ...]:
    """What the paper prints, by figure of the protocol."""
    none = Value.none("not published")
    return tuple(Value(one.values[name]) if name in one.values else none for name in PROTOCOL)


def published(found: Evaluation, errors: Errors) -> Table | None:
    """What is printed of the rows that were measured again, and the measured figure minus the printed one; None
    where nothing is."""
    rows = [row for row in ordered(found.rows) if row.errors == errors and row.published]
    columns = [EVALUATOR, MODE, Column("table", "Table", Kind.TEXT)]
    for name, shown in PROTOCOL.items():
        columns += [
            Column(name, f"{shown}, published"),
            Column(f"{name}_difference", "Measured minus it", Kind.POINTS),
        ]
    cells = []
    for row in rows:
        one = row.published
        if one is None:
            continue
        pairs = [(value, _off(row, one, name)) for name, value in zip(PROTOCOL, _printed(one), strict=True)]
        cells.append((row, (row.evaluator, row.mode.value, one.table, *(cell for pair in pairs for cell in pair))))
    caption = f"{errors} errors, beside what the paper prints, to its last digit"
    return make_table(found, f"{errors}-published", caption, columns, cells) if cells else None


def _off(row: Row, one: Published, name: str) -> Value:
    measured = row.measured[name].value
    if name not in one.values or not measured.exists:
        return Value.none(measured.reason or "not published")
    return Value(one.difference(name, measured.number))


def _values(row: Row, names: Iterable[str]) -> tuple[Value, ...]:
    none = Value.none("")
    return tuple(row.measured[name].value if name in row.measured else none for name in names)


def _against(row: Row) -> tuple[Value | None, str]:
    if row.is_baseline or not row.beats.exists:
        return None, ""
    return row.beats, "yes" if row.above_baselines else "no"


def notes(rows: Sequence[Row], names: Iterable[str], traces: int) -> list[str]:
    """Why figures of evaluators are missing, on what thresholds they rest, and which are of some of the traces."""
    found: list[str] = []
    chosen = list(names)
    for row in rows:
        reasons = {value.reason for value in _values(row, chosen)} - {""}
        found += [f"{row.evaluator}: {reason}" for reason in sorted(reasons) if not row.is_baseline]
        if row.n_traces < traces:
            found.append(f"{row.evaluator}: {row.n_traces:,} of {traces:,} traces judged")
        if row.on_thresholds:
            found.append(f"{row.evaluator}: {row.on_thresholds}")
    return found


def merged(notes: Iterable[str]) -> tuple[str, ...]:
    """One note for all evaluators of which the same is to be told; a note is `NAME: REASON`, or a sentence."""
    by_reason: dict[str, dict[str, None]] = {}
    for note in notes:
        names, separator, reason = note.rpartition(": ")
        by_reason.setdefault(reason, {}).update({names: None} if separator else {})
    return tuple(f"{', '.join(names)}: {reason}" if names else reason for reason, names in by_reason.items())


def measures(found: Evaluation, name: str, caption: str, titles: Mapping[str, str], kind: Kind) -> Table | None:
    """Other figures, of every mode; those without a value are left out with the reason. None where none has one."""
    rows = [row for row in ordered(subjects(found)) if any(value.exists for value in _values(row, titles))]
    shown = [key for key in titles if any(_values(row, [key])[0].exists for row in rows)]
    if not shown:
        return None
    columns = [EVALUATOR, MODE, *(Column(key, titles[key], kind) for key in shown)]
    cells = [(row, (row.evaluator, row.mode.value, *_values(row, shown))) for row in rows]
    told = notes(rows, shown, found.traces) + why_missing(found, {k: titles[k] for k in titles if k not in shown})
    return make_table(found, name, caption, columns, cells, told)


def why_missing(found: Evaluation, titles: Mapping[str, str]) -> list[str]:
    """Of figures that no row has a value of, the reasons that the rows give."""
    told = []
    for key, title in titles.items():
        reasons = {_values(row, [key])[0].reason for row in found.rows} - {""}
        told += [f"{title}: {reason}" for reason in sorted(reasons)[:1]]
    return list(merged(told))


def prm_titles(found: Evaluation) -> dict[str, str]:
    """The titles of PRMScore and its parts, where the benchmark has them."""
    keys = dict.fromkeys(key for row in found.rows for key in row.measured if key.startswith(PRMSCORE))
    return {key: key.removeprefix(PRMSCORE).strip("_").replace("_", " ") or "PRMScore" for key in keys}


def subjects(found: Evaluation) -> list[Row]:
    """One row per evaluator and mode: the first, which carries what is of no kind of error."""
    first: dict[tuple[str, Mode], Row] = {}
    for row in found.rows:
        first.setdefault((row.evaluator, row.mode), row)
    return list(first.values())


def scored_rows(found: Evaluation, mode: Mode) -> list[Row]:
    """One row per evaluator that says something of steps in a mode."""
    return [row for row in ordered(subjects(found)) if row.mode == mode and row.subject.outputs.has_steps]


def judges(evaluators: Sequence[StoredEvaluator]) -> Table:
    """Who judged: what an evaluator is, and the fingerprint that tells it from others of its name."""
    keys = {"name": "Evaluator", "format": "Format", "attention": "Attention", "outputs": "Gives",
            "fingerprint": "Fingerprint"}  # fmt: skip
    columns = tuple(Column(key, title, Kind.TEXT) for key, title in keys.items())
    rows = tuple((one.name, one.format, one.attention, one.outputs.value, one.fingerprint) for one in evaluators)
    return Table("evaluators", "The evaluators of this report", columns, rows)
