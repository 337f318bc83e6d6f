import json
from html.parser import HTMLParser

import plotly.graph_objects as go
from markupsafe import Markup

from stepsight.core.metrics.bootstrap import Value
from stepsight.training.report.html import Part, Section, page_html, table_html
from stepsight.training.report.plots import Plot
from stepsight.training.report.tables import CellKind, Column, Table

NASTY = "a_b</script><b>&\"'"
TABLE = Table(
    "t-1", f"of {NASTY}", (Column("e", "Evaluator", CellKind.TEXT), Column("f1", "F1")),
    ((NASTY, Value(0.5).within(0.25, 0.75)), ("baseline:x", Value.none("no"))), ("a note",), (1,), (1,),
)  # fmt: skip
FIGURE = go.Figure(go.Scatter(x=[0, 1], y=[0, None], name=NASTY), layout={"template": "none"})
DRAWN = Plot("drawn", FIGURE, ("noted",))
PARTS = [
    Part(NASTY, "lead", [
        Section("One", ["words", TABLE, [DRAWN, Plot("not drawn", None, ("for that",))]]),
        Section("Two", []),
    ], warning="beware"),
    Part("Second", "", [Section("Three", ["x"])]),
]  # fmt: skip
PAGE = page_html("Title", "lead", PARTS)


class Elements(HTMLParser):
    """Every element with its attributes, and whether each was closed in its turn."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in ("meta", "wbr", "br", "link", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += "" if self.open[-1:] in (["script"], ["style"]) else data

    def ids(self) -> list[str]:
        return [attrs["id"] or "" for _, attrs in self.found if "id" in attrs]


def test_elements_are_closed_and_names_are_escaped():
    page = Elements(PAGE)
    assert page.open == []
    assert page.text.count(NASTY) >= 4
    assert [tag for tag, _ in page.found].count("b") == 0


def test_every_link_of_the_contents_leads_somewhere():
    page = Elements(PAGE)
    links = [attrs["href"] for tag, attrs in page.found if tag == "a"]
    assert links == ["#c1", "#c1-1", "#c1-2", "#c2", "#c2-1"]
    assert {link[1:] for link in links} <= set(page.ids())
    assert len(page.ids()) == len(set(page.ids()))


def test_nothing_is_asked_of_the_network():
    page = Elements(PAGE)
    assert [attrs for tag, attrs in page.found if tag in ("link", "img", "iframe") or "src" in attrs] == []
    (policy,) = [
        attrs["content"] for _, attrs in page.found if attrs.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy
    # Plotly's script is there, once.
    assert [attrs for tag, attrs in page.found if tag == "script"] == [{}, {"type": "module"}]
    assert PAGE.count("plotly.js v") == 1


def test_a_figure_is_data_that_gives_back_its_names():
    (data,) = [attrs["data-figure"] for _, attrs in Elements(PAGE).found if "data-figure" in attrs]
    figure = json.loads(data)
    assert figure["data"][0]["name"] == NASTY
    assert figure["data"][0]["y"] == [0, None]


def test_a_table_has_its_intervals_notes_and_files():
    assert "<td>50.0<small>25.0, 75.0</small></td>" in PAGE
    assert '<tr class="rule faint">' in PAGE
    assert "<li>a note</li>" in PAGE
    assert "<code>tables/t-1</code>" in PAGE
    assert '<th scope="row">baseline:<wbr>x</th><td>–</td>' in PAGE


def test_a_figure_that_cannot_be_drawn_says_why():
    assert '<figcaption>not drawn</figcaption><div class="empty"><p>for that</p></div>' in PAGE
    assert '<p class="warning">beware</p>' in PAGE


def test_numbers_have_minus_signs_and_names_their_hyphens():
    columns = Column("e", "Evaluator", CellKind.TEXT), Column("d", "Difference", CellKind.POINTS)
    html = table_html(Table("t", "c", columns, (("mini-bidir", Value(-0.032).within(-0.05, -0.01)),)))
    assert '<th scope="row">mini-<wbr>bidir</th><td>−3.2<small>−5.0, −1.0</small></td>' in html


def test_each_cell_can_be_wrapped_the_header_too():
    table = Table("t", "c", (Column("e", "Evaluator", CellKind.TEXT), Column("f1", "F1")), (("x<", Value(0.5)),))
    html = table_html(table, lambda row, column, cell: Markup("<a>{}.{} {}</a>").format(row, column, cell))
    page = Elements(html)
    assert page.open == []
    assert html.count("<a>") == 4
    assert '<th scope="col" class="text"><a>-1.0 Evaluator</a></th>' in html
    assert '<th scope="row"><a>0.0 x&lt;</a></th><td><a>0.1 50.0</a></td>' in html


def test_a_line_on_files_stands_where_there_is_one():
    assert '<p class="files">here</p>' in table_html(TABLE, files="here")
    assert "files" not in table_html(TABLE)
