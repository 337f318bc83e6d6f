"""Rules of access: the rights that routes say they need, and a list of what Gradio and FastAPI add.

What neither names is not there, above all what Gradio answers of its own accord: it would store files of the
visitor, fetch others for him, or tell what the server does.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Mount, compile_path

from stepsight.app.access.pages import PAGES
from stepsight.app.access.rights import LOOKING, Needs, Right

LOGIN = "/login"
API = "/api/v1"


@dataclass(frozen=True)
class Rule:
    """Which rights let somebody ask for a path in one of the `methods`, any of them.

    No right at all: it is for whoever asks. None: so it is, and the same for everybody, with nothing that the store
    holds; who asks is not looked up.
    """

    methods: frozenset[str]
    path: re.Pattern[str]
    rights: frozenset[Right] | None


def _rule(method: str, path: str, rights: Iterable[Right] | None) -> Rule:
    return Rule(frozenset({method}), re.compile(path), None if rights is None else frozenset(rights))


# Paths are regular expressions.
_STATIC = tuple(
    _rule("GET", path, None)
    for path in ("/stepsight/(?s:.+)", "/assets/(?s:.+)", "/theme.css", "/favicon.ico", "/healthz")
)
_ADDED = (
    *(_rule("GET", page.path, {page.right}) for page in PAGES if page.name == "Score"),
    # What an event of a page does beyond looking, it checks itself.
    _rule("POST", "/gradio_api/run/(split|write|score|open|save)", LOOKING),
    _rule("GET", f"{API}/openapi.json", LOOKING),
)


class Rules:
    """The rules of an application, whose routes say by `app.access.rights.Needs` who may ask for them."""

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        self.rules = (*_STATIC, *_ADDED, *_declared(routes))

    def find(self, method: str, path: str) -> Rule | None:
        """The first rule for a request; None where nothing is to be found there."""
        wanted = "GET" if method == "HEAD" else method
        return next((rule for rule in self.rules if wanted in rule.methods and rule.path.fullmatch(path)), None)

    def methods(self, path: str) -> list[str]:
        """The methods that a path takes."""
        return sorted({method for rule in self.rules if rule.path.fullmatch(path) for method in rule.methods})


def _declared(routes: Sequence[BaseRoute], prefix: str = "") -> Iterator[Rule]:
    for route in routes:
        # FastAPI keeps a router that was included as one route.
        included = getattr(route, "original_router", None)
        if included is not None:
            yield from _declared(included.routes, prefix)
        elif isinstance(route, Mount):
            yield from _declared(route.routes or (), prefix + route.path)
        elif isinstance(route, APIRoute):
            needs = [one.call for one in route.dependant.dependencies if isinstance(one.call, Needs)]
            if needs:
                rights = frozenset[Right]().union(*(one.rights for one in needs))
                yield Rule(frozenset(route.methods or ()), compile_path(prefix + route.path)[0], rights)
