"""A table: rows of names, counts and values, written as LaTeX, CSV and Markdown.

LaTeX and Markdown are for reading, in percent with intervals; CSV holds the fractions as they were computed.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from stepsight.core.files import inert
from stepsight.core.metrics.value import Value

Cell = str | int | Value | None
MISSING = "–"


class Kind(Enum):
    """How the cells of a column are shown: as they are; a count; a fraction in percent; a difference of fractions
    in percentage points, to one place or to two; a number to three places."""

    TEXT = "text"
    COUNT = "count"
    PERCENT = "percent"
    POINTS = "points"
    FINE_POINTS = "fine points"
    NUMBER = "number"

    @property
    def is_value(self) -> bool:
        return self not in (Kind.TEXT, Kind.COUNT)


@dataclass(frozen=True)
class Column:
    """`key` names it in CSV, `title` for people."""

    key: str
    title: str
    kind: Kind = Kind.PERCENT


@dataclass(frozen=True)
class Table:
    """`name` is that of its files. Rows are told by their places: a line is drawn before those in `rules`, and
    those in `faint` were not measured. `notes` say what a reader has to know of the figures. Raises `ValueError`
    where a row has not a cell per column."""

    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    rules: tuple[int, ...] = ()
    faint: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"{len(row)} cells for {len(self.columns)} columns of {self.name}")

    @property
    def title(self) -> tuple[str, ...]:
        return tuple(column.title for column in self.columns)


@dataclass(frozen=True)
class Shown:
    """A cell for reading: its text, and that of its interval or ""."""

    text: str
    interval: str = ""

    def __str__(self) -> str:
        return f"{self.text} [{self.interval}]" if self.interval else self.text


def show(cell: Cell, kind: Kind) -> Shown:
    """A cell as a person reads it; what has no value is a dash."""
    if isinstance(cell, Value):
        if not cell.exists:
            return Shown(MISSING)
        interval = "" if np.isnan(cell.low) else f"{_number(cell.low, kind)}, {_number(cell.high, kind)}"
        return Shown(_number(cell.number, kind), interval)
    if cell is None:
        return Shown(MISSING)
    return Shown(f"{cell:,}" if isinstance(cell, int) else cell)


def _number(number: float, kind: Kind) -> str:
    if kind == Kind.NUMBER:
        return f"{number:.3f}"
    places = 2 if kind == Kind.FINE_POINTS else 1
    # Adding zero takes the sign from what rounds to nothing.
    rounded = round(100 * number, places) + 0.0
    sign = "+" if kind in (Kind.POINTS, Kind.FINE_POINTS) and rounded else ""
    return f"{rounded:{sign}.{places}f}"


def to_csv(table: Table) -> str:
    """A header of keys and a row per row; a value is a fraction with all its digits, and empty where there is none.
    A column of values is followed by `KEY_low` and `KEY_high` where any has an interval. Names that a spreadsheet
    would take for formulas have an apostrophe before them."""
    columns = list(zip(table.columns, zip(*table.rows, strict=True), strict=True)) if table.rows else []
    parts = [_csv_columns(column, cells) for column, cells in columns]
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    keys = [key for keys, _ in parts for key in keys] or [column.key for column in table.columns]
    writer.writerow([inert(key) for key in keys])
    for number in range(len(table.rows)):
        writer.writerow([cell for _, cells in parts for cell in cells[number]])
    return lines.getvalue()


def _csv_columns(column: Column, cells: Sequence[Cell]) -> tuple[list[str], list[list[str]]]:
    """The keys of a column, and for each row its cells."""
    if not column.kind.is_value:
        return [column.key], [["" if cell is None else inert(str(cell))] for cell in cells]
    values = [cell if isinstance(cell, Value) else Value.none("") for cell in cells]
    if all(np.isnan(value.low) for value in values):
        return [column.key], [[_digits(value.number)] for value in values]
    keys = [column.key, f"{column.key}_low", f"{column.key}_high"]
    return keys, [[_digits(value.number), _digits(value.low), _digits(value.high)] for value in values]


def _digits(number: float) -> str:
    return "" if np.isnan(number) else repr(float(number))


def to_markdown(table: Table) -> str:
    """A caption, a pipe table and the notes as a list."""
    cells = [[_markdown(str(cell)) for cell in row] for row in _text(table)]
    widths = [max(3, *(len(row[i]) for row in cells)) for i in range(len(table.columns))]
    bars = [
        "-" * width if left else "-" * (width - 1) + ":" for width, left in zip(widths, _left(table), strict=True)
    ]
    rows = [cells[0], bars, *cells[1:]]
    lines = [f"| {' | '.join(cell.ljust(w) for cell, w in zip(row, widths, strict=True))} |" for row in rows]
    notes = "".join(f"- {_markdown(note)}\n" for note in table.notes)
    return "\n".join([_markdown(table.caption), "", *lines]) + "\n" + (f"\n{notes}" if notes else "")


def _left(table: Table) -> list[bool]:
    return [column.kind == Kind.TEXT for column in table.columns]


def _text(table: Table) -> Iterable[Sequence[str | Shown]]:
    yield table.title
    for row in table.rows:
        yield [show(cell, column.kind) for cell, column in zip(row, table.columns, strict=True)]


def _markdown(text: str) -> str:
    escaped = "".join(f"\\{sign}" if sign in "\\|*_`<" else sign for sign in text)
    return " ".join(escaped.split())


def to_latex(table: Table) -> str:
    """A `table` environment in the manner of booktabs, intervals small behind their values, the notes below."""
    spec = "".join("l" if left else "r" for left in _left(table))
    head, *body = [" & ".join(_latex_cell(cell) for cell in row) + r" \\" for row in _text(table)]
    rows = [line for i, row in enumerate(body) for line in ([r"\midrule"] if i in table.rules else []) + [row]]
    notes = [rf"\par\smallskip{{\footnotesize {escape_latex(note)}\par}}" for note in table.notes]
    lines = [
        r"\begin{table*}[t]", r"\centering\small", rf"\begin{{tabular}}{{@{{}}{spec}@{{}}}}",
        r"\toprule", head, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}", *notes,
        rf"\caption{{{escape_latex(table.caption)}}}", rf"\label{{tab:{table.name}}}", r"\end{table*}",
    ]  # fmt: skip
    return "% needs \\usepackage{booktabs}\n" + "\n".join(lines) + "\n"


def _latex_cell(cell: str | Shown) -> str:
    if isinstance(cell, str):
        return rf"\textbf{{{escape_latex(cell)}}}"
    text = escape_latex(cell.text)
    text = f"${text}$" if text[:1] in "+-" and text[1:2].isdigit() else text
    return rf"{text} {{\scriptsize [{cell.interval}]}}" if cell.interval else text


_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "≥": r"$\geq$", "–": "--", "−": r"$-$", "τ": r"$\tau$", "|": r"\textbar{}",
}  # fmt: skip


def escape_latex(text: str) -> str:
    """Text as LaTeX shows it, on one line."""
    return "".join(_LATEX.get(sign, sign) for sign in " ".join(text.split()))
