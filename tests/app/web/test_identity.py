"""Who asks, as routes read it."""

from starlette.requests import Request

from stepsight.app.access.rights import find_user_of, user_of_request
from stepsight.storage.database.store import ForbiddenError
from stepsight.storage.people.users import Role, User
from tests.messages import refused

ADA = User(1, "ada", Role.ANNOTATOR, active=True)


def request(user):
    return Request({"type": "http", "headers": [], "state": {"user": user, "rights": frozenset()}})


def test_a_route_knows_who_asks():
    assert find_user_of(request(ADA)) == user_of_request(request(ADA)) == ADA
    assert find_user_of(request(None)) is None
    with refused(ForbiddenError):
        user_of_request(request(None))
