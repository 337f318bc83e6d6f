"""Templates escape by themselves, few places take a value for HTML, and styles and scripts are bundled."""

import ast
import itertools
import re
from collections import Counter

import numpy as np
import pytest

from stepsight.app.web import html
from stepsight.core.paths import asset
from stepsight.training.report import html as reports
from tests.app.elements import INJECTION, read
from tests.cases import each
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
    "app/demo/interface.py": 1,
    "app/evidence/trace.py": 4,
    "app/web/help.py": 1,
    "app/markup/text.py": 1,
}


@pytest.mark.parametrize("environment", [html._TEMPLATES, reports._TEMPLATES])
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


def test_templates_of_macros_have_nothing_but_macros():
    """Whatever else they have is rendered whenever one of their macros is, without its values."""
    texts = [path.read_text(encoding="utf-8") for path in [*TEMPLATES, *MODULES]]
    used = {used for text in texts for used in re.findall(r'(?:% from |\bmacro\()"([^"]+)"', text)}
    assert {"parts.html", "terms.html"} < used
    for template in used & set(html._TEMPLATES.list_templates()):
        assert not str(html._TEMPLATES.get_template(template).module).strip(), template


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


SHEETS = sorted(asset("web").glob("*.css"))
SHEET = "\n".join(path.read_text(encoding="utf-8") for path in SHEETS)
LIGHT, DARK, PRINT = (
    dict(re.findall(r"--([\w-]+): (#\w+);", block))
    for block in re.findall(
        r"^ *:root, \.dark(?:, \.on-paper)? \{\s*(--bg: #.*?)\}", SHEET, re.DOTALL | re.MULTILINE
    )
)
THEMES = {"light": LIGHT, "dark": DARK, "print": LIGHT | PRINT}
TEXTS = ("ink", "mute", "neg-ink", "pos-ink", "gold")
GRAPHICS = ("edge", "neg", "neu", "pos", "focus")
# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
DEUTERANOPIA = [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
PROTANOPIA = [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
# Linear sRGB to XYZ with a D65 white of 1, and WCAG's relative luminance in its middle row.
XYZ = np.array([[0.4339, 0.3762, 0.1899], [0.2126, 0.7152, 0.0722], [0.0177, 0.1094, 0.8729]])
# Of the hatch of neu, 3 of 5 pixels are drawn and the bar's ground shows in the others.
HATCH = 3 / 5


def linear(colour):
    digits = colour.lstrip("#")
    pairs = [2 * digit for digit in digits] if len(digits) == 3 else [digits[i : i + 2] for i in (0, 2, 4)]
    value = np.array([int(pair, 16) / 255 for pair in pairs])
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    dark, light = sorted((XYZ[1] @ linear(one), XYZ[1] @ linear(other)))
    return (light + 0.05) / (dark + 0.05)


def cielab(light):
    x, y, z = np.cbrt(np.clip(XYZ @ light, 1e-6, None))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def drawn(theme, eyes):
    """CIELAB of neg, neu and pos as bars show them, seen through `eyes`."""
    colours = {name: linear(theme[name]) for name in ("neg", "neu", "pos")}
    colours["neu"] = HATCH * colours["neu"] + (1 - HATCH) * linear(theme["line"])
    return {name: cielab(np.clip(np.array(eyes) @ colour, 0, 1)) for name, colour in colours.items()}


def test_the_arithmetic_is_wcags():
    assert contrast("#000", "#ffffff") == pytest.approx(21)
    # WCAG's own example of the darkest grey that fails on white by little.
    assert contrast("#777777", "#fff") == pytest.approx(4.48, abs=0.01)
    assert cielab(linear("#fff")) == pytest.approx([100, 0, 0], abs=0.1)


@pytest.mark.parametrize("theme", THEMES)
def test_text_and_what_is_operated_stand_out(theme):
    colours = THEMES[theme]
    grounds = [colours["bg"], colours["card"], *([colours["field"]] if theme != "print" else [])]
    for ground in grounds:
        low = {name: contrast(colours[name], ground) for name in TEXTS}
        assert min(low.values()) >= 4.5, (theme, ground, low)
        low = {name: contrast(colours[name], ground) for name in GRAPHICS}
        assert min(low.values()) >= 3.0, (theme, ground, low)


@pytest.mark.parametrize("theme", THEMES)
def test_neg_and_pos_stand_out_from_the_ground_of_a_bar(theme):
    colours = THEMES[theme]
    assert min(contrast(colours[name], colours["line"]) for name in ("neg", "pos")) >= 3.0


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_the_white_mark_in_a_checked_box_is_seen(theme):
    assert contrast(theme["checked"], "#fff") >= 4.5
    assert contrast(theme["checked"], theme["bg"]) >= 3.0


@pytest.mark.parametrize("theme", THEMES)
def test_labels_differ_in_lightness_to_a_deuteranope(theme):
    seen = drawn(THEMES[theme], DEUTERANOPIA)
    for one, other in itertools.combinations(seen, 2):
        assert abs(seen[one][0] - seen[other][0]) >= 10, (theme, one, other)


@each("theme", THEMES)
@each("eyes", [np.eye(3), DEUTERANOPIA, PROTANOPIA])
def test_labels_differ_to_every_eye(theme, eyes):
    seen = drawn(THEMES[theme], eyes)
    for one, other in itertools.combinations(seen, 2):
        # Some 2 can just be told apart side by side.
        assert np.linalg.norm(seen[one] - seen[other]) >= 30, (theme, one, other)


def test_every_sheet_is_loaded_once_and_what_pages_share_comes_first():
    assert sorted(f"{name}.css" for name in html.SHEETS) == [path.name for path in SHEETS]
    assert html.SHEETS[:2] == ("findings", "style")


def test_colours_are_named_in_one_place():
    rules = re.sub(r"--[\w-]+: [^;]*;", "", SHEET)
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b(?=[;\s,)}])", rules) == []


def test_the_sheet_asks_nothing_of_anybody():
    assert re.findall(r"@import|url\(", SHEET) == []


def test_nothing_of_a_module_is_left_that_only_a_module_may_say():
    assert not re.search(r"^(import|export)\b", html.bundle("main.js"), re.MULTILINE)


@pytest.mark.parametrize("line", ['import { a as b } from "./other.js";', "export default 1;", "export { a };"])
def test_a_form_that_is_not_understood_is_refused_before_a_page_has_it(line, monkeypatch):
    texts = {"one.js": f"{line}\n", "other.js": "export const a = 1;\n"}
    monkeypatch.setattr(html, "read_web", lambda *place: texts[place[-1]])
    with pytest.raises(ValueError, match=r"one\.js: .* is not understood"):
        html.bundle("one.js")
