"""LaTeX of every kind of table: pdflatex took all of them once; what it trips over is looked for here."""

import re
from collections import Counter
from datetime import date

import pytest

from stepsight.core.paths import asset
from stepsight.training.experiments.finetuning.report import make_filtering_report
from stepsight.training.experiments.grid.report import make_grid_report
from stepsight.training.experiments.grid.results import read_results
from stepsight.training.paper.facts import recipe_facts
from stepsight.training.paper.page import make_paper_report
from stepsight.training.report.report import make_report
from stepsight.training.report.table_files import to_latex
from tests.training.judged import fill

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
