import asyncio
import sys

import plotly.graph_objects as go
import pytest
from choreographer import Tab
from kaleido import Kaleido
from PIL import Image
from playwright.sync_api import sync_playwright

from stepsight.training.runs import drawing, figures
from stepsight.training.runs.figures import draw_history, write_figure, write_pictures
from stepsight.training.runs.resumable import final_loss
from tests.browser import launch
from tests.messages import refused

ROWS = [
    {"loss": 1.0 / step, "grad_norm": 10.0 / step, "learning_rate": 1e-3 * step, "step": 20 * step}
    for step in range(1, 13)
]


def test_the_final_loss_is_the_mean_of_the_last_ten_rows():
    # The rows of 1/3 to 1/12: their sum is 1.603211, as 1/1 + 1/2 + … + 1/12 = 3.103211.
    assert final_loss(ROWS) == pytest.approx(0.160321, abs=1e-6)
    assert final_loss(ROWS[:1]) == 1.0
    assert final_loss([]) is None


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


@pytest.fixture
def figure():
    return go.Figure(go.Scatter(x=[1, 2, 3], y=[3, 1, 2], line={"color": "#1f5fa8"}), {"width": 500, "height": 300})


def test_a_figure_is_a_page_and_a_picture(figure, tmp_path, browser_path, capsys):
    write_figure(figure, tmp_path / "curves")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["curves.html", "curves.png"]
    assert capsys.readouterr().err == ""
    with Image.open(tmp_path / "curves.png") as picture:
        assert picture.size == (1000, 600)
        # The line's own blue.
        assert (0x1F, 0x5F, 0xA8) in {colour[:3] for _, colour in picture.convert("RGBA").getcolors(1 << 20)}


def test_the_page_needs_no_network(figure, tmp_path, capsys):
    write_figure(figure, tmp_path / "curves")
    asked = []
    with sync_playwright() as playwright:
        browser = launch(playwright)
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto((tmp_path / "curves.html").as_uri())
        page.wait_for_selector(".scatterlayer .js-line")
        browser.close()
    assert asked == [(tmp_path / "curves.html").as_uri()]
    # Without the browser of the other test, which is not to be found here, the picture is missing, and it is said.
    assert not (tmp_path / "curves.png").exists()
    err = capsys.readouterr().err
    assert err.startswith("curves.png is not written, only curves.html: BROWSER_PATH names '/nowhere/chromium'")


def test_a_page_that_is_loaded_early_is_drawn_by_a_browser_that_ends_silently(
    figure, tmp_path, browser_path, monkeypatch
):
    """A second during which this process gets no processor; the page takes a fifth of it."""
    send, asked = Tab.send_command, []
    monkeypatch.setattr(Tab, "create_session", Tab.create_session)

    async def send_late(tab, command, params=None):
        asked.append(command)
        if command == "Page.enable" and "Page.navigate" in asked:
            await asyncio.sleep(1)
        return await send(tab, command, params)

    monkeypatch.setattr(Tab, "send_command", send_late)
    ask = Kaleido.send_command

    async def ask_in_vain(browser, command, params=None):
        answer = await ask(browser, command, params)
        return await (asyncio.Event().wait() if command == "Browser.close" else asyncio.sleep(0, answer))

    monkeypatch.setattr(Kaleido, "send_command", ask_in_vain)
    monkeypatch.setattr(drawing, "_CLOSING", 0.5)
    order = figures._order(figure, tmp_path / "one.png")

    async def draw():
        async with asyncio.timeout(600) as limit:
            await drawing.draw([order])
        # At the limit, Kaleido would end as if nothing had happened.
        assert not limit.expired()

    asyncio.run(draw())
    with Image.open(tmp_path / "one.png") as picture:
        assert picture.size == (1000, 600)


def test_a_browser_that_hangs_is_given_up(figure, tmp_path, monkeypatch):
    browser = tmp_path / "chromium"
    browser.write_text('#!/bin/sh\ntest "$1" = --version && echo Chromium && exit\nexec cat >/dev/null\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER_PATH", str(browser))
    monkeypatch.setattr(figures, "_START", 3)
    monkeypatch.setattr(figures, "_EACH", 1)
    with refused():
        write_pictures({tmp_path / "one.png": figure})
    assert not (tmp_path / "one.png").exists()


def test_pictures_need_a_browser_and_kaleido(figure, tmp_path, monkeypatch):
    monkeypatch.setenv("BROWSER_PATH", str(tmp_path / "none"))
    with refused():
        write_pictures({tmp_path / "one.png": figure})
    monkeypatch.setenv("BROWSER_PATH", "/bin/false")
    with refused():
        write_pictures({tmp_path / "one.png": figure})
    monkeypatch.setitem(sys.modules, "kaleido", None)
    with refused():
        write_pictures({tmp_path / "one.png": figure})
