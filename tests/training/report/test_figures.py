import re
import sys

import plotly.graph_objects as go
import pytest
from PIL import Image
from playwright.sync_api import sync_playwright

from stepsight.core.errors import UserError
from stepsight.training.report.figures import write_figure, write_pictures
from tests.browser import installed, launch


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


def test_pictures_for_a_paper(figure, tmp_path, monkeypatch):
    with sync_playwright() as playwright:
        monkeypatch.setenv("BROWSER_PATH", installed() or playwright.chromium.executable_path)
    two = go.Figure(figure).add_scatter(x=[1, 2], y=[1, 2], name="other")
    write_pictures({"one": figure, "two": two}, tmp_path / "deep" / "figures")
    found = {path.name: path for path in (tmp_path / "deep" / "figures").iterdir()}
    assert set(found) == {"one.pdf", "one.png", "two.pdf", "two.png"}
    assert found["one.pdf"].read_bytes().startswith(b"%PDF-")
    with Image.open(found["two.png"]) as picture:
        assert picture.size == (1280, 800)
        assert picture.convert("RGBA").getpixel((0, 0)) == (255, 255, 255, 255)
    # What is given stays as it was.
    assert figure.layout.width == 500


def test_pictures_need_a_browser_and_kaleido(figure, tmp_path, monkeypatch):
    with pytest.raises(UserError, match=r"the figures cannot be drawn \(.+BROWSER_PATH"):
        write_pictures({"one": figure}, tmp_path / "figures")
    monkeypatch.setitem(sys.modules, "kaleido", None)
    with pytest.raises(UserError, match=r"need kaleido.+stepsight\[figures\]"):
        write_pictures({"one": figure}, tmp_path / "others")
    assert not (tmp_path / "others").exists()


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
