"""The colours of the style sheet, held to WCAG's contrast and to eyes that do not tell red from green."""

import itertools
import re

import numpy as np
import pytest

from stepsight.app.web import bundles
from stepsight.core.paths import asset
from tests.cases import each

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
    assert sorted(f"{name}.css" for name in bundles.SHEETS) == [path.name for path in SHEETS]
    assert bundles.SHEETS[:2] == ("findings", "style")


def test_colours_are_named_in_one_place():
    rules = re.sub(r"--[\w-]+: [^;]*;", "", SHEET)
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b(?=[;\s,)}])", rules) == []


def test_the_sheet_asks_nothing_of_anybody():
    assert re.findall(r"@import|url\(", SHEET) == []
