"""What holds for all pages, looked at on one: axe-core in light and dark, and the focus that a person follows."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

AXE = Axe()
# Not even a moderate one of these.
NEVER = ("heading-order",)
# What a colour scheme can change.
COLOURS = ("color-contrast", "link-in-text-block")
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


def violations(page, rules=()):
    """What axe-core calls serious or critical: the rule, the first element, and what is wrong with it. All of its
    rules, or those named."""
    options = {"resultTypes": ["violations"]} | ({"runOnly": list(rules)} if rules else {})
    # Half a megabyte of script, once for a document; and of what it finds, only what is asked for.
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.axe_script)
    found = page.evaluate("async (options) => (await axe.run(options)).violations", options)
    return [
        f"{rule['id']}: {node['html'][:160]} {node['failureSummary'][:300]}"
        for rule in found
        if rule["impact"] in ("serious", "critical") or rule["id"] in NEVER
        for node in rule["nodes"][:3]
    ]


def settled(page, there):
    """Wait until the content of a page is there, and nothing of it is still computed."""
    expect(page.locator(there).first).to_be_visible()
    expect(page.locator("h1")).to_have_count(1)
    expect(page.locator("main [data-again]")).to_have_count(0)


def in_both_schemes(page, there):
    """The violations of a page whose content is there, by colour scheme, where there are some."""
    settled(page, there)
    found = {"light": violations(page)}
    page.emulate_media(color_scheme="dark")
    found["dark"] = violations(page, COLOURS)
    page.emulate_media(color_scheme="light")
    return {scheme: wrong for scheme, wrong in found.items() if wrong}


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


def hidden_focus_in_both_schemes(page):
    found = {}
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        found[scheme] = hidden_focus(page)
    page.emulate_media(color_scheme="light")
    return {scheme: wrong for scheme, wrong in found.items() if wrong}
