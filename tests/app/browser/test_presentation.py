"""A presentation of a trace as a lecturer gives it: one thing a press, and nothing is named before its time."""

import json
import re

import pytest
from playwright.sync_api import expect

from stepsight.core.paths import asset
from tests.app.browser.acts import beat, hold_pace, overflow

TRACE = json.loads(asset("traces", "gallery.jsonl").read_text(encoding="utf-8").splitlines()[0])
"""The first of the gallery, whose step 4 exposes step 3. It has no formulas."""
STEPS = TRACE["steps"]
CONCLUSIONS = (
    "Step 3 fell from 0.69 to 0.01 when step 4 was revealed.",
    TRACE["note"],
    "Gold calls step 3 wrong and agrees with the revision.",
    "gold: first error",
    "Step 3 is wrong",
)
PLACES = ["problem", *map(str, range(1, len(STEPS) + 1)), "evidence"]


def assert_only(page, place):
    """What the place and those before it reveal can be seen and heard, and nothing of those after it."""
    expect(page).to_have_url(re.compile(rf"[?&]present={place}$"))
    expect(page.locator(".presents[data-started]")).to_be_visible()
    count = PLACES.index(place)
    shown = f"{page.title()} {page.locator('body').inner_text()} {page.locator('body').aria_snapshot()}"
    shown = " ".join(shown.split())
    for number, text in enumerate(STEPS, 1):
        assert (text in shown) is (number <= count), (place, text)
    for text in CONCLUSIONS:
        assert (text in shown) is (place == "evidence"), (place, text)
    expect(page.locator(".matrix tbody tr:visible")).to_have_count(min(count, len(STEPS)))
    bar = page.locator(".player").bounding_box()
    assert bar["y"] + bar["height"] == page.viewport_size["height"]
    step = page.locator("ol.steps > li").nth(min(count, len(STEPS)) - 1).bounding_box()
    assert place in ("problem", "evidence") or 0 <= step["y"] <= bar["y"] - step["height"]
    # Not even its id, which says what is wrong.
    assert TRACE["id"] not in shown


def test_a_whole_talk_reveals_one_thing_a_press_and_takes_each_back(page):
    page.goto("/evidence?trace=1")
    expect(page.locator(".pager")).to_contain_text(TRACE["id"])
    page.keyboard.press("s")
    for count, place in enumerate(PLACES):
        if count:
            page.keyboard.press(["ArrowRight", "Space", "PageDown"][count % 3])
        assert_only(page, place)
    # There is nothing after the last.
    page.keyboard.press("ArrowRight")
    for count, place in enumerate(reversed(PLACES)):
        if count:
            page.keyboard.press(["ArrowLeft", "PageUp"][count % 2])
        assert_only(page, place)
    page.keyboard.press("End")
    assert_only(page, "evidence")
    page.keyboard.press("Home")
    assert_only(page, "problem")
    plays_until_a_key(page)
    page.keyboard.press("Escape")
    expect(page.locator(".pager")).to_contain_text(TRACE["id"])
    assert "present" not in page.url


def plays_until_a_key(page):
    hold_pace(page)
    page.keyboard.press("p")
    for _ in range(4):
        assert beat(page)
    now = "Step 4: valid, 0.97; step 3 fell from 0.69 to 0.01 and is no longer valid"
    expect(page.locator(".player .now")).to_have_text(now)
    expect(page.locator(".presents [role=status]").first).to_have_text(now)
    page.get_by_role("button", name="Back").click()
    assert not beat(page)
    expect(page.locator(".player .now")).to_have_text(re.compile("^Step 3"))


@pytest.mark.slow
def test_an_address_opens_the_presentation_at_its_place(opened):
    with opened(width=390, height=844) as page:
        for named, place in {"2": "2", "evidence": PLACES[-2], "gold": PLACES[-2], "17": "problem"}.items():
            page.goto(f"/evidence?trace=1&present={named}")
            page.get_by_role("button", name="Next").click()
            page.get_by_role("button", name="Back").click()
            assert_only(page, place)
            assert overflow(page) <= 0
