"""Pages under axe-core, light and dark: no serious or critical violation, and headings in order. `PAGES` are gone
through in `test_every_page`."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

AXE = Axe()
# Where each page's content is there.
PAGES = {
    "/": "#examples",
    "/evidence": "main h1",
    "/evidence?trace=1": "main h1",
    "/evidence?trace=1&evaluator=mini-causal, read in both orders": ".readings",
    "/evidence?trace=1&present=4": ".presents li.newest",
    "/evidence?trace=1&present=gold": ".presents .g",
    "/browse?trace=abc": "#browse .notice ~ .shelf a.open",
    "/browse?dataset=gallery&gold=error&q=lamps": "#browse mark",
    "/browse?dataset=gallery&gold=error&q=zzz": ".empty a",
    "/browse?dataset=gallery&field=focus&bin=right-0.95": "#browse .distribution .chosen",
    "/browse?trace=1": "ol.steps > li",
    "/results": "main h1",
    "/results?dataset=gallery": "main h1",
    "/results?dataset=gallery&card=mini-bidir": "main table",
    "/data": "main h1",
    "/evaluators": "main h1",
    "/jobs": "main h1",
    "/nowhere": "main h1",
    "/api/v1/docs": "main h1",
}
# Not even a moderate one of these.
NEVER = ("heading-order",)


# What a colour scheme can change.
COLOURS = ("color-contrast", "link-in-text-block")


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


def in_both_schemes(page, there):
    """The violations of a page whose content is there, by colour scheme, where there are some."""
    expect(page.locator(there).first).to_be_visible()
    expect(page.locator("h1")).to_have_count(1)
    expect(page.locator("main [data-again]")).to_have_count(0)
    found = {"light": violations(page)}
    page.emulate_media(color_scheme="dark")
    found["dark"] = violations(page, COLOURS)
    page.emulate_media(color_scheme="light")
    return {scheme: wrong for scheme, wrong in found.items() if wrong}


def test_axe_finds_planted_faults(page):
    page.goto("/browse")
    expect(page.locator("#browse a[data-go]").first).to_be_visible()
    wrong = "<h6>Deep</h6><button></button><img src=data:,><p style='color: #ddd; background: #fff'>Pale</p>"
    page.evaluate("(html) => document.querySelector('main').insertAdjacentHTML('beforeend', html)", wrong)
    found = {text.split(":")[0] for text in violations(page)}
    assert found == {"button-name", "image-alt", "heading-order", "color-contrast"}
