import csv
import io

import pytest

from stepsight.core.metrics.bootstrap import Value
from stepsight.training.report.table_files import escape_latex, to_csv, to_latex, to_markdown
from stepsight.training.report.tables import CellKind, Column, Table, show
from tests.cases import each

TABLE = Table(
    name="some-table",
    caption="a_b: 95 % of it",
    columns=(
        Column("evaluator", "Evaluator", CellKind.TEXT),
        Column("f1", "F1"),
        Column("gain", "Gain", CellKind.POINTS),
        Column("ece", "ECE", CellKind.NUMBER),
        Column("steps", "Steps", CellKind.COUNT),
    ),
    rows=(
        ("mini_bidir|x", Value(2 / 3).within(0.5, 0.75), Value(-0.0321), Value(0.0625), 1234),
        ("100% & <co>", Value.none("there is nothing"), Value(0.5), Value.none("x"), None),
    ),
    notes=("mini_bidir: 3 of 4",),
    rules=(1,),
)


@each(
    "cell, kind, text",
    [
        (Value(0.7804), CellKind.PERCENT, "78.0"),
        (Value(0.7804).within(0.7, 0.8556), CellKind.PERCENT, "78.0 [70.0, 85.6]"),
        (Value(0.0321), CellKind.POINTS, "+3.2"),
        (Value(-0.00001), CellKind.POINTS, "0.0"),
        (Value(0.0625), CellKind.NUMBER, "0.062"),
        (Value.none("why"), CellKind.PERCENT, "–"),
        (None, CellKind.COUNT, "–"),
        (12345, CellKind.COUNT, "12,345"),
        ("a_b", CellKind.TEXT, "a_b"),
    ],
)
def test_cells_for_reading(cell, kind, text):
    assert str(show(cell, kind)) == text


def test_csv_gives_back_every_digit():
    rows = list(csv.DictReader(io.StringIO(to_csv(TABLE).removeprefix("\ufeff"))))
    assert [row["evaluator"] for row in rows] == ["mini_bidir|x", "100% & <co>"]
    assert float(rows[0]["f1"]) == 2 / 3
    assert (float(rows[0]["f1_low"]), float(rows[0]["f1_high"])) == (0.5, 0.75)
    assert float(rows[0]["gain"]) == -0.0321
    assert rows[0]["steps"] == "1234"
    # What has no value is empty, never 0.
    assert (rows[1]["f1"], rows[1]["f1_low"], rows[1]["ece"], rows[1]["steps"]) == ("", "", "", "")
    # Without an interval there is no column for it.
    assert list(rows[0]) == ["evaluator", "f1", "f1_low", "f1_high", "gain", "ece", "steps"]


def test_markdown_has_a_row_of_as_many_cells_for_each_row():
    lines = to_markdown(TABLE).splitlines()
    assert lines[0] == "a\\_b: 95 % of it"
    body = [line for line in lines if line.startswith("|")]
    assert len(body) == 2 + len(TABLE.rows)
    assert {line.replace("\\|", "").count("|") for line in body} == {len(TABLE.columns) + 1}
    assert len({len(line) for line in body}) == 1
    assert [cell.strip() for cell in body[2].replace("\\|", "/").split("|")[1:-1]] == [
        "mini\\_bidir/x", "66.7 [50.0, 75.0]", "-3.2", "0.062", "1,234",
    ]  # fmt: skip
    assert lines[-1] == "- mini\\_bidir: 3 of 4"


def test_latex_is_booktabs_with_names_escaped():
    lines = to_latex(TABLE).splitlines()
    assert lines[1] == r"\begin{table*}[t]"
    assert r"\begin{tabular}{@{}lrrrr@{}}" in lines
    assert r"mini\_bidir\textbar{}x & 66.7 {\scriptsize [50.0, 75.0]} & $-3.2$ & 0.062 & 1,234 \\" in lines
    assert r"100\% \& \textless{}co\textgreater{} & -- & $+50.0$ & -- & -- \\" in lines
    assert lines.count(r"\midrule") == 2
    assert lines.index(r"\midrule", lines.index(r"\midrule") + 1) + 1 == next(
        i for i, line in enumerate(lines) if line.startswith("100")
    )
    assert r"\caption{a\_b: 95 \% of it}" in lines
    assert r"\label{tab:some-table}" in lines
    assert sum(line.count(r"\begin{") - line.count(r"\end{") for line in lines) == 0


def test_everything_that_latex_reads_as_a_command_is_escaped():
    escaped = r"\textbackslash{}\{\}\$\&\#\^".replace(r"\^", r"\textasciicircum{}")
    assert escape_latex("\\{}$&#^") == escaped
    assert escape_latex("a\n b ≥ ~") == r"a b $\geq$ \textasciitilde{}"


def test_a_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match="1 cells for 2 columns of t"):
        Table("t", "c", (Column("a", "A"), Column("b", "B")), (("x",),))


def test_a_table_without_rows_has_its_header():
    empty = Table("t", "c", (Column("a", "A", CellKind.TEXT), Column("b", "B")), ())
    assert to_csv(empty) == '\ufeff"a","b"\n'
    assert to_markdown(empty).count("\n| ") == 2
    assert r"\bottomrule" in to_latex(empty)


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "＝1"])
def test_a_name_in_csv_is_no_formula(name):
    table = Table("t", "c", (Column("e", "E", CellKind.TEXT), Column(name, "F1")), ((name, Value(-0.5)),))
    assert to_csv(table) == f'\ufeff"e","\'{name}"\n"\'{name}",-0.5\n'
