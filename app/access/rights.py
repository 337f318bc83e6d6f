"""Rights: what people may do, by their role, and how routes say what they need."""

import re
from collections.abc import Collection
from enum import StrEnum
from typing import Annotated, Any

import gradio as gr
from fastapi import Depends, Request
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import HTTPConnection

from stepsight.core.trace import Trace
from stepsight.storage.database.store import ForbiddenError, Store
from stepsight.storage.people.exposures import GOLD, SCORES, is_something_hidden, note_exposure, note_texts
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
        raise ForbiddenError("You are not logged in.", "Log in.")
    return user


def state_of(request: Asked) -> dict[str, Any]:
    """What `app.web.access` knows of who asks: `user`, and the `rights` of the moment."""
    inner = request.request if isinstance(request, gr.Request) else request
    assert inner is not None, "an event that came without a request"
    state: dict[str, Any] = inner.scope["state"]
    return state


class Right(StrEnum):
    """What somebody may do: be here by name; look at traces, judgments and figures; have something judged; keep
    views of what they look at; change the store otherwise than by labelling; label; decide where labels differ; run
    campaigns."""

    ENTER = "enter"
    READ = "read"
    SCORE = "score"
    KEEP = "keep"
    WRITE = "write"
    LABEL = "label"
    ADJUDICATE = "adjudicate"
    MANAGE = "manage"


LOOKING = frozenset({Right.READ, Right.SCORE})
_RIGHTS = {
    Role.VIEWER: LOOKING | {Right.ENTER, Right.KEEP},
    Role.ANNOTATOR: LOOKING | {Right.ENTER, Right.KEEP, Right.LABEL},
    Role.ADJUDICATOR: LOOKING | {Right.ENTER, Right.KEEP, Right.LABEL, Right.ADJUDICATE},
    Role.ADMIN: frozenset(Right),
}


def rights_of(user: User, store: Store) -> frozenset[Right]:
    """The rights of a person now: while a blind campaign is open, annotators may not look,
    nor keep what they saw before."""
    rights = _RIGHTS[user.role]
    if user.role is Role.ANNOTATOR and is_something_hidden(store):
        return rights - LOOKING - {Right.KEEP}
    return rights


def may(user: User, right: Right, store: Store) -> bool:
    """Whether a person has a right now."""
    return right in rights_of(user, store)


def has_right(request: Asked, right: Right) -> bool:
    """Whether who asks has a right; also somebody who is not logged in, on a server that lets such look."""
    return right in state_of(request)["rights"]


def refusal(user: User, rights: Collection[Right]) -> ForbiddenError:
    """What somebody is told who lacks all of these rights: whose they are."""
    if user.role is Role.ANNOTATOR and LOOKING.issuperset(rights):
        return ForbiddenError(
            "Annotators see no scores and no gold labels while a blind campaign is open.",
            "Go on labelling in Relabel.",
        )
    roles = [f"{role}s" for role in Role if not _RIGHTS[role].isdisjoint(rights)]
    listed = " and ".join(filter(None, [", ".join(roles[:-1]), roles[-1]]))
    article = "a" if user.role is Role.VIEWER else "an"
    return ForbiddenError(
        f"This is for {listed}, and you are {article} {user.role}.", "An admin of this server can change your role."
    )


def require(request: Asked, *rights: Right) -> User | None:
    """Who asks; None for somebody who is not logged in, where such have one of the rights. Raises `ForbiddenError`
    where the person has none of them."""
    user = find_user_of(request)
    if not any(has_right(request, right) for right in rights):
        if user is None:
            raise ForbiddenError("You are not logged in.", "Log in.")
        raise refusal(user, rights)
    return user


class Needs:
    """What a route says of who may ask for it: whoever has one of the rights, and without rights everybody.

    As a dependency of the route it gives who asks. `app.web.access` reads it from the route and refuses others
    before the route is reached; a route that says nothing is not there at all.
    """

    def __init__(self, *rights: Right) -> None:
        self.rights = frozenset(rights)

    async def __call__(self, request: Request) -> User | None:
        return require(request, *self.rights) if self.rights else find_user_of(request)


Person = Annotated[User, Depends(Needs(Right.ENTER))]
Annotator = Annotated[User, Depends(Needs(Right.LABEL))]
Adjudicator = Annotated[User, Depends(Needs(Right.ADJUDICATE))]
Manager = Annotated[User, Depends(Needs(Right.MANAGE))]
"""Who asks, as a parameter of a route that is for such people alone."""


class _Number(Convertor[int]):
    """A part of a path, as in `{slot:number}`. What is longer is no number of anything here, and Python refuses to
    read it as one at all."""

    regex = "[0-9]{1,12}"

    def convert(self, value: str) -> int:
        return int(value)

    def to_string(self, value: int) -> str:
        return str(value)


register_url_convertor("number", _Number())


def note_shown(store: Store, user: User | None, trace_ids: Collection[int]) -> None:
    """A page or file with the scores and the gold of these traces is about to be given to `user`; None: to somebody
    who is not logged in, and labels nothing."""
    if user is not None:
        note_exposure(store, user, trace_ids, SCORES, GOLD)


def note_scored(store: Store, user: User | None, *texts: Trace) -> None:
    """`note_shown` for the scores of texts which were entered: traces that are to be labelled may read the same."""
    if user is not None:
        note_texts(store, user, texts, SCORES)
