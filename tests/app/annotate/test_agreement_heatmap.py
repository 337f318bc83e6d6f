import re

from stepsight.app.annotate.agreement import ROWS, Heatmap, Order, heatmap_rows
from stepsight.app.web.html import render
from stepsight.storage.labelling.results.ratings import RatedTrace
from tests.app.annotate.rated import rated

# All agree, two of three agree and the gold is another, all differ; then one label alone, only unsure, none.
SAID = rated("nnn p?-", "nnu -?-", "npp ---", gold="np- ---")


def heatmap_html(heatmap: Heatmap, page: int) -> str:
    return render("annotate/heatmap.html", rows=heatmap_rows(heatmap, page, link))


def link(trace: RatedTrace, disputed: bool) -> str:
    return f"/{'decide' if disputed else 'see'}/{trace.trace_id}"


def rows(page: str) -> list[list[str]]:
    body = re.search("<tbody>(.*)</tbody>", page)[1]
    return [re.findall("<td.*?</td>", row) for row in re.findall("<tr>(.*?)</tr>", body)]


def test_cells_say_what_was_said_and_lead_to_their_trace():
    first, second = rows(heatmap_html(Heatmap.of(SAID, Order.QUEUE), 1))
    assert [re.sub("<[^>]*>", "", cell) for cell in first] == ["✕", "2/3", "1/3"]
    assert [re.search('--x:([^"]*)', cell)[1] for cell in first] == ["0.00", "0.67", "1.00"]
    assert 'aria-label="step 2: 2 neg, 1 pos; gold pos"' in first[1]
    assert ["differs" in cell for cell in first] == [False, True, False]
    assert all('href="/decide/100"' in cell and 'tabindex="-1"' in cell for cell in first)
    # One label alone has no colour; somebody was unsure of the second step, which is to be decided.
    assert [re.sub("<[^>]*>", "", cell) for cell in second] == ["✓", "?", ""]
    assert all('class="alone"' in cell and "--x" not in cell for cell in second)
    assert all('href="/decide/101"' in cell for cell in second)
    assert 'aria-label="step 3: not labelled"' in second[2]


def test_of_what_everybody_agrees_on_nothing_is_to_be_decided():
    (cells,) = rows(heatmap_html(Heatmap.of(rated("pn", "pn"), Order.QUEUE), 1))
    assert all('href="/see/100"' in cell for cell in cells)


def test_gold_of_validity_alone_differs_from_neg_only():
    valid = rated("npu", gold="---", valid="ppp")
    cells = rows(heatmap_html(Heatmap.of(valid, Order.QUEUE), 1))[0]
    assert ["differs" in cell for cell in cells] == [True, False, False]
    assert "gold valid" in cells[0]


def test_most_disagreement_comes_first():
    said = rated("p pp nn pp", "p pp pp pn")
    assert Heatmap.of(said, Order.QUEUE).places.tolist() == [0, 1, 2, 3]
    # Two steps, then one; those without any as they come.
    assert Heatmap.of(said, Order.DISAGREEMENT).places.tolist() == [2, 3, 0, 1]


def test_pages():
    many = rated(" ".join(["p"] * (2 * ROWS + 1)))
    found = Heatmap.of(many, Order.QUEUE)
    assert found.pages == 3
    assert found.on_page(2).tolist() == list(range(ROWS, 2 * ROWS))
    # What lies behind the end is the end.
    assert found.on_page(9).tolist() == [2 * ROWS]
    nothing = Heatmap.of(many.of_traces([]), Order.DISAGREEMENT)
    assert (nothing.pages, nothing.on_page(1).tolist()) == (1, [])
