"""Tables of names, counts and values, and their LaTeX, CSV and Markdown.

LaTeX and Markdown are for reading, in percent with intervals; CSV holds the fractions as computed.
"""

from dataclasses import dataclass
from enum import Enum

import numpy as np

from stepsight.core.escaping import inert
from stepsight.core.metrics.bootstrap import Value

Cell = str | int | Value | None
MISSING = "–"
_ENDS = ("low", "high")


class CellKind(Enum):
    """The format of a column's cells: as they are; a count; a fraction in percent; a difference of fractions in
    percentage points, to one place or to two; a number to three places."""

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
    """`key` names it in CSV, `title` for people."""

    key: str
    title: str
    kind: CellKind = CellKind.PERCENT


@dataclass(frozen=True)
class Table:
    """`name` is that of its files. `rules` and `faint` hold row indices: a line is drawn above those in `rules`,
    and those in `faint` were not measured. `notes` say what a reader has to know about the figures. Raises
    `ValueError` unless every row has a cell per column."""

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
    """A cell as displayed: its text, and that of its interval or ""."""

    text: str
    interval: str = ""

    def __str__(self) -> str:
        return f"{self.text} [{self.interval}]" if self.interval else self.text


def show(cell: Cell, kind: CellKind) -> Shown:
    """A cell as displayed; an undefined value is a dash."""
    if isinstance(cell, Value):
        if not cell.exists:
            return Shown(MISSING)
        interval = "" if np.isnan(cell.low) else f"{_number(cell.low, kind)}, {_number(cell.high, kind)}"
        return Shown(_number(cell.number, kind), interval)
    if cell is None:
        return Shown(MISSING)
    return Shown(f"{cell:,}" if isinstance(cell, int) else cell)


def _number(number: float, kind: CellKind) -> str:
    if kind == CellKind.NUMBER:
        return f"{number:.3f}"
    places = 2 if kind == CellKind.FINE_POINTS else 1
    # Adding zero takes the sign from what rounds to nothing.
    rounded = round(100 * number, places) + 0.0
    sign = "+" if kind in (CellKind.POINTS, CellKind.FINE_POINTS) and rounded else ""
    return f"{rounded:{sign}.{places}f}"


def to_csv(table: Table) -> str:
    """A header of keys and a line per row; a value is a fraction with all its digits, and empty if undefined. A
    column of values is followed by `KEY_low` and `KEY_high` if any has an interval. Names that a spreadsheet would
    take for formulas have an apostrophe before them."""
    # Its import takes 60 MB, and a terminal's tables need none of it.
    import pandas as pd

    columns: dict[str, pd.Series] = {}
    for place, column in enumerate(table.columns):
        cells = [row[place] for row in table.rows]
        key = inert(column.key)
        if not column.kind.is_value:
            texts = [inert(cell) if isinstance(cell, str) else cell for cell in cells]
            columns[key] = pd.Series(texts, dtype=object)
            continue
        values = [cell if isinstance(cell, Value) else Value.none("") for cell in cells]
        columns[key] = pd.Series([value.number for value in values], dtype=float)
        if any(not np.isnan(value.low) for value in values):
            columns |= {f"{key}_{end}": pd.Series([getattr(value, end) for value in values]) for end in _ENDS}
    text: str = pd.DataFrame(columns).to_csv(index=False, lineterminator="\n")
    return text


def to_text(table: Table) -> str:
    """The caption, the cells in columns and the notes, for a terminal."""
    rows = [list(table.title), *([str(cell) for cell in row] for row in shown_rows(table))]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    aligned = [f"{'<' if left else '>'}{width}" for width, left in zip(widths, _left(table), strict=True)]
    lines = ["  ".join(map(format, row, aligned)).rstrip() for row in rows]
    return "".join(f"{line}\n" for line in [table.caption, *lines, *(f"  {note}" for note in table.notes)])


def to_markdown(table: Table) -> str:
    """A caption, a pipe table and the notes as a list."""
    head = [_markdown(title) for title in table.title]
    rows = [head, *([_markdown(str(cell)) for cell in row] for row in shown_rows(table))]
    widths = [max(3, *map(len, cells)) for cells in zip(*rows, strict=True)]
    bars = ["-" * (width - 1) + ("-" if left else ":") for width, left in zip(widths, _left(table), strict=True)]
    lines = [
        f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))} |"
        for row in [head, bars, *rows[1:]]
    ]
    notes = "".join(f"- {_markdown(note)}\n" for note in table.notes)
    return "\n".join([_markdown(table.caption), "", *lines]) + "\n" + (f"\n{notes}" if notes else "")


def _left(table: Table) -> list[bool]:
    return [column.kind == CellKind.TEXT for column in table.columns]


def shown_rows(table: Table) -> list[list[Shown]]:
    """The cells as displayed."""
    return [
        [show(cell, column.kind) for cell, column in zip(row, table.columns, strict=True)] for row in table.rows
    ]


def _markdown(text: str) -> str:
    escaped = "".join(f"\\{sign}" if sign in "\\|*_`<" else sign for sign in text)
    return " ".join(escaped.split())


def to_latex(table: Table) -> str:
    """A `table` environment in the style of booktabs, with small intervals behind their values and the notes
    below."""
    import pandas as pd

    cells = pd.DataFrame(
        [[_latex_cell(cell) for cell in row] for row in shown_rows(table)],
        columns=[rf"\textbf{{{escape_latex(title)}}}" for title in table.title],
    )
    spec = "".join("l" if left else "r" for left in _left(table))
    head, body = cells.to_latex(index=False, escape=False, column_format=f"@{{}}{spec}@{{}}").split("\\midrule\n")
    rows = body.splitlines()
    for place in reversed(table.rules):
        rows.insert(place, r"\midrule")
    notes = [rf"\par\smallskip{{\footnotesize {escape_latex(note)}\par}}" for note in table.notes]
    lines = [
        r"\begin{table*}[t]", r"\centering\small", *head.splitlines(), r"\midrule", *rows, *notes,
        rf"\caption{{{escape_latex(table.caption)}}}", rf"\label{{tab:{table.name}}}", r"\end{table*}",
    ]  # fmt: skip
    return "% needs \\usepackage{booktabs}\n" + "\n".join(lines) + "\n"


def _latex_cell(cell: Shown) -> str:
    text = escape_latex(cell.text)
    text = f"${text}$" if text[:1] in "+-" and text[1:2].isdigit() else text
    return rf"{text} {{\scriptsize [{cell.interval}]}}" if cell.interval else text


_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "≥": r"$\geq$", "–": "--", "−": r"$-$", "≤": r"$\leq$", "τ": r"$\tau$", "|": r"\textbar{}",
    "Δ": r"$\Delta$", "ρ": r"$\rho$", "×": r"$\times$", "±": r"$\pm$",
}  # fmt: skip


def escape_latex(text: str) -> str:
    """Text escaped for LaTeX, on one line."""
    return "".join(_LATEX.get(sign, sign) for sign in " ".join(text.split()))
