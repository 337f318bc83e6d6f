"""Whether a click or a key is ever lost, and whether pages go on by themselves after the server was away.

    python -m tests.benchmarks.clicks

Every page in headless Chromium, while as many processes as there are cores do nothing but compute: bursts of real
clicks and keys, some in the very frame in which the last answer is drawn, at least `LEAST` in all. What stands
there at the end tells how many counted. Then the server is stopped for `AWAY` seconds under every page at once; in
each a click waits for it. Exits with 1 where anything was lost, where a page needed to be loaded again, or did not
go on within `LIMIT` seconds of the server's return.
"""

import multiprocessing
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright
from sqlalchemy import func, select

from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.scoring.gallery_seed import seed
from stepsight.core.trace import Trace
from stepsight.storage.database.labelling_schema import EventRow
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.labelling.campaigns import create_campaign
from stepsight.storage.labelling.plan import CampaignPlan
from stepsight.storage.people.users import local_user
from stepsight.storage.traces.writer import save_trace
from stepsight.training.evaluate.gallery import DATASET
from tests.browser import launch, until
from tests.serving import served

LEAST = 1000
AWAY = 10.0
LIMIT = 3.0
LABELLED, STEPS = 15, 20
_PATIENCE = 60_000
# Seconds for which a page may go on drawing.
_SETTLED = 20.0
expect.set_options(timeout=_PATIENCE)

Lost = tuple[int, int]
"""How many clicks and keys there were, and how many did not count."""


def _compute() -> None:
    while True:
        pass


@contextmanager
def loaded_machine() -> Iterator[None]:
    """Every core is busy meanwhile."""
    busy = [multiprocessing.Process(target=_compute, daemon=True) for _ in range(os.cpu_count() or 1)]
    for process in busy:
        process.start()
    yield
    for process in busy:
        process.terminate()


def _missing(read: Callable[[], int], wanted: int) -> int:
    """By how much something is not what it should be at last."""
    end = time.monotonic() + _SETTLED
    while (found := read()) != wanted and time.monotonic() < end:
        time.sleep(0.05)
    return abs(found - wanted)


_FOCUSED = "[...document.querySelectorAll('a.open')].indexOf(document.activeElement)"


def browse(page: Page, store: Store) -> Lost:
    """Through the list by key, and from trace to trace, without waiting for what is drawn."""
    page.goto(f"/browse?dataset={DATASET}")
    page.locator("a.open").first.wait_for()
    done = lost = 0
    for burst in (1, 3, 7, 12, 20, 9):
        page.reload(wait_until="commit")
        page.locator("a.open").first.wait_for()
        for _ in range(burst):
            page.keyboard.press("j")
        lost += _missing(lambda: int(page.evaluate(_FOCUSED)), burst - 1)
        done += burst
    page.locator("a.open").first.click()
    page.wait_for_url("**trace=*")
    for burst in (5, 10, 15, 8):
        start = _place(page)
        for _ in range(burst):
            page.keyboard.press("j")
        lost += _missing(lambda: _place(page), start + burst)
        done += burst
    return done, lost


def _place(page: Page) -> int:
    """The number of the trace that is open, as its pager tells it."""
    place = page.locator(".pager .place").first
    expect(place).to_have_text(re.compile(r"^[\d,]+ of"))
    return int(place.inner_text().split()[0].replace(",", ""))


def label(page: Page, store: Store) -> Lost:
    """Every step of some traces gets a label, as fast as keys go; each is in the store then."""
    traces = [Trace.of(f"Count {i}.", [f"{i} and {k}." for k in range(STEPS)]) for i in range(LABELLED)]
    for trace in traces:
        save_trace(store, trace, "labelled")
    plan = CampaignPlan(name="clicks", dataset="labelled", guideline="Say whether it is right.", after_error=True)
    made = create_campaign(store, plan, local_user(store))
    for _ in range(LABELLED):
        page.goto(f"/relabel/label?campaign={made.id}", wait_until="commit")
        page.locator("ol.steps > li[aria-current]").wait_for()
        for k in range(STEPS):
            page.keyboard.press("13"[k % 2])
        expect(page.locator(".status")).to_contain_text("all saved")
        expect(page.locator("ol.steps > li[data-said]:not([data-said=''])")).to_have_count(STEPS)
        page.get_by_role("button", name="Submit").first.click()
        page.wait_for_timeout(300)
    with store.read() as session:
        stored = session.scalar(select(func.count()).select_from(EventRow).where(EventRow.kind == "label")) or 0
    return LABELLED * STEPS, LABELLED * STEPS - stored


# In the frame in which a result is drawn another solution is entered, and the button pressed.
_IN_THE_FRAME = """(texts) => new Promise((resolve) => {
  const box = document.querySelector("#solution textarea");
  const next = () => {
    box.value = texts.shift();
    box.dispatchEvent(new Event("input", { bubbles: true }));
    document.querySelector("#score").click();
  };
  const watch = new MutationObserver(() => {
    if (texts.length) return next();
    watch.disconnect();
    resolve();
  });
  watch.observe(document.querySelector("#result"), { childList: true });
  next();
})"""


def score(page: Page, store: Store) -> Lost:
    """Presses of the button while an answer is on its way and in the frame of one; keys in the list of steps."""
    page.goto("/")
    page.get_by_label("Problem").fill("What is 1 + 1?")
    done = lost = 0
    button = page.locator("#score")
    for number in range(30):
        for part in range(4):
            page.get_by_label("Solution").fill(f"1. Round {number}.\n2. Part {part}.")
            button.click()
        done += 4
        lost += not _shows(page, f"Part {part}.", f"Round {number}.")
    for number in range(10):
        texts = [f"1. Frame {number}.\n2. Number {part}." for part in range(14)]
        page.evaluate(_IN_THE_FRAME, texts)
        done += len(texts)
        lost += not _shows(page, "Number 13.", f"Frame {number}.")
    page.get_by_label("Solution").fill("\n".join(f"{k}. Item {k}." for k in range(1, 31)))
    expect(page.locator("ol.preview > li")).to_have_count(30)
    page.get_by_role("button", name="Correct step 1", exact=True).click()
    for burst in (10, 5, 9):
        for _ in range(burst):
            page.keyboard.press("Alt+ArrowDown")
        done += burst
    lost += _missing(lambda: _listed(page), 24)
    for _ in range(24):
        page.keyboard.press("Control+z")
    done += 24
    lost += _missing(lambda: _listed(page), 0)
    slider = page.get_by_label("Valid from")
    slider.focus()
    for _ in range(40):
        page.keyboard.press("ArrowRight")
    return done + 40, lost + _missing(lambda: round(100 * float(slider.input_value())), 90)


def _listed(page: Page) -> int:
    """Where in the list the step stands that was the first."""
    texts = page.locator("ol.preview > li .t").all_inner_texts()
    return texts.index("Item 1.") if "Item 1." in texts else -1


def _shows(page: Page, last: str, first: str) -> bool:
    """Whether the result becomes that of these steps."""
    rows = page.locator("#result ol.steps > li .t")
    try:
        expect(rows.last).to_contain_text(last, timeout=15_000)
        expect(rows.first).to_contain_text(first, timeout=15_000)
    except AssertionError:
        return False
    return True


def evidence(page: Page, store: Store) -> Lost:
    """Steps taken back and revealed again, and traces of the gallery, by key."""
    done = lost = 0
    page.goto("/evidence")
    page.locator(".page a[href*='trace=']").first.click()
    slider = page.get_by_label("Steps revealed")
    for _ in range(10):
        last = int(slider.get_attribute("max") or 0)
        slider.focus()
        for key, steps in (("ArrowLeft", last - 1), ("ArrowRight", last - 2)):
            for _ in range(steps):
                page.keyboard.press(key)
            done += steps
        lost += _missing(lambda: int(slider.input_value()), last - 1)
        was = page.url
        page.locator("h1").first.evaluate("() => document.activeElement.blur()")
        page.keyboard.press("j")
        done += 1
        try:
            until(page, "was => !location.href.startsWith(was.split('&after')[0])", arg=was, seconds=8)
        except Exception:
            lost += 1
        page.wait_for_timeout(700)
    return done, lost


def results(page: Page, store: Store) -> Lost:
    """Another figure and mode chosen again and again; the last is what the address and the page say."""
    page.goto("/results")
    done = lost = 0
    for _ in range(40):
        for index in (1, 2, 0, 3):
            page.get_by_label("Figure").select_option(index=index)
            done += 1
        lost += _missing(lambda: page.get_by_label("Figure").input_value() in page.url, True)
    return done, lost


def jobs(page: Page, store: Store) -> Lost:
    """A job cancelled and resumed, each time as soon as the button is there."""
    page.goto("/jobs")
    page.get_by_label("Evaluator").select_option("mini-causal")
    page.get_by_role("button", name="Start").click()
    row = page.locator("ol.jobs > li").first
    done = lost = 0
    for _ in range(20):
        for act, state in (("Cancel", "cancelled"), ("Resume", "waiting")):
            row.get_by_role("button", name=act).click()
            done += 1
            try:
                expect(row.locator(".state")).to_have_text(state, timeout=15_000)
            except AssertionError:
                lost += 1
    row.get_by_role("button", name="Cancel").click()
    return done + 1, lost


WALKS: dict[str, Callable[[Page, Store], Lost]] = {
    "Browse": browse,
    "Relabel": label,
    "Score": score,
    "Evidence": evidence,
    "Results": results,
    "Jobs": jobs,
}
# What each page is asked while nobody answers, and what is there once somebody does.
ASKED: dict[str, tuple[str, Callable[[Page], object], Callable[[Page], object]]] = {
    "Score": (
        "/",
        lambda page: page.locator("#score").click(),
        lambda page: expect(page.locator("#result ol.steps > li")).to_have_count(2),
    ),
    "Evidence": (
        "/evidence",
        lambda page: page.locator("nav.kinds a").last.click(),
        lambda page: expect(page.locator("nav.kinds a").last).to_have_attribute(
            "aria-current", re.compile("true|page")
        ),
    ),
    "Browse": (
        f"/browse?dataset={DATASET}",
        lambda page: page.locator("a.open").first.click(),
        lambda page: expect(page.locator("ol.steps > li").first).to_be_visible(),
    ),
    "Results": (
        "/results",
        lambda page: page.get_by_label("Figure").select_option("sol_f1"),
        lambda page: expect(page.locator(".finding .caption")).to_contain_text("Sol-F1"),
    ),
    "Jobs": (
        "/jobs",
        lambda page: page.get_by_role("button", name="Start").click(),
        lambda page: expect(page.locator("ol.jobs > li")).to_have_count(2),
    ),
    "Relabel": (
        "/relabel/label?campaign=2",
        lambda page: page.keyboard.press("3"),
        lambda page: expect(page.locator(".status")).to_contain_text("all saved"),
    ),
}


def outage(browser: Browser, store: Store, evaluators: Evaluators) -> bool:
    """Print how long each page takes after the server's return; whether all were in time, without being loaded
    again."""
    save_trace(store, Trace.of("One more.", ["It is.", "So."]), "more")
    plan = CampaignPlan(name="away", dataset="more", guideline="Say whether it is right.")
    create_campaign(store, plan, local_user(store))
    with ExitStack() as first:
        base = first.enter_context(served(store, evaluators))
        pages = {name: browser.new_page(base_url=base) for name in ASKED}
        for name, (path, _, _) in ASKED.items():
            pages[name].goto(path)
            pages[name].wait_for_load_state()
            pages[name].evaluate("window.sameDocument = true")
        pages["Score"].get_by_label("Problem").fill("What is 1 + 1?")
        pages["Score"].get_by_label("Solution").fill("1. It is 2.\n2. It is 3.")
        pages["Results"].wait_for_timeout(5000)
    for name, (_, ask, _) in ASKED.items():
        ask(pages[name])
    time.sleep(AWAY)
    is_said = {name: bool(page.get_by_text("does not answer").count()) for name, page in pages.items()}
    is_good = True
    with served(store, evaluators, port=int(base.rsplit(":", 1)[1])):
        start = time.monotonic()
        for name, (_, _, check) in ASKED.items():
            check(pages[name])
            took = time.monotonic() - start
            same = bool(pages[name].evaluate("window.sameDocument === true"))
            is_good &= took <= LIMIT and same
            print(f"{name:10} goes on {took:.1f} s after the return, said so: {is_said[name]}, same page: {same}")
    return is_good


def main() -> int:
    """Print what was lost and how the pages went on; returns the exit code."""
    done = lost = 0
    with open_store(str(Path(tempfile.mkdtemp()) / "store.db")) as store, sync_playwright() as playwright:
        evaluators = Evaluators()
        seed(store, evaluators, evaluators.names)
        browser = launch(playwright)
        with served(store, evaluators) as base, loaded_machine():
            for name, walk in WALKS.items():
                page = browser.new_page(base_url=base)
                page.set_default_timeout(_PATIENCE)
                clicks, gone = walk(page, store)
                page.close()
                print(f"{name:10} {clicks:4} clicks and keys on a loaded machine, {gone} lost", flush=True)
                done, lost = done + clicks, lost + gone
        print(f"{'all':10} {done:4} clicks and keys, {lost} lost")
        is_good = outage(browser, store, evaluators)
        browser.close()
    return 0 if lost == 0 and done >= LEAST and is_good else 1


if __name__ == "__main__":
    sys.exit(main())
