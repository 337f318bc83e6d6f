"""The demo in headless Chromium, at `/demo` of the app and as the command serves it: it scores a solution, in light
and dark, on a desk and a phone."""

import re
import subprocess
import sys

import httpx
import pytest
from playwright.sync_api import expect

from tests.app.browser.acts import PROBLEM, SOLUTION, overflow
from tests.app.browser.checks import COLOURS, violations

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def served_by_command():
    command = [sys.executable, "-m", "stepsight", "demo", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            found = next(match for line in process.stderr if (match := re.search(r"http://[^/]+", line)))
            yield found[0]
        finally:
            process.terminate()


def scores_a_solution(page):
    page.get_by_label("Problem").fill(PROBLEM)
    page.get_by_label("Solution").fill(SOLUTION)
    page.get_by_role("button", name="Score", exact=True).click()
    expect(page.locator("ol.steps > li")).to_have_count(5)
    expect(page.get_by_role("button", name="Download the record")).to_be_visible()
    # A button under the pointer has other colours.
    page.mouse.move(0, 0)


@pytest.mark.parametrize("by", ["address", "served_by_command"])
def test_the_demo_scores_a_solution_and_can_be_read(opened, request, by):
    base = request.getfixturevalue(by)
    with opened(base=base, reduced_motion="reduce") as page:
        page.goto("/demo")
        scores_a_solution(page)
        found = {"light": violations(page)}
        page.set_viewport_size({"width": 390, "height": 1000})
        expect(page.locator("ol.steps > li").first).to_be_visible()
        assert overflow(page) == 0
        found["at 390"] = violations(page)
    with opened(base=base, width=390, color_scheme="dark", reduced_motion="reduce") as page:
        page.goto("/demo")
        scores_a_solution(page)
        found["dark"] = violations(page, COLOURS)
        assert overflow(page) == 0
    assert {where: wrong for where, wrong in found.items() if wrong} == {}


def test_the_command_serves_the_demo_by_the_rules_of_the_app(served_by_command):
    path = f"{served_by_command}/demo/gradio_api"
    with httpx.Client(timeout=60) as client:
        assert client.post(f"{path}/upload", files={"files": b"x"}).status_code == 404
        assert client.get(f"{served_by_command}/demo/", headers={"host": "elsewhere.example"}).status_code == 400
        from_elsewhere = {"origin": "http://elsewhere.example"}
        assert client.post(f"{path}/call/score", json={"data": []}, headers=from_elsewhere).status_code == 403
        assert client.post(f"{path}/call/score", content="[]").status_code == 422
