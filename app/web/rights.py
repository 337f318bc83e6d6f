"""What a person may do, by role."""

from enum import StrEnum

from app.web.identity import Asked, state_of, user_of_request
from storage.people.exposures import is_something_hidden
from storage.people.users import Role, User
from storage.store import ForbiddenError, Store


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
