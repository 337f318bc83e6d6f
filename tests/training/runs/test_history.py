"""The history of a run, and its curves."""

import json

from playwright.sync_api import sync_playwright

from stepsight.training.runs.loop import draw_history, write_history
from tests.browser import launch

ROWS = [
    {"loss": 1.0 / step, "grad_norm": 10.0 / step, "learning_rate": 1e-3 * step, "step": 20 * step}
    for step in range(1, 13)
]


def test_the_figure_has_loss_norm_and_rate_against_the_step():
    figure = draw_history(ROWS, "mini")
    assert [curve.name for curve in figure.data] == ["Cross-entropy", "Gradient norm", "Learning rate"]
    assert all(list(curve.x) == list(range(20, 241, 20)) for curve in figure.data)
    assert list(figure.data[0].y) == [row["loss"] for row in ROWS]
    assert list(figure.data[1].y) == [row["grad_norm"] for row in ROWS]
    assert list(figure.data[2].y) == [row["learning_rate"] for row in ROWS]
    assert (figure.layout.yaxis.type, figure.layout.yaxis2.type) == (None, "log")
    assert figure.layout.title.text == "mini"


def test_a_run_without_a_row_has_an_empty_figure():
    assert [len(curve.x) for curve in draw_history([], "none").data] == [0, 0, 0]


def test_the_page_needs_no_network(tmp_path):
    write_history(ROWS, tmp_path)
    assert json.loads((tmp_path / "log_history.json").read_text()) == ROWS
    asked = []
    with sync_playwright() as playwright:
        browser = launch(playwright)
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto((tmp_path / "training.html").as_uri())
        page.wait_for_selector(".scatterlayer .js-line")
        browser.close()
    assert asked == [(tmp_path / "training.html").as_uri()]
