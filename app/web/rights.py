"""What a person may do, by role."""

import re
from collections.abc import Collection
from enum import StrEnum
from typing import Any

import gradio as gr
from starlette.requests import HTTPConnection

from stepsight.storage.database.store import ForbiddenError, Store
from stepsight.storage.people.exposures import GOLD, SCORES, is_something_hidden, note_exposure
from stepsight.storage.people.users import Role, User

COOKIE = "stepsight"
"""The name of the cookie that holds the token of a login, where the address has no port."""

_PORT = re.compile(r":(\d{1,5})$")

Asked = HTTPConnection | gr.Request


def cookie_name(request: HTTPConnection) -> str:
    """The name of the cookie at the address that was asked for. A browser has the same cookies for all ports of a
    host, where servers would otherwise end each other's logins."""
    port = _PORT.search(request.headers.get("host", ""))
    return f"{COOKIE}-{port[1]}" if port else COOKIE


def find_user_of(request: Asked) -> User | None:
    """Who asks; None where nobody is logged in, on a server that lets such look."""
    user: User | None = state_of(request)["user"]
    return user


def user_of_request(request: Asked) -> User:
    """Who asks. Raises `ForbiddenError` where nobody is logged in."""
    user = find_user_of(request)
    if user is None:
        raise ForbiddenError("Nobody is logged in.", "Log in.")
    return user


def state_of(request: Asked) -> dict[str, Any]:
    """What is known of who asks: `user`, and the `rights` of the moment."""
    inner = request.request if isinstance(request, gr.Request) else request
    assert inner is not None, "an event that came without a request"
    state: dict[str, Any] = inner.scope["state"]
    return state


class Right(StrEnum):
    """Be here by name; look at traces, judgments and figures; have something judged; change the store otherwise
    than by labelling; label; decide where labels differ; run campaigns."""

    ENTER = "enter"
    READ = "read"
    SCORE = "score"
    WRITE = "write"
    LABEL = "label"
    ADJUDICATE = "adjudicate"
    MANAGE = "manage"


LOOKING = frozenset({Right.READ, Right.SCORE})
_RIGHTS = {
    Role.VIEWER: LOOKING | {Right.ENTER},
    Role.ANNOTATOR: LOOKING | {Right.ENTER, Right.LABEL},
    Role.ADJUDICATOR: LOOKING | {Right.ENTER, Right.LABEL, Right.ADJUDICATE},
    Role.ADMIN: frozenset(Right),
}


def rights_of(user: User, store: Store) -> frozenset[Right]:
    """What a person may do now: while a blind campaign is open, annotators may not look."""
    rights = _RIGHTS[user.role]
    if user.role is Role.ANNOTATOR and is_something_hidden(store):
        return rights - LOOKING
    return rights


def may(user: User, right: Right, store: Store) -> bool:
    """Whether a person has a right now."""
    return right in rights_of(user, store)


def has_right(request: Asked, right: Right) -> bool:
    """Whether who asks has a right; also somebody who is not logged in, on a server that lets such look."""
    return right in state_of(request)["rights"]


def require(request: Asked, right: Right) -> User:
    """Who asks. Raises `ForbiddenError` where nobody is logged in or the person lacks the right."""
    user = user_of_request(request)
    if not has_right(request, right):
        raise ForbiddenError(f"This is not for the role {user.role}.", "Ask who runs this server.")
    return user


def note_shown(store: Store, user: User | None, trace_ids: Collection[int]) -> None:
    """A page or file with the scores and the gold of these traces is about to be given to `user`; None: to somebody
    who is not logged in, and labels nothing."""
    if user is not None:
        note_exposure(store, user.id, trace_ids, SCORES, GOLD)
