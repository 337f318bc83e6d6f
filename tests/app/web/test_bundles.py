"""The scripts of the pages, joined into one."""

import re

import pytest

from stepsight.app.web import bundles


def test_nothing_of_a_module_is_left_that_only_a_module_may_say():
    assert not re.search(r"^(import|export)\b", bundles.bundle("main.js"), re.MULTILINE)


@pytest.mark.parametrize("line", ['import { a as b } from "./other.js";', "export default 1;", "export { a };"])
def test_a_form_that_is_not_understood_is_refused_before_a_page_has_it(line, monkeypatch):
    texts = {"one.js": f"{line}\n", "other.js": "export const a = 1;\n"}
    monkeypatch.setattr(bundles, "read_web", lambda *place: texts[place[-1]])
    with pytest.raises(ValueError, match=r"one\.js: .* is not understood"):
        bundles.bundle("one.js")
