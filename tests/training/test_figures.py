import re
import sys

import plotly.graph_objects as go
import pytest
from PIL import Image
from playwright.sync_api import sync_playwright

from tests.browser import installed, launch
from training.figures import write_figure


@pytest.fixture
def figure():
    return go.Figure(go.Scatter(x=[1, 2, 3], y=[3, 1, 2], line={"color": "#1f5fa8"}), {"width": 500, "height": 300})


def test_a_figure_is_a_page_and_a_picture(figure, tmp_path, monkeypatch, capsys):
    with sync_playwright() as playwright:
        monkeypatch.setenv("BROWSER_PATH", installed() or playwright.chromium.executable_path)
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
    assert re.fullmatch(
        r"curves\.png is not written, only curves\.html: install Chrome or Chromium, or name .* BROWSER_PATH\.\n",
        capsys.readouterr().err,
    )


def test_without_kaleido_the_page_is_written_and_what_to_install_is_said(figure, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "kaleido", None)
    write_figure(figure, tmp_path / "curves")
    assert [path.name for path in tmp_path.iterdir()] == ["curves.html"]
    assert capsys.readouterr().err == (
        "curves.png is not written, only curves.html: install stepsight[figures], and Chrome or Chromium.\n"
    )
