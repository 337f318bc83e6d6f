"""Writing tables as LaTeX and Markdown, in percent with intervals, and as CSV, in fractions with all digits.

Tables for a terminal are written by the module `tables`.
"""

import numpy as np

from stepsight.core.escaping import csv_text, escape_markdown
from stepsight.core.metrics.bootstrap import Value
from stepsight.training.report.tables import Shown, Table, left_aligned, shown_rows

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
        columns[column.key] = [_defined(value.number) for value in values]
        if any(not np.isnan(value.low) for value in values):
            for end in _ENDS:
                columns[f"{column.key}_{end}"] = [_defined(getattr(value, end)) for value in values]
    return csv_text([tuple(columns), *zip(*columns.values(), strict=True)], line_end="\n")


def _defined(number: float) -> float | None:
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
    return rf"{text} {{\scriptsize [{cell.interval}]}}" if cell.interval else text


_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "≥": r"$\geq$", "–": "--", "−": r"$-$", "≤": r"$\leq$", "τ": r"$\tau$", "|": r"\textbar{}",
    "Δ": r"$\Delta$", "ρ": r"$\rho$", "×": r"$\times$", "±": r"$\pm$",
}  # fmt: skip


def escape_latex(text: str) -> str:
    """Escape text for LaTeX, with all white space reduced to single spaces."""
    return "".join(_LATEX.get(sign, sign) for sign in " ".join(text.split()))
