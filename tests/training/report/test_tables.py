import csv
import io
import re
from collections import Counter
from datetime import date

import pytest

from stepsight.core.metrics.bootstrap import Value
from stepsight.core.paths import asset
from stepsight.training.experiments.finetuning.report import make_filtering_report
from stepsight.training.experiments.grid.results import read_results
from stepsight.training.experiments.grid.tables import make_grid_report
from stepsight.training.paper import make_paper_report, recipe_facts
from stepsight.training.report.report import make_report
from stepsight.training.report.tables import (
    CellKind,
    Column,
    Table,
    escape_latex,
    show,
    to_csv,
    to_latex,
    to_markdown,
)
from tests.cases import each
from tests.training.judged import fill

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


DAY = date(2026, 1, 1)
# Of LaTeX itself and booktabs.
COMMANDS = """begin end centering small toprule midrule bottomrule caption label textbf scriptsize footnotesize
par smallskip textbackslash textasciitilde textasciicircum textless textgreater textbar geq leq tau Delta rho
times pm"""
# What pdflatex knows of UTF-8 with T1: Latin-1 and the marks of printed text.
WRITTEN = re.compile(r"[\x20-\x7e\n\u00a1-\u00ff‘’“”–—…]*")


@pytest.fixture
def tables(sqlite_store):
    recorded = {path.stem: read_results(path) for path in (asset("reports") / "grid-mini").glob("*.json")}
    reports = [
        make_report(sqlite_store, [fill(sqlite_store)], draws=5, day=DAY),
        make_grid_report([recorded["as-labelled"], recorded["random"]]),
        make_filtering_report([asset("reference", "filter-ablation.json")]),
        make_paper_report(recipe_facts(), DAY),
    ]
    return [table for report in reports for table in report.tables]


@pytest.mark.slow
def test_commands_braces_and_columns_balance(tables):
    assert len(tables) > 100
    for table in tables:
        head, _, text = to_latex(table).partition("\n")
        assert head.startswith("% needs ")
        assert WRITTEN.fullmatch(text), table.name
        assert set(re.findall(r"\\([a-zA-Z]+)", text)) <= set(COMMANDS.split()), table.name
        plain = re.sub(r"\\[\\{}&%$#_]", "", text)
        counts = Counter(plain)
        assert counts["{"] == counts["}"], table.name
        assert counts["$"] % 2 == 0, table.name
        begun, ended = (re.findall(rf"\\{word}\{{([a-z*]+)\}}", text) for word in ("begin", "end"))
        assert begun == ended[::-1] == ["table*", "tabular"], table.name
        body = text.partition("\\toprule\n")[2].partition("\\bottomrule")[0]
        rows = [line for line in body.splitlines() if line != r"\midrule"]
        # Each row ends, and has a cell for each column of the specification.
        assert all(row.endswith(r" \\") for row in rows), table.name
        cells = {len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows}
        (columns,) = re.findall(r"\\begin\{tabular\}\{@\{\}([lr]+)@\{\}\}", text)
        assert cells == {len(table.columns)} == {len(columns)}, table.name
