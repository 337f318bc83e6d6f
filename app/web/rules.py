"""Which right every route asks for."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from stepsight.app.web.rights import Right

LOGIN = "/login"
API = "/api/v1"
_ENTER, _READ, _SCORE, _WRITE = (Right.ENTER,), (Right.READ,), (Right.SCORE,), (Right.WRITE,)
_LABEL, _ADJUDICATE, _MANAGE = (Right.LABEL,), (Right.ADJUDICATE,), (Right.MANAGE,)
_LOOK = _READ + _SCORE
_ANYBODY: tuple[Right, ...] = ()
_STATIC = None

# Methods, path and rights as in `Rule`; `{}` is a part of a path, `{#}` a number, `{*}` one or more
# parts. What is not here is not there,
# above all what Gradio answers of its own accord: it would store files of the visitor, fetch others for him, or
# tell what the server does.
_TABLE: tuple[tuple[str, str, tuple[Right, ...] | None], ...] = (
    ("GET", "/stepsight/{*}", _STATIC),
    ("GET", "/assets/{*}", _STATIC),
    ("GET", "/static/{*}", _STATIC),
    ("GET", "/theme.css", _STATIC),
    ("GET", "/favicon.ico", _STATIC),
    ("GET POST", LOGIN, _ANYBODY),
    ("GET", f"{LOGIN}/who", _ANYBODY),
    ("GET POST", f"{LOGIN}/password", _ENTER),
    ("POST", "/logout", _ANYBODY),
    ("GET", "/", _SCORE),
    ("GET", "/score/result.json", _SCORE),
    ("GET", "/score/result.csv", _SCORE),
    ("GET", "/evidence", _READ),
    ("GET", "/evidence/", _READ),
    ("GET", "/evidence/left-out", _READ),
    ("GET", "/evidence/file", _READ),
    ("GET", "/browse", _READ),
    ("GET", "/browse/", _READ),
    ("GET", "/browse/trace.json", _READ),
    ("GET", "/browse/trace.csv", _READ),
    ("GET", "/results", _READ),
    ("GET", "/results/", _READ),
    ("GET", "/results/table", _READ),
    ("GET", "/results/report", _READ),
    ("GET", "/jobs", _READ),
    ("GET", "/jobs/", _READ),
    ("GET", "/jobs/list", _READ),
    # What an event of a page does beyond looking, it checks itself.
    ("POST", "/gradio_api/run/predict", _LOOK),
    ("GET", "/gradio_api/heartbeat/{}", _LOOK),
    ("POST", f"{API}/score", _SCORE),
    ("GET", f"{API}/evaluators", _LOOK),
    ("GET", f"{API}/datasets", _READ),
    ("GET", f"{API}/datasets/{{*}}/traces", _READ),
    ("GET", f"{API}/traces/{{}}", _READ),
    ("GET", f"{API}/jobs", _READ),
    ("GET", f"{API}/jobs/{{}}", _READ),
    ("POST", f"{API}/jobs", _WRITE),
    ("POST", f"{API}/jobs/{{}}/cancel", _WRITE),
    ("POST", f"{API}/jobs/{{}}/resume", _WRITE),
    ("GET", f"{API}/docs", _LOOK),
    ("GET", f"{API}/openapi.json", _LOOK),
    ("GET", "/relabel", _ENTER),
    ("GET", "/relabel/label", _LABEL),
    ("GET", "/relabel/label/steps", _LABEL),
    ("GET", "/relabel/label/guideline", _LABEL),
    ("GET", "/relabel/slots/{#}", _LABEL),
    ("POST", "/relabel/slots/{#}/events", _LABEL),
    ("POST", "/relabel/slots/{#}/undo", _LABEL),
    ("POST", "/relabel/slots/{#}/redo", _LABEL),
    ("POST", "/relabel/campaigns/{#}/claim", _LABEL),
    ("GET", "/relabel/new", _MANAGE),
    ("GET", "/relabel/campaign", _MANAGE),
    ("POST", "/relabel/campaigns", _MANAGE),
    ("POST", "/relabel/campaigns/{#}/guideline", _MANAGE),
    ("POST", "/relabel/campaigns/{#}/close", _MANAGE),
    ("GET", "/relabel/agreement", _READ + _ADJUDICATE),
    ("GET", "/relabel/adjudicate", _ADJUDICATE),
    ("POST", "/relabel/adjudicate/decisions", _ADJUDICATE),
    # Of which traces somebody may see disputes, these check themselves.
    ("GET", "/relabel/disputes", _READ + _LABEL),
    ("GET", "/relabel/disputes/patch", _READ),
    ("GET", "/relabel/disputes/{#}", _READ + _LABEL),
    ("GET", "/relabel/dispute", _LABEL),
    ("POST", "/relabel/disputes", _LABEL),
    ("POST", "/relabel/disputes/{#}/entries", _LABEL),
)


@dataclass(frozen=True)
class Rule:
    """Which rights let somebody ask for a path in one of the `methods`, any of them.

    No right at all: it is for whoever asks. None: so it is, and the same for everybody, with nothing of the store;
    who asks is not looked up.
    """

    methods: frozenset[str]
    path: re.Pattern[str]
    rights: frozenset[Right] | None


def _rule(methods: str, path: str, rights: Iterable[Right] | None) -> Rule:
    pattern = re.escape(path).replace(r"\{\*\}", "(?s:.+)").replace(r"\{\}", "[^/]+")
    # What is longer is no number of anything here, and Python refuses to read it as one at all.
    pattern = pattern.replace(r"\{\#\}", "[0-9]{1,12}")
    return Rule(frozenset(methods.split()), re.compile(pattern), None if rights is None else frozenset(rights))


RULES = tuple(_rule(*row) for row in _TABLE)


def find_rule(method: str, path: str) -> Rule | None:
    """The first rule for a request; None where nothing is to be found there."""
    asked = "GET" if method == "HEAD" else method
    return next((rule for rule in RULES if asked in rule.methods and rule.path.fullmatch(path)), None)
