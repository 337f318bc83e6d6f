import json

from stepsight.core.metrics.value import Value
from stepsight.training.report.html import block_html, plots_html, table_html
from stepsight.training.report.plots import Plot
from stepsight.training.report.tables import CellKind, Column, Table
from tests.training.report.test_html import FIGURE, NASTY, TABLE, Elements


def test_words_and_tables_and_figures():
    assert block_html("a < b") == "<p>a &lt; b</p>"
    assert block_html(TABLE) == table_html(TABLE)
    assert block_html([Plot("none", None, ("why",))]) == plots_html([Plot("none", None, ("why",))])


def test_each_cell_can_be_wrapped_the_header_too():
    table = Table("t", "c", (Column("e", "Evaluator", CellKind.TEXT), Column("f1", "F1")), (("x<", Value(0.5)),))
    html = table_html(table, lambda row, column, cell: f"<a>{row}.{column} {cell}</a>")
    page = Elements(html)
    assert page.open == []
    assert html.count("<a>") == 4
    assert '<th scope="col" class="text"><a>-1.0 Evaluator</a></th>' in html
    assert '<th scope="row"><a>0.0 x&lt;</a></th><td><a>0.1 50.0</a></td>' in html


def test_a_line_on_files_stands_where_there_is_one():
    assert '<p class="files">here</p>' in table_html(TABLE, files="here")
    assert "files" not in table_html(TABLE)


def test_a_figure_is_data_in_an_attribute():
    html = plots_html([Plot(NASTY, FIGURE, (NASTY,))])
    page = Elements(html)
    assert page.open == []
    assert [tag for tag, _ in page.found if tag in ("script", "b")] == []
    (data,) = [attrs["data-figure"] for _, attrs in page.found if "data-figure" in attrs]
    assert json.loads(data)["data"][0]["name"] == NASTY
