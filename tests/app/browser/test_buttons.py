"""Every button of every page, pressed in a window of 1280 x 720: what changes is on the screen, and an error stands
at the button that was pressed."""

import json
import shutil
import sqlite3
import time
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Download, ElementHandle, Error, Page, Request, Route

from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.access import PAGES
from stepsight.storage.database.store import open_store
from stepsight.storage.people.logins import open_login
from stepsight.storage.people.users import find_user
from tests.app.browser.acts import listening
from tests.app.browser.test_people import enter
from tests.filling import PERSON, fill
from tests.hub import Hub, point_to
from tests.serving import served

pytestmark = pytest.mark.nightly

SIZE = {"width": 1280, "height": 720}
NEAR = 200
"""Pixels that an error may be away from its button, unless a form, a card or a dialog holds both."""
SCORED = "the first example of Score"
VISITED = [
    *(page.path for page in PAGES),
    SCORED,
    "/evidence?trace=2",
    "/evidence?trace=2&present=2",
    "/browse?dataset=gallery&evaluator=mini-bidir&other=mini-causal",
    "/browse?trace=2",
    "/results?dataset=gallery",
    "/annotate/new?dataset=gallery",
    "/annotate/campaign?campaign=1",
    "/annotate/label?campaign=1",
    "/annotate/own?campaign=1",
    "/annotate/agreement?campaign=1",
    "/annotate/adjudicate?campaign=1",
    "/annotate/disputes",
    "/annotate/disputes/1",
    "/annotate/dispute?trace=2&step=1",
    "/login/password",
    "/help",
    "/help/about",
    "/api/v1/docs",
]
# Presses that lead to a button.
DEEPEST = 3
# Milliseconds that a button has until it can be pressed.
PATIENCE = 5000
REFUSAL = {"error": "The server refuses it.", "hint": "Nothing helps."}
FIELDS = "dialog[open] :is(textarea, input), body:not(:has(dialog[open])) main :is(textarea, input)"
SCRIPT = Path(__file__).with_name("buttons.js").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Shelf:
    """A server of a full store, and the file of the store as it was before anything was pressed."""

    address: str
    token: str
    path: Path
    kept: Path

    def restore(self) -> None:
        copy(self.kept, self.path)


def copy(source, target):
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as other:
        one.backup(other)


@contextmanager
def full_shelf(folder, seeded):
    path, kept = folder / "store.db", folder / "kept.db"
    shutil.copy(seeded, path)
    with pytest.MonkeyPatch.context() as patch, Hub().running() as hub, open_store(str(path)) as store:
        point_to(patch, hub.url, folder / "hub")
        patch.setenv("STEPSIGHT_CACHE", str(folder / "cache"))
        fill(store, folder)
        token = open_login(store, find_user(store, PERSON))
        copy(path, kept)
        with served(store, Evaluators()) as address:
            yield Shelf(address, token, path, kept)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory, seeded_file):
    with full_shelf(tmp_path_factory.mktemp("pressed"), seeded_file) as shelf:
        yield shelf


class Presser:
    """Presses the buttons of a page, each in the page as it was just opened, and keeps what is `wrong`."""

    def __init__(self, page: Page, shelf: Shelf, path: str) -> None:
        self.page, self.shelf, self.path = page, shelf, path
        self.wrong: list[str] = []
        self._sent: list[Request] = []
        self._open: set[Request] = set()
        self._downloads = 0
        self._ended = 0.0
        page.on("request", self._begin)
        # Not its end: a page need not read an answer whose status says enough.
        page.on("response", lambda response: self._end(response.request))
        page.on("requestfailed", self._end)
        page.on("download", self._download)

    def _begin(self, request: Request) -> None:
        self._open.add(request)
        self._sent.append(request)

    def _end(self, request: Request) -> None:
        self._open.discard(request)
        self._ended = time.monotonic()

    def _download(self, _: Download) -> None:
        self._downloads += 1

    def press_all(self) -> None:
        """Press every button, and then those that only come to sight by a press."""
        self._visit()
        met = self._names()
        # Those of the frame are the same on all pages.
        frame = self.page.evaluate("[...buttons()].filter(([, button]) => inFrame(button)).map(([name]) => name)")
        waiting = [[name] for name in met if name not in frame or self.path == VISITED[0]]
        while waiting:
            way = waiting.pop(0)
            for name in self._press(way):
                if name not in met and len(way) < DEEPEST:
                    met.append(name)
                    waiting.append([*way, name])

    def _names(self) -> list[str]:
        return self.page.evaluate("[...buttons().keys()]")

    def _visit(self) -> None:
        # One press logs out.
        enter(self.page, self.shelf.address, self.shelf.token)
        # What the last page asked for may never end.
        self._open.clear()
        if self.path == SCORED:
            self.page.goto("/")
            self.path = self.page.locator("#examples a").first.get_attribute("href") or ""
        self.page.goto(self.path)
        listening(self.page)
        self._settle()

    def _settle(self) -> None:
        """Wait until nothing is asked for and nothing changes; ten seconds of something that goes on."""
        for _ in range(200):
            self.page.wait_for_timeout(50)
            # A page that is just left answers nothing.
            with suppress(Error):
                is_quiet = self.page.evaluate(
                    "document.readyState === 'complete' && performance.now() - lastChange > 150"
                )
                if is_quiet and not self._open and time.monotonic() - self._ended > 0.15:
                    return

    def _find(self, name: str) -> bool:
        """Whether the button is there; if so, it is in view, and what a person sees is remembered."""
        return self.page.evaluate("(name) => buttons().has(name) && (remember(buttons().get(name)), true)", name)

    def _reach(self, way: list[str]) -> bool:
        """Press all buttons of a way but the last; whether the last one is there then."""
        self._visit()
        for name in way[:-1]:
            if not self._find(name):
                return False
            self._click()
        return self._find(way[-1])

    def _click(self) -> None:
        self._sent.clear()
        self._downloads = 0
        self._target().click(timeout=PATIENCE)
        self._settle()
        if any(request.method != "GET" and "/gradio_api/" not in request.url for request in self._sent):
            self.shelf.restore()

    def _target(self) -> ElementHandle:
        target = self.page.evaluate_handle("was.button").as_element()
        assert target is not None
        return target

    def _press(self, way: list[str]) -> list[str]:
        """Go a way and look at what its last press does; returns the buttons that are there then."""
        if not self._reach(way):
            return []
        address = self.page.url
        self._click()
        if self._downloads or not self._has_stayed():
            return []
        has_asked = any(not _is_poll(request) for request in self._sent)
        if self._look(way) or self.page.evaluate("Boolean(document.querySelector(':user-invalid'))"):
            self._fill()
            if self._find(way[-1]):
                self._click()
                if self._has_stayed():
                    self._look(["filled", *way], again=True)
        names = self._names() if self.page.url == address else []
        if has_asked:
            self._refuse(way)
        return names

    def _has_stayed(self) -> bool:
        """False if another document was loaded, from its beginning."""
        return self.page.evaluate("'was' in window")

    def _look(self, way: list[str], *, again: bool = False) -> bool:
        """Complain of what a press has not shown, `again` unless an error is still there; whether it led to any."""
        wrong = "" if self._comes("!compare()") else self.page.evaluate("compare()")
        if wrong and not (again and self.page.evaluate("alerts().length")):
            self._complain(way, wrong)
        errors = self.page.evaluate("errors()")
        for text, far in errors:
            if far > NEAR:
                self._complain(way, f"an error {far} px away: {text}")
        return bool(errors)

    def _comes(self, condition: str) -> bool:
        """True if a condition holds within two seconds: a busy machine draws late."""
        for _ in range(20):
            if self.page.evaluate(condition):
                return True
            self.page.wait_for_timeout(100)
        return False

    def _fill(self) -> None:
        """Fill what is empty and choose what is required."""
        for field in self.page.locator(FIELDS).all():
            kind = field.get_attribute("type") or "text"
            if kind in ("checkbox", "radio") and field.get_attribute("required") is not None:
                field.check()
            elif kind in ("text", "search", "password") and field.is_visible() and not field.input_value():
                field.fill("It is 1 + 1 = 3.")
        self._settle()

    def _refuse(self, way: list[str]) -> None:
        """Go a way again, with a server that refuses what the last press asks for."""
        if not self._reach(way):
            return
        refused = []

        def refuse(route: Route) -> None:
            if route.request.resource_type not in ("fetch", "xhr") or _is_poll(route.request):
                return route.continue_()
            refused.append(route.request.url)
            return route.fulfill(status=409, content_type="application/json", body=json.dumps(REFUSAL))

        self.page.route("**/*", refuse)
        try:
            self._click()
        finally:
            self.page.unroute_all()
        if not refused or not self._has_stayed():
            return
        is_told = self._comes(f"errors().some(([text]) => text.includes({json.dumps(REFUSAL['error'])}))")
        self._look(way)
        if not is_told:
            self._complain(way, "says nothing of a refusal")

    def _complain(self, way: list[str], wrong: str) -> None:
        self.wrong.append(f"{' > '.join(way)}: {wrong}")


def _is_poll(request):
    """Whether a page asks this again and again by itself."""
    return request.url.endswith(("/state", "/list"))


@contextmanager
def pressing(opened, shelf, path):
    with opened(base=shelf.address, expected=["status of 4"], **SIZE) as page:
        page.add_init_script(SCRIPT)
        yield Presser(page, shelf, path)


@pytest.mark.parametrize("path", VISITED)
def test_what_a_press_changes_is_on_the_screen(opened, shelf, path):
    with pressing(opened, shelf, path) as presser:
        presser.press_all()
        assert presser.wrong == []


PLANTED = """addEventListener("DOMContentLoaded", () => {
  document.querySelector("main").insertAdjacentHTML("afterbegin", "<button class=idle>Idle</button>"
    + "<button class=far>Far</button><button class=wrong>Wrong</button><button class=right>Right</button>");
  const put = (place, html) => document.querySelector("main").insertAdjacentHTML(place, html);
  const acts = {
    far: () => put("beforeend", "<div style='margin-top: 3000px; height: 400px'>Done</div>"),
    wrong: () => put("afterbegin", "<p role=alert style='position: fixed; bottom: 0'>No</p>"),
    right: () => put("afterbegin", "<p role=alert>No</p>"),
  };
  addEventListener("click", ({ target }) => acts[target.className]?.());
});"""


def test_presses_without_effect_in_sight_and_far_errors_are_found(opened, shelf):
    with pressing(opened, shelf, "/help/about") as presser:
        presser.page.add_init_script(PLANTED)
        presser.press_all()
        # What was planted would be in the next page of this window too.
        presser.page.close()
    found = {
        way.removeprefix("filled > ").split()[1]: wrong
        for way, _, wrong in (one.partition(": ") for one in presser.wrong)
    }
    assert [(name, found[name].split(" at ")[0]) for name in found] == [
        ("idle", "nothing changes"), ("far", "out of sight"), ("wrong", found["wrong"]),
    ]  # fmt: skip
    assert found["wrong"].startswith("an error ")
