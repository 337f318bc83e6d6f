"""Rules found by method and path; which rights each route asks for is tested in `test_access`, by asking."""

import pytest
from fastapi import APIRouter, Depends, FastAPI

from stepsight.app.access.rights import RequiresRight, Right
from stepsight.app.access.rules import Rules
from tests.cases import each


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
        ("POST", "/gradio_api/run/unknown"),
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
