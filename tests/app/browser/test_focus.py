"""The focus is seen by a person who goes through a page by Tab: in light and dark, on a desk and a phone. The pages
of `PAGES` are gone through in `test_every_page`."""

import shutil

import pytest

from stepsight.storage.database.store import open_store
from tests.app.annotate.disagreeing import disagreeing
from tests.app.browser import test_accessibility as accessibility
from tests.app.browser.acts import PROBLEM, SOLUTION, listening, score
from tests.serving import served

# By pages of the gallery, what stands there before the first Tab.
PAGES = {
    "/evidence": "ol.turns",
    "/evidence?trace=2": "table[role=grid]",
    "/browse?dataset=gallery": "a.open",
    "/browse?trace=1": "ol.steps",
    "/results": "main table",
    "/results?dataset=gallery": "main table",
    "/results?dataset=gallery&card=mini-bidir": "main table",
    "/jobs": "form",
    "/annotate/new?dataset=gallery": "form",
    "/people": "h1",
    "/nowhere": "h1",
}
# The outline of what has the focus, the colour behind it, and by how much its ends stick out of whatever cuts them.
# A hidden choice shows the focus on the word beside it.
FOCUS = """() => {
  const held = document.activeElement;
  const isHidden = held.matches("input[type=radio]") && getComputedStyle(held).opacity === "0";
  const node = isHidden ? held.nextElementSibling : held;
  const style = getComputedStyle(node);
  const reach = parseFloat(style.outlineOffset) + parseFloat(style.outlineWidth);
  const at = node.getBoundingClientRect();
  let ground = null, cut = 0;
  for (let outer = node.parentElement; outer; outer = outer.parentElement) {
    const { backgroundColor, overflowX, overflowY } = getComputedStyle(outer);
    if (backgroundColor.startsWith("rgb(")) ground ??= backgroundColor;
    if (outer === document.body || (overflowX === "visible" && overflowY === "visible")) continue;
    const box = outer.getBoundingClientRect();
    // A row that scrolls sideways may show one end of what is in it.
    const ends = [box.left - at.left + reach, at.right + reach - box.right];
    cut = Math.max(cut, box.top - at.top + reach, at.bottom + reach - box.bottom, Math.min(...ends));
  }
  const words = [held.tagName.toLowerCase(), held.ariaLabel ?? held.name, held.textContent.trim().slice(0, 30)];
  const { outlineStyle, outlineWidth, outlineColor: colour } = style;
  return { name: words.join(" "), outline: `${outlineStyle} ${outlineWidth}`, colour, ground, cut };
}"""
# The same of each thing that Tab would come to. Once it was pressed, the browser shows a focus that a script moves.
ALL = f"""(most) => {{
  const kinds = "a[href], button, input, select, textarea, summary, [tabindex='0']";
  const seen = {{ visibilityProperty: true }};
  const isMet = (node) => !node.disabled && node.tabIndex >= 0 && node.checkVisibility(seen);
  const nodes = [...document.querySelectorAll(kinds)].filter(isMet).slice(0, most);
  return nodes.map((node) => (node.focus(), ({FOCUS})()));
}}"""
# Enough to have met each kind of thing on a page that has hundreds of links.
MOST = 60


@pytest.fixture(scope="module")
def campaigns(sqlite_template, tmp_path_factory, evaluators):
    path = shutil.copy(sqlite_template, tmp_path_factory.mktemp("focused") / "store.db")
    with open_store(str(path)) as store:
        disagreeing(store)
        with served(store, evaluators) as base:
            yield base


def luminance(colour):
    values = [float(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    red, green, blue = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def hidden_focus(page):
    """What Tab comes to on a page and shows that too little."""
    wrong, tags = [], set()
    page.keyboard.press("Tab")
    for focus in page.evaluate(ALL, MOST):
        tags.add(focus["name"].split()[0])
        found = contrast(focus["colour"], focus["ground"] or "rgb(255, 255, 255)")
        # Half a pixel is a matter of rounding.
        if not focus["outline"].startswith("solid 2") or found < 3 or focus["cut"] > 0.5:
            wrong.append(f"{focus['name']}: {focus['outline']}, contrast {found:.1f}, cut by {focus['cut']:.1f}")
    assert "a" in tags
    return wrong


def in_both_schemes(page):
    found = {}
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        found[scheme] = hidden_focus(page)
    page.emulate_media(color_scheme="light")
    return {scheme: wrong for scheme, wrong in found.items() if wrong}


def test_a_scored_solution_can_be_read_and_its_focus_is_seen_in_a_step_that_is_edited_too(opened):
    with opened(reduced_motion="reduce") as page:
        score(page, PROBLEM, SOLUTION)
        assert accessibility.in_both_schemes(page, "#result ol.steps > li") == {}
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 1000})
            assert in_both_schemes(page) == {}, width
        for width, step in ((1280, 2), (390, 3)):
            page.set_viewport_size({"width": width, "height": 1000})
            text = page.locator("ol.steps > li .t").nth(step - 1)
            for row in (text, page.get_by_role("button", name=f"Correct step {step}")):
                row.click()
                page.keyboard.press("e")
                focus = page.evaluate(FOCUS)
                assert focus["name"].startswith("textarea")
                assert focus["outline"] == "solid 2px"
                assert focus["cut"] <= 0.5
                page.keyboard.press("Escape")
        page.locator(".keys-button").click()
        assert accessibility.in_both_schemes(page, "dialog.keys") == {}


def test_the_focus_is_seen_around_a_campaign(opened, campaigns):
    with opened(base=campaigns, reduced_motion="reduce") as page:
        for name in ("campaign", "agreement", "adjudicate"):
            page.goto(f"/annotate/{name}?campaign=1")
            listening(page)
            for width in (1280, 390):
                page.set_viewport_size({"width": width, "height": 1000})
                assert in_both_schemes(page) == {}, (name, width)


def test_a_hidden_focus_is_found(page):
    page.goto("/jobs")
    listening(page)
    style = (
        ".places a:focus-visible { outline: none !important } .places { overflow: hidden } form * { --focus: #fff }"
    )
    page.add_style_tag(content=style)
    wrong = hidden_focus(page)
    assert any("Score" in text and "none" in text for text in wrong)
    assert any("Start" in text and "contrast 1" in text for text in wrong)
