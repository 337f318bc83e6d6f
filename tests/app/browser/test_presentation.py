"""A presentation of a trace as a lecturer gives it: one thing a press, and nothing is named before its time."""

import json
import re

import pytest
from playwright.sync_api import Page, expect

from stepsight.core.paths import asset
from tests.app.browser.acts import beat, hold_pace, listening, overflow
from tests.app.entries import typed
from tests.browser import until

TRACE = json.loads(asset("traces", "gallery.jsonl").read_text(encoding="utf-8").splitlines()[0])
"""The first of the gallery, whose step 4 exposes step 3. It has no formulas."""
STEPS = TRACE["steps"]
# What only comes after the steps, by its place in the address.
CONCLUSIONS = {
    "evidence": "Step 3 fell from 0.69 to 0.01 when step 4 was revealed.",
    "note": f"About this solution: {TRACE['note']}",
    "gold": "Gold calls step 3 wrong and agrees with the revision.",
}
PLACES = ["problem", *map(str, range(1, len(STEPS) + 1)), *CONCLUSIONS]
NAMED = """() => [document.title, document.body.innerText,
  ...[...document.querySelectorAll("*")].flatMap((e) => [...e.attributes]
    .filter(({ name }) => /^(title|alt|placeholder|aria-)/.test(name)).map(({ value }) => value)),
  ...[...document.querySelectorAll("svg title")].map((e) => e.textContent)].join("\\n")"""
# Eight steps of ordinary length, with formulas.
EIGHT = """1. Both sides must be non-negative, so $x \\ge 5$.
2. Square both sides: $x + 7 = (x-5)^2$.
3. Expand the right side: $(x-5)^2 = x^2 - 10x + 25$.
4. Bring everything to one side: $x^2 - 11x + 18 = 0$.
5. The discriminant is $121 - 72 = 49$, whose root is $7$.
6. Hence $x = \\frac{11 \\pm 7}{2}$, that is $x = 9$ or $x = 2$.
7. Both satisfy the equation, so there are two solutions.
8. Check: $x = 2$ gives $\\sqrt{9} = 3$ but $2 - 5 = -3$, so $2$ is no solution."""


def present(page: Page, place: str = "problem", trace: str = "trace=1") -> None:
    page.goto(f"/evidence?{trace}&present={place}")
    expect(page.locator(".presentation[data-started]")).to_be_visible()


def entered(steps: str) -> str:
    return f"s={typed('What is $x$?', steps, ('mini-bidir',)).token()}"


def many(count: int) -> str:
    return entered("\n".join(f"{i}. Then $x_{{{i}}} = {i} + {i}$, which is {2 * i}." for i in range(1, count + 1)))


def named(page: Page) -> str:
    """Everything that somebody who looks, listens or points can learn."""
    return f"{page.evaluate(NAMED)}\n{page.locator('body').aria_snapshot()}"


def at(page: Page, place: str) -> None:
    expect(page).to_have_url(re.compile(rf"[?&]present={place}$"))
    expect(page.locator(".presentation[data-started]")).to_be_visible()


def assert_only(page: Page, place: str) -> None:
    """What the place and those before it reveal is there, and nothing of those after it."""
    count = PLACES.index(place)
    found = " ".join(named(page).split())
    for number, text in enumerate(STEPS, 1):
        assert (text in found) is (number <= count), (place, text)
        assert (f"after step {number}:" in found) is (number == min(count, len(STEPS))), (place, number)
    for name, text in CONCLUSIONS.items():
        assert (text in found) is (PLACES.index(name) <= count), (place, text)
    has_gold = place == "gold"
    assert ("first error" in found) is has_gold
    assert (page.locator(".presentation .g").count() > 0) is has_gold
    # Not even its id, which says what is wrong.
    assert TRACE["id"] not in found
    shown = min(count, len(STEPS))
    expect(page.locator(".matrix tbody tr")).to_have_count(shown)
    expect(page.locator(".matrix td:not(thead td)")).to_have_count(shown * (shown + 1) // 2)
    expect(page.locator(".curve polyline")).to_have_count(shown)


def test_a_whole_talk_reveals_one_thing_a_press_and_takes_each_back(page):
    page.goto("/evidence?trace=1")
    expect(page.locator(".pager")).to_contain_text(TRACE["id"])
    page.get_by_role("link", name="Present").click()
    expect(page).to_have_title("Presentation · StepSight")
    keys = ["ArrowRight", "Space", "PageDown"]
    for count, place in enumerate(PLACES):
        if count:
            page.keyboard.press(keys[count % 3])
        at(page, place)
        assert_only(page, place)
    # There is nothing after the last.
    page.keyboard.press("ArrowRight")
    at(page, "gold")
    for count, place in enumerate(reversed(PLACES[:-1])):
        page.keyboard.press(["ArrowLeft", "PageUp"][count % 2])
        at(page, place)
        assert_only(page, place)
    page.keyboard.press("ArrowLeft")
    at(page, "problem")
    tells_how_a_step_moved_earlier_verdicts(page)


def tells_how_a_step_moved_earlier_verdicts(page: Page) -> None:
    page.keyboard.press("3")
    at(page, "3")
    row = page.locator("ol.steps > li").nth(2)
    expect(row.locator(".num")).to_have_text("0.69")
    page.keyboard.press("PageDown")
    expect(row.locator(".num")).to_have_text("0.01")
    expect(row.locator(".d")).to_have_text(re.compile("−0.68$"))
    expect(row).to_have_class(re.compile("fell"))
    # A mark in the bar stays where the step stood when it was revealed.
    expect(row.locator(".before")).to_be_visible()
    expect(page.locator(".curve .jump.fell")).not_to_have_count(0)
    moved = "Step 3 fell from 0.69 to 0.01 and is no longer valid; step 2 fell from 0.90 to 0.73"
    expect(page.locator(".conclusions")).to_contain_text(moved)
    # What is read out is the step with what it did.
    spoken = page.locator(".presentation [role=status]")
    expect(spoken).to_have_text(re.compile(rf"^Step 4: {re.escape(STEPS[3])} Valid, 0\.97; step 3 fell from 0\.69"))
    page.keyboard.press("PageUp")
    expect(row.locator(".num")).to_have_text("0.69")
    expect(row.locator(".before")).to_be_hidden()


def test_keys_jump_and_leave(page):
    page.goto("/evidence?trace=1")
    listening(page)
    # What is pressed while the presentation is fetched is done in it.
    for key in ("s", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    at(page, "2")
    page.keyboard.press("End")
    at(page, "gold")
    page.keyboard.press("Home")
    at(page, "problem")
    page.keyboard.press("4")
    at(page, "4")
    assert_only(page, "4")
    page.keyboard.press("9")
    expect(page.locator(".conduct .place")).to_have_text("No step 9")
    at(page, "4")
    page.keyboard.press("0")
    at(page, "problem")
    # A button that has the focus keeps Enter and Space only.
    page.get_by_role("button", name="Next").focus()
    page.keyboard.press("PageDown")
    page.keyboard.press("Enter")
    at(page, "2")
    page.get_by_role("button", name="Back").click()
    at(page, "1")
    page.keyboard.press("?")
    expect(page.locator("dialog.keys")).to_contain_text("go on")
    page.keyboard.press("Escape")
    at(page, "1")
    page.keyboard.press("Escape")
    expect(page.locator(".player")).to_be_visible()
    assert "present" not in page.url
    # Forward is in the presentation where it was left, Back out of it again.
    page.go_forward()
    at(page, "1")
    assert_only(page, "1")
    page.go_back()
    expect(page.locator(".player")).to_be_visible()


def test_a_presentation_keeps_its_place_plays_and_fills_the_screen(page):
    keeps_its_place_in_the_address(page)
    waits_for_a_second_digit(page)
    is_given_of_a_causal_evaluator(page)
    fills_the_screen(page)
    plays_at_its_own_pace(page)


def keeps_its_place_in_the_address(page: Page) -> None:
    present(page, "2")
    page.keyboard.press("ArrowRight")
    at(page, "3")
    page.reload()
    assert_only(page, "3")
    page.get_by_role("button", name="Leave").click()
    expect(page.locator(".player")).to_be_visible()
    present(page, "17")
    expect(page.locator(".notice")).to_have_text(re.compile("^The presentation has no place '17'"))
    assert_only(page, "problem")


def waits_for_a_second_digit(page: Page) -> None:
    present(page, trace=many(12))
    page.keyboard.press("1")
    expect(page.locator(".conduct .place")).to_have_text("Go to 1: Enter")
    page.keyboard.press("2")
    at(page, "12")
    page.keyboard.press("1")
    page.keyboard.press("Escape")
    expect(page.locator(".conduct .place")).to_have_text("Step 12")
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    at(page, "1")


def plays_at_its_own_pace(page: Page) -> None:
    present(page)
    for _ in range(6):
        page.keyboard.press("-")
    expect(page.locator(".seconds")).to_have_text("1 s")
    hold_pace(page)
    page.keyboard.press("p")
    assert page.evaluate("window.pace") == 1000
    assert beat(page)
    at(page, "1")
    assert beat(page)
    at(page, "2")
    page.keyboard.press("PageUp")
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    at(page, "1")
    assert not beat(page)
    # The pace is kept, and it stops at the end.
    page.reload()
    expect(page.locator(".seconds")).to_have_text("1 s")
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("p")
    at(page, "gold")
    expect(page.get_by_role("button", name="Play")).to_have_attribute("aria-disabled", "true")


def fills_the_screen(page: Page) -> None:
    present(page)
    page.keyboard.press("f")
    expect(page.get_by_role("button", name="Full screen")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("f")
    expect(page.get_by_role("button", name="Full screen")).to_have_attribute("aria-pressed", "false")
    page.keyboard.press("f")
    page.keyboard.press("ArrowRight")
    at(page, "1")
    page.get_by_role("button", name="Leave").click()
    expect(page.locator(".player")).to_be_visible()
    until(page, "document.fullscreenElement === null")


@pytest.mark.slow
def test_a_presentation_fits_a_screen_and_a_phone(opened):
    with opened(height=900, reduced_motion="reduce") as page:
        fits_eight_steps_beside_the_matrix(page)
        keeps_the_newest_of_many_steps_in_view(page)
        keeps_the_curves_below_a_long_problem(page)
        is_stacked_on_a_phone(page)


def fits_eight_steps_beside_the_matrix(page: Page) -> None:
    present(page, "evidence", entered(EIGHT))
    expect(page.locator(".presentation .katex").first).to_be_visible()
    page.evaluate("document.fonts.ready")
    steps = page.locator("ol.steps")
    assert steps.evaluate("e => e.scrollHeight - e.clientHeight") <= 0
    assert steps.evaluate("e => parseFloat(getComputedStyle(e).fontSize)") >= 22
    assert page.locator(".matrix").bounding_box()["x"] > steps.bounding_box()["x"] + steps.bounding_box()["width"]
    for part in (".matrix table", ".curve svg", ".conclusions > :last-child", ".conduct"):
        box = page.locator(part).bounding_box()
        assert box["y"] + box["height"] <= 900, part
    assert overflow(page) <= 0


def keeps_the_newest_of_many_steps_in_view(page: Page) -> None:
    present(page, "1", many(34))
    size = "e => parseFloat(getComputedStyle(e).fontSize)"
    steps = page.locator("ol.steps")
    first = steps.evaluate(size)
    for place in ("20", "34"):
        for digit in place:
            page.keyboard.press(digit)
        at(page, place)
        assert steps.evaluate(size) == first >= 22
        expect(steps.locator("> li").last).to_be_in_viewport(ratio=0.98)
        expect(page.locator(".matrix table")).to_be_in_viewport(ratio=1)
        expect(page.locator(".curve svg")).to_be_in_viewport(ratio=1)
        assert overflow(page) <= 0


def keeps_the_curves_below_a_long_problem(page: Page) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    present(
        page, "8", f"s={typed('A field is twice as long as it is wide. ' * 25, EIGHT, ('mini-bidir',)).token()}"
    )
    assert page.locator(".q").evaluate("e => e.scrollHeight - e.clientHeight") <= 0
    expect(page.locator(".curve svg")).to_be_in_viewport(ratio=1)
    assert page.locator(".curve .tick").first.evaluate("e => e.getBoundingClientRect().height") >= 14


def is_stacked_on_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    present(page, "8", entered(EIGHT))
    assert overflow(page) <= 0
    steps, matrix = (page.locator(part).bounding_box() for part in ("ol.steps", ".matrix table"))
    assert matrix["y"] >= steps["y"] + steps["height"]
    expect(page.get_by_role("button", name="Next")).to_be_in_viewport()
    page.get_by_role("button", name="Next").click()
    at(page, "evidence")
    assert overflow(page) <= 0


def is_given_of_a_causal_evaluator(page: Page) -> None:
    present(page, "5", "trace=1&evaluator=mini-causal")
    expect(page.locator(".conclusions")).to_have_text("No earlier step moved by 0.10 or more.")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".conclusions")).to_contain_text("reads a solution from left to right")
