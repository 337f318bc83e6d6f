"""Access rules: the list of pages, rules built from the rights that routes declare, and rules for Gradio's and
FastAPI's own routes.

A path that no rule covers is treated as missing. This matters above all for Gradio's own routes, some of which
would store a visitor's files, fetch files on the visitor's behalf, or reveal what the server is doing.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Mount, compile_path

from stepsight.app.access.rights import LOOKING, RequiresRight, Right
from stepsight.core.scoring.client import API

LOGIN = "/login"


class Page(NamedTuple):
    """A page with its name, its path, and the right needed to open it."""

    name: str
    path: str
    right: Right


PAGES = (
    Page("Score", "/", Right.SCORE),
    Page("Evidence", "/evidence", Right.READ),
    Page("Browse", "/browse", Right.READ),
    Page("Results", "/results", Right.READ),
    Page("Annotate", "/annotate", Right.ENTER),
    Page("Data", "/data", Right.READ),
    Page("Evaluators", "/evaluators", Right.READ),
    Page("Jobs", "/jobs", Right.READ),
    Page("People", "/people", Right.MANAGE),
)
"""The pages of the workbench, in the order of the navigation bar."""


@dataclass(frozen=True)
class Rule:
    """A rule that allows requests to a path.

    A request must use one of the `methods`, and its sender must have at least one of the `rights`. If `rights` is
    empty, everybody may send the request. If `rights` is None, the response is also the same for everybody and
    contains nothing from the store, so the sender is not looked up.
    """

    methods: frozenset[str]
    path: re.Pattern[str]
    rights: frozenset[Right] | None


def _rule(method: str, path: str, rights: Iterable[Right] | None) -> Rule:
    return Rule(frozenset({method}), re.compile(path), None if rights is None else frozenset(rights))


# Paths are regular expressions.
_STATIC = tuple(
    _rule("GET", path, None)
    for path in (
        "/stepsight/(?s:.+)",
        "/favicon.ico",
        "/healthz",
        "/help(/[a-z-]+)?",
    )
)
# What the demo's page and `gradio_client` need of Gradio: no route that takes, fetches or gives files of others.
_DEMO = tuple(
    _rule(method, f"/demo/{path}", {Right.SCORE})
    for method, path in (
        ("GET", "((assets|static)/(?s:.+)|theme.css|favicon.ico|config)?"),
        ("GET", "gradio_api/(info|queue/data|call/score/[0-9a-f]+)"),
        ("POST", "gradio_api/(queue/join|cancel|component_server/|run/predict|call/score)"),
    )
)
_ADDED = (_rule("GET", f"{API}/openapi.json", LOOKING),)


class Rules:
    """The access rules of an application, collected from the `RequiresRight` declarations of its routes."""

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        self.rules = (*_STATIC, *_DEMO, *_ADDED, *_declared(routes))

    def find(self, method: str, path: str) -> Rule | None:
        """Return the first rule that matches the method and path of a request, or None if no rule does."""
        wanted = "GET" if method == "HEAD" else method
        return next((rule for rule in self.rules if wanted in rule.methods and rule.path.fullmatch(path)), None)

    def methods(self, path: str) -> list[str]:
        """Return the methods that a path accepts, in alphabetical order."""
        return sorted({method for rule in self.rules if rule.path.fullmatch(path) for method in rule.methods})


def _declared(routes: Sequence[BaseRoute], prefix: str = "") -> Iterator[Rule]:
    for route in routes:
        # FastAPI keeps an included router as a single route.
        included = getattr(route, "original_router", None)
        if included is not None:
            yield from _declared(included.routes, prefix)
        elif isinstance(route, Mount):
            yield from _declared(route.routes or (), prefix + route.path)
        elif isinstance(route, APIRoute):
            needs = [one.call for one in route.dependant.dependencies if isinstance(one.call, RequiresRight)]
            if needs:
                rights = frozenset[Right]().union(*(one.rights for one in needs))
                yield Rule(frozenset(route.methods or ()), compile_path(prefix + route.path)[0], rights)
