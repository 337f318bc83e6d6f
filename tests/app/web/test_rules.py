"""Rules found by method and path; which rights each route asks for is tested in `test_access`, by asking."""

import pytest

from stepsight.app.web.rights import Right
from stepsight.app.web.rules import find_rule


@pytest.mark.parametrize(
    ("method", "path", "rights"),
    [
        ("GET", "/", {Right.SCORE}),
        ("HEAD", "/", {Right.SCORE}),
        ("GET", "/browse", {Right.READ}),
        ("GET", "/api/v1/datasets/a/b c/traces", {Right.READ}),
        ("GET", "/relabel/disputes/patch", {Right.READ}),
        ("GET", "/relabel/disputes/7", {Right.READ, Right.LABEL}),
        ("GET", "/login", set()),
        ("GET", "/stepsight/js/main.js", None),
    ],
)
def test_a_rule_is_found_by_method_and_path(method, path, rights):
    assert find_rule(method, path).rights == rights


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/"),
        ("OPTIONS", "/"),
        ("GET", ""),
        ("GET", "//"),
        ("GET", "/browse\n"),
        ("GET", "/x/browse"),
        ("GET", "/browse/trace.json/x"),
        ("GET", "/browse/traceXjson"),
        ("GET", "/relabel/slots/1/2"),
        ("GET", "/relabel/slots/"),
        ("GET", "/stepsight/"),
        ("get", "/browse"),
    ],
)
def test_what_no_rule_names_has_none(method, path):
    assert find_rule(method, path) is None
