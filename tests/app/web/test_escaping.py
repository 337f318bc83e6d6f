"""No page can forget to escape a text: templates do so by themselves, and few places take a value for HTML."""

import ast
import re
from collections import Counter

import pytest

from stepsight.app.web import html as pages
from stepsight.training.report import html as reports
from tests.app.elements import INJECTION, read
from tests.conftest import ROOT
from tests.source import MODULES, name, tree

TEMPLATES = [path for layer in ("app", "training") for path in (ROOT / layer).rglob("templates/**/*.html")]

# How often a module may take a value for HTML.
MARKUP = {
    # Rendered templates, and what their callers declare to be HTML.
    "app/web/html.py": 4,
    "app/annotate/agreement.py": 1,
    "training/report/html.py": 5,
    # Escaped there; tests go through every payload.
    "app/markup/marking.py": 1,
    "app/markup/markdown.py": 1,
    # Words of ours, our own files, and hashes of them.
    "app/browse/trace_view.py": 1,
    # What a notebook shows, escaped there.
    "app/demo/step_scores.py": 1,
    "app/evidence/trace.py": 4,
    "app/help/manual.py": 1,
    "app/markup/text.py": 1,
}


@pytest.mark.parametrize("environment", [pages._TEMPLATES, reports._TEMPLATES])
def test_templates_escape_values(environment):
    assert environment.autoescape is True
    assert read(environment.from_string("<b>{{ text }}</b>").render(text=INJECTION)).one("b").text == INJECTION


def test_templates_are_loaded_with_escaping_only():
    makers = [name(path) for path in MODULES if re.search(r"\bEnvironment\(|jinja2\.Template\b", path.read_text())]
    assert makers == ["core/escaping.py"]


def test_templates_call_only_their_own_words_safe():
    assert TEMPLATES
    for path in TEMPLATES:
        text = path.read_text(encoding="utf-8")
        assert "autoescape" not in text
        for words in re.findall(r"""(\S+)\s*\|\s*safe\b""", text):
            assert words.endswith(("'", '"')), f"{path.name}: {words}"


def test_templates_quote_values_in_attributes():
    for path in TEMPLATES:
        text = re.sub(r"\{%.*?%\}|\{#.*?#\}", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for tag in re.findall(r"<\w[^<]*?>", re.sub(r"\{\{.*?\}\}", "VALUE", text, flags=re.DOTALL)):
            bare = re.sub(r'"[^"]*"', '""', tag)
            assert not re.search(r"=VALUE|\son\w+=", bare), f"{path.name}: {tag}"


def test_values_are_taken_for_html_in_few_places():
    found = Counter(
        name(path)
        for path in MODULES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Markup"
        if node.args and not isinstance(node.args[0], ast.Constant)
    )
    more = {module: times for module, times in found.items() if times > MARKUP.get(module, 0)}
    assert not more, "Put text into Markup with format(), or let a template escape it."
