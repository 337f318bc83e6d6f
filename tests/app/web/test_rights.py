"""Rights by role, and rules by method and path; which rights each route asks for is tested in `test_access`, by
asking."""

from types import SimpleNamespace

import pytest
from fastapi import APIRouter, Depends, FastAPI
from starlette.requests import Request

from stepsight.app.web.access import (
    RequiresRight,
    Right,
    Rules,
    find_user_of,
    has_right,
    may,
    require,
    rights_of,
    user_of_request,
)
from stepsight.storage.database.store import ForbiddenError
from stepsight.storage.labelling.campaigns import close_campaign
from stepsight.storage.people.users import Role, User, local_user
from tests.cases import each
from tests.messages import refused
from tests.storage.labelling.samples import campaign, person
from tests.storage.samples import add, evaluator

LOOKING = {Right.READ, Right.SCORE}
ROLES = {
    Role.VIEWER: {Right.ENTER, *LOOKING},
    Role.ANNOTATOR: {Right.ENTER, *LOOKING, Right.LABEL},
    Role.ADJUDICATOR: {Right.ENTER, *LOOKING, Right.LABEL, Right.ADJUDICATE},
    Role.ADMIN: set(Right),
}


def request(user, rights):
    return SimpleNamespace(scope={"state": {"user": user, "rights": frozenset(rights)}})


@pytest.mark.parametrize("role", Role)
def test_each_role_has_its_rights(store, role):
    ada = person(store, "ada", role)
    assert rights_of(ada, store) == ROLES[role]
    assert [may(ada, right, store) for right in Right] == [right in ROLES[role] for right in Right]


def test_the_local_user_has_them_all(store):
    assert rights_of(local_user(store), store) == set(Right)


def test_annotators_do_not_look_while_a_blind_campaign_is_open(store):
    add(store)
    people = {role: person(store, role.value, role) for role in Role}
    shown = campaign(store, None, name="shown", shows="scores", evaluator=evaluator(store).id)
    assert may(people[Role.ANNOTATOR], Right.READ, store)
    blind = campaign(store, None)
    for role, one in people.items():
        hidden = LOOKING if role is Role.ANNOTATOR else set()
        assert rights_of(one, store) == ROLES[role] - hidden
    close_campaign(store, blind.id)
    close_campaign(store, shown.id)
    assert may(people[Role.ANNOTATOR], Right.READ, store)


def test_a_required_right_is_held_or_the_request_is_refused(store):
    ada = person(store, "ada")
    assert require(request(ada, [Right.LABEL]), Right.LABEL) == ada
    with refused(ForbiddenError):
        require(request(ada, [Right.LABEL]), Right.MANAGE)
    # Who only looks has no name to act by.
    assert has_right(request(None, LOOKING), Right.READ)
    assert require(request(None, LOOKING), Right.READ) is None
    with refused(ForbiddenError):
        require(request(None, LOOKING), Right.WRITE)


def test_a_route_knows_who_asks():
    ada = User(1, "ada", Role.ANNOTATOR, active=True)
    asked, nobody = (Request({"type": "http", "headers": [], **request(user, []).scope}) for user in (ada, None))
    assert find_user_of(asked) == user_of_request(asked) == ada
    assert find_user_of(nobody) is None
    with refused(ForbiddenError):
        user_of_request(nobody)


@pytest.fixture(scope="module")
def rules():
    """Of routes of an application, of a router, and of an application that is mounted."""
    application, api = FastAPI(openapi_url=None), FastAPI()
    router = APIRouter(dependencies=[Depends(RequiresRight(Right.READ))])
    router.add_api_route("/table.json", lambda: None)
    router.add_api_route("/tables/{table:number}", lambda table: None, methods=["POST"])
    api.add_api_route(
        "/sets/{name:path}/rows", lambda name: None, dependencies=[Depends(RequiresRight(Right.WRITE))]
    )
    application.add_api_route("/hello", lambda: None, dependencies=[Depends(RequiresRight())])
    application.add_api_route("/forgotten", lambda: None)
    application.include_router(router)
    application.mount("/api/v1", api)
    return Rules(application.routes)


@pytest.mark.parametrize(
    ("method", "path", "rights"),
    [
        ("GET", "/demo/", {Right.SCORE}),
        ("POST", "/demo/gradio_api/queue/join", {Right.SCORE}),
        ("GET", "/stepsight/js/main.js", None),
        ("GET", "/hello", set()),
        ("GET", "/table.json", {Right.READ}),
        ("POST", "/tables/7", {Right.READ}),
        ("GET", "/api/v1/sets/a/b c/rows", {Right.WRITE}),
    ],
)
def test_a_rule_is_found_by_method_and_path(rules, method, path, rights):
    assert rules.find(method, path).rights == rights


@each(
    "method, path",
    [
        ("POST", "/"),
        ("OPTIONS", "/"),
        ("GET", ""),
        ("GET", "//"),
        ("GET", "/browse\n"),
        ("GET", "/x/browse"),
        ("GET", "/stepsight/"),
        ("get", "/browse"),
        ("GET", "/table.json\n"),
        ("GET", "/table.json/x"),
        ("GET", "/tableXjson"),
        ("GET", "/tables/7"),
        ("POST", "/tables/1/2"),
        ("POST", "/tables/1234567890123"),
        ("GET", "/forgotten"),
        ("POST", "/score/unknown"),
        ("POST", "/demo/gradio_api/upload"),
        ("GET", "/demo/gradio_api/file=/etc/hostname"),
        ("GET", "/demo/gradio_api/proxy=http://elsewhere.example/"),
        ("GET", "/demo/monitoring"),
    ],
)
def test_a_path_without_a_rule_does_not_exist(rules, method, path):
    assert rules.find(method, path) is None


def test_the_methods_of_a_path(rules):
    assert (rules.methods("/tables/7"), rules.methods("/forgotten")) == (["POST"], [])
