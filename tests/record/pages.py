"""The outline of every page for each role: its headings, where its links lead, its tables, forms and buttons."""

import re
import time
from html.parser import HTMLParser

from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.access import COOKIE
from stepsight.storage.database.store import open_store
from stepsight.storage.people.logins import open_login
from stepsight.storage.people.users import Role, find_user
from tests.app.client import PAGE, asking

PATHS = """
    / /evidence /evidence?trace=1 /evidence?trace=60 /evidence?trace=1&present=4 /evidence?dataset=synthetic
    /evidence?dataset=control /browse /browse?dataset=gallery /browse?dataset=synthetic
    /browse?dataset=synthetic&gold=error&evaluator=1 /browse?dataset=gallery&q=lamps /browse?dataset=gallery&q=zzz
    /browse?dataset=synthetic&evaluator=1&with=2 /browse?trace=1 /browse?trace=50 /browse?trace=60 /browse?trace=abc
    /results /results?dataset=gallery /results?dataset=synthetic /results?dataset=sums
    /data /jobs /people /help /help/score /help/browse /login /login/password
    /annotate /annotate/new?dataset=gallery /annotate/campaign?campaign=1 /annotate/campaign?campaign=3
    /annotate/agreement?campaign=1 /annotate/agreement?campaign=2 /annotate/adjudicate?campaign=1
    /annotate/label?campaign=1 /annotate/disputes /annotate/dispute?trace=1 /annotate/export?campaign=1
    /annotate/own /changes/dataset?name=sums /api/v1/docs /api/v1/evaluators /api/v1/datasets
    /api/v1/jobs /healthz /nowhere
"""
NOBODY = "nobody"
# The same on every page, but for each role another one.
_NAVIGATION = re.compile(r'<nav class="top".*?</nav>', re.DOTALL)
_PATIENCE = 60.0


def record(scene):
    """Yield the outline of each page, once for all roles that see the same, and of the navigation bar for each, and
    the description of the API."""
    with scene.copy() as copied, open_store(copied.store) as store:
        logins = {role.value: f"{COOKIE}={open_login(store, find_user(store, role.value))}" for role in Role}
        with asking(store, Evaluators()) as client:
            yield "openapi.json", client.get("/api/v1/openapi.json", headers={"cookie": logins["admin"]}).text
            bars = {
                role: _NAVIGATION.findall(client.get("/help/about", headers={"cookie": login}).text)
                for role, login in {**logins, NOBODY: ""}.items()
            }
            yield "navigation.txt", "\n\n".join(f"== for {role}\n{outline(bar)}" for role, (bar,) in bars.items())
            for path in PATHS.split():
                seen: dict[str, list[str]] = {}
                for role in (*logins, NOBODY):
                    headers = PAGE | ({"cookie": logins[role]} if role != NOBODY else {})
                    answer = _settled(client, path, headers)
                    kind = answer.headers.get("content-type", "").partition(";")[0]
                    head = f"{answer.status_code} {kind} {answer.headers.get('location', '')}".rstrip()
                    body = outline(_NAVIGATION.sub("", answer.text)) if kind == "text/html" else answer.text
                    seen.setdefault(scene.steady(f"{head}\n{body}"), []).append(role)
                name = re.sub(r"[^\w=.&-]+", "_", path.strip("/")) or "score"
                texts = (f"== {path} for {', '.join(roles)}\n{text}" for text, roles in seen.items())
                yield f"pages/{name}.txt", "\n\n".join(texts)


def _settled(client, path, headers):
    """Return the page once nothing on it is being computed."""
    end = time.monotonic() + _PATIENCE
    while True:
        client.cookies.clear()
        answer = client.get(path, headers=headers, follow_redirects=False)
        if "data-again" not in answer.text or time.monotonic() > end:
            return answer
        time.sleep(0.2)


class _Outline(HTMLParser):
    """Reads a page into lines, one for each part that a person acts on or finds their way by."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._open: list[tuple[str, dict[str, str | None], list[str]]] = []
        self._rows = 0

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        if tag == "input":
            shown = " ".join(f"{key}={values[key]}" for key in ("type", "name", "value") if values.get(key))
            self.lines.append(f"input {shown}{' checked' if 'checked' in values else ''}")
        elif tag == "form":
            self.lines.append(f"form {values.get('method', 'get')} {values.get('action', '')}")
        elif tag == "table":
            self._rows = 0
            self.lines.append("table")
        elif tag == "tr":
            self._rows += 1
        if tag in _NAMED:
            self._open.append((tag, values, []))

    def handle_data(self, data: str) -> None:
        for _, _, texts in self._open:
            texts.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "table":
            self.lines.append(f"{self._rows} rows")
        if not (self._open and self._open[-1][0] == tag):
            return
        _, values, texts = self._open.pop()
        text = " ".join("".join(texts).split())
        where = {"a": "href", "select": "name", "textarea": "name", "button": "name"}.get(tag, "")
        target = values.get(where) or ""
        chosen = " selected" if "selected" in values else ""
        self.lines.append(f"{_NAMED[tag]} {text!r}{' -> ' if target else ''}{target}{chosen}")


_NAMED = {
    "title": "title", "h1": "h1", "h2": "h2", "h3": "h3", "a": "link", "button": "button", "th": "column",
    "option": "option", "textarea": "textarea", "summary": "more", "legend": "group", "label": "label",
    "caption": "caption",
}  # fmt: skip


def outline(html):
    """Return the outline of a page, a line for each heading, link, control, column and table."""
    reader = _Outline()
    reader.feed(html)
    return "\n".join(reader.lines)
