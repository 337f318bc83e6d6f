"""Tables of names, counts and values, and how they are written: as text, LaTeX and Markdown in percent with
intervals, as CSV in fractions with all digits, and as JSON.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from stepsight.core.escaping import csv_text, escape_markdown
from stepsight.core.metrics.bootstrap import Value

Cell = str | int | Value | None
MISSING = "–"


class CellKind(Enum):
    """The ways in which the cells of a column are displayed.

    `TEXT` is shown as it is, and `COUNT` as an integer. `PERCENT` is a fraction shown in percent. `POINTS` and
    `FINE_POINTS` are differences of fractions, shown in percentage points with one or two decimal places. `NUMBER`
    has three decimal places.
    """

    TEXT = "text"
    COUNT = "count"
    PERCENT = "percent"
    POINTS = "points"
    FINE_POINTS = "fine points"
    NUMBER = "number"

    @property
    def is_value(self) -> bool:
        return self not in (CellKind.TEXT, CellKind.COUNT)


@dataclass(frozen=True)
class Column:
    """A column of a table. `key` is its name in CSV files, and `title` is its displayed heading."""

    key: str
    title: str
    kind: CellKind = CellKind.PERCENT


@dataclass(frozen=True)
class Table:
    """A table with its caption and notes.

    `name` is used in the names of its files. `rules` and `faint` hold row indices: a line is drawn above each row
    in `rules`, and rows in `faint` are shown as not measured. `notes` tell the reader how to understand the
    figures. Raises `ValueError` unless every row has a cell for each column.
    """

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


def table_of(
    name: str,
    caption: str,
    rows: Sequence[Mapping[Column, Cell]],
    notes: Sequence[str] = (),
    rules: Sequence[int] = (),
    faint: Sequence[int] = (),
    least: Sequence[Column] = (),
) -> Table:
    """Return a table of rows that map columns to cells. The columns are those of all rows, in order, and those in
    `least`; a cell that a row lacks is empty."""
    columns = tuple(dict.fromkeys([*(column for row in rows for column in row), *least]))
    values = tuple(tuple(row.get(column) for column in columns) for row in rows)
    return Table(name, caption, columns, values, tuple(notes), tuple(rules), tuple(faint))


@dataclass(frozen=True)
class Shown:
    """A cell as displayed: the text of its value, and its interval as `[low, high]`, or "" without one."""

    text: str
    interval: str = ""

    def __str__(self) -> str:
        return f"{self.text} {self.interval}" if self.interval else self.text

    @property
    def with_minus(self) -> "Shown":
        """The same with minus signs in place of hyphens, for a page. The cell must be a number."""
        return Shown(self.text.replace("-", "−"), self.interval.replace("-", "−"))


def slug(name: str) -> str:
    """Turn a name into text that is safe in a file name."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.") or "dataset"


def show(cell: Cell, kind: CellKind) -> Shown:
    """Return a cell as displayed. An undefined value becomes a dash."""
    if isinstance(cell, Value):
        if not cell.exists:
            return Shown(MISSING)
        interval = "" if np.isnan(cell.low) else f"[{_number(cell.low, kind)}, {_number(cell.high, kind)}]"
        return Shown(_number(cell.number, kind), interval)
    if cell is None:
        return Shown(MISSING)
    return Shown(f"{cell:,}" if isinstance(cell, int) else cell)


def _number(number: float, kind: CellKind) -> str:
    if kind == CellKind.NUMBER:
        return f"{number:.3f}"
    places = 2 if kind == CellKind.FINE_POINTS else 1
    # Adding zero removes the sign of a negative zero.
    rounded = round(100 * number, places) + 0.0
    sign = "+" if kind in (CellKind.POINTS, CellKind.FINE_POINTS) and rounded else ""
    return f"{rounded:{sign}.{places}f}"


def to_text(table: Table) -> str:
    """Return a table as text for a terminal: the caption, the aligned columns, and the notes."""
    rows = [list(table.title), *([str(cell) for cell in row] for row in shown_rows(table))]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    aligned = [f"{'<' if left else '>'}{width}" for width, left in zip(widths, left_aligned(table), strict=True)]
    lines = ["  ".join(map(format, row, aligned)).rstrip() for row in rows]
    return "".join(f"{line}\n" for line in [table.caption, *lines, *(f"  {note}" for note in table.notes)])


def left_aligned(table: Table) -> list[bool]:
    return [column.kind == CellKind.TEXT for column in table.columns]


def shown_rows(table: Table) -> list[list[Shown]]:
    """Return the rows of a table with their cells as displayed."""
    return [
        [show(cell, column.kind) for cell, column in zip(row, table.columns, strict=True)] for row in table.rows
    ]


def rows_as_json(table: Table) -> list[dict[str, object]]:
    """Return the rows of a table as JSON values, by the keys of its columns."""
    keys = [column.key for column in table.columns]
    return [
        {key: cell.as_json() if isinstance(cell, Value) else cell for key, cell in zip(keys, row, strict=True)}
        for row in table.rows
    ]


_ENDS = ("low", "high")


def to_csv(table: Table) -> str:
    """Return a table as CSV, with the keys of the columns in the first line.

    Values are fractions with all their digits, or empty if undefined. If any value in a column has an interval, the
    columns `KEY_low` and `KEY_high` follow. A name that a spreadsheet would interpret as a formula is preceded by
    an apostrophe.
    """
    columns: dict[str, list[object]] = {}
    for place, column in enumerate(table.columns):
        cells = [row[place] for row in table.rows]
        if not column.kind.is_value:
            columns[column.key] = list(cells)
            continue
        values = [cell if isinstance(cell, Value) else Value.none("") for cell in cells]
        columns[column.key] = [_none_if_nan(value.number) for value in values]
        if any(not np.isnan(value.low) for value in values):
            for end in _ENDS:
                columns[f"{column.key}_{end}"] = [_none_if_nan(getattr(value, end)) for value in values]
    return csv_text([tuple(columns), *zip(*columns.values(), strict=True)], line_end="\n")


def _none_if_nan(number: float) -> float | None:
    return None if np.isnan(number) else number


def to_markdown(table: Table) -> str:
    """Return a table as Markdown: the caption, a pipe table, and the notes as a list."""
    head = [escape_markdown(title) for title in table.title]
    rows = [head, *([escape_markdown(str(cell)) for cell in row] for row in shown_rows(table))]
    widths = [max(3, *map(len, cells)) for cells in zip(*rows, strict=True)]
    bars = [
        "-" * (width - 1) + ("-" if left else ":") for width, left in zip(widths, left_aligned(table), strict=True)
    ]
    lines = [
        f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))} |"
        for row in [head, bars, *rows[1:]]
    ]
    notes = "".join(f"- {escape_markdown(note)}\n" for note in table.notes)
    return "\n".join([escape_markdown(table.caption), "", *lines]) + "\n" + (f"\n{notes}" if notes else "")


def to_latex(table: Table) -> str:
    """Return a table as a LaTeX `table` environment in the style of booktabs.

    Intervals are in small type after their values, and the notes are below the table.
    """
    titles = [rf"\textbf{{{escape_latex(title)}}}" for title in table.title]
    head, *rows = (
        rf"{' & '.join(cells)} \\" for cells in [titles, *(map(_latex_cell, row) for row in shown_rows(table))]
    )
    spec = "".join("l" if left else "r" for left in left_aligned(table))
    for place in reversed(table.rules):
        rows.insert(place, r"\midrule")
    notes = [rf"\par\smallskip{{\footnotesize {escape_latex(note)}\par}}" for note in table.notes]
    lines = [
        r"\begin{table*}[t]", r"\centering\small", rf"\begin{{tabular}}{{@{{}}{spec}@{{}}}}", r"\toprule", head,
        r"\midrule", *rows, r"\bottomrule", r"\end{tabular}", *notes,
        rf"\caption{{{escape_latex(table.caption)}}}", rf"\label{{tab:{table.name}}}", r"\end{table*}",
    ]  # fmt: skip
    return "% needs \\usepackage{booktabs}\n" + "\n".join(lines) + "\n"


def _latex_cell(cell: Shown) -> str:
    text = escape_latex(cell.text)
    text = f"${text}$" if text[:1] in "+-" and text[1:2].isdigit() else text
    return rf"{text} {{\scriptsize {cell.interval}}}" if cell.interval else text


_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "≥": r"$\geq$", "–": "--", "−": r"$-$", "≤": r"$\leq$", "τ": r"$\tau$", "|": r"\textbar{}",
    "Δ": r"$\Delta$", "ρ": r"$\rho$", "×": r"$\times$", "±": r"$\pm$",
}  # fmt: skip


def escape_latex(text: str) -> str:
    """Escape text for LaTeX, with all white space reduced to single spaces."""
    return "".join(_LATEX.get(sign, sign) for sign in " ".join(text.split()))
