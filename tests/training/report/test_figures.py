import sys

import plotly.graph_objects as go
import pytest
from PIL import Image
from playwright.sync_api import sync_playwright

from stepsight.core.errors import UserError
from stepsight.training.report.figures import write_pictures
from tests.browser import installed


@pytest.fixture
def figure():
    return go.Figure(go.Scatter(x=[1, 2, 3], y=[3, 1, 2], line={"color": "#1f5fa8"}), {"width": 500, "height": 300})


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
