"""What `equations` proves of number swaps and rewritings, checked again by a computer algebra system, SymPy."""

import re
from itertools import pairwise

import pytest
import sympy
from sympy.parsing.sympy_parser import (
    convert_xor,
    implicit_multiplication,
    parse_expr,
    standard_transformations,
)

from stepsight.training.stress.transforms import find_transform
from stepsight.training.synth.corpus import generate

COUNT = 500
_PARSING = (*standard_transformations, convert_xor, implicit_multiplication)
_FRACTION = re.compile(r"\\[dt]?frac\{([^{}]+)\}\{([^{}]+)\}")
_SIGNS = {"×": "*", "·": "*", "÷": "/", "−": "-", "\\cdot": "*", "\\times": "*", "\\div": "/", "$": "", "\\%": "%"}


def value(text):
    """The value of a side of an equation as SymPy has it, or None if it does not read it."""
    while _FRACTION.search(text):
        text = _FRACTION.sub(r"((\1)/(\2))", text)
    for sign, plain in _SIGNS.items():
        text = text.replace(sign, plain)
    text = re.sub(r"(?<=[\d)]) x (?=[\d(-])", "*", text)
    text = re.sub(r"(?<=\d),(?=\d{3})", "", text).strip()
    text = re.sub(r"(\d+(?:\.\d+)?)%(?: of )?", r"(\1/100)*", text).rstrip("*")
    if not text or not re.fullmatch(r"[\d\s+*/^().,\w=-]*", text) or re.search(r"[A-Za-z]{2}", text):
        return None
    try:
        return sympy.nsimplify(parse_expr(text, transformations=_PARSING), rational=True)
    except (SyntaxError, TypeError, ValueError, AttributeError, sympy.SympifyError):
        return None


def verdict(equation):
    """True if all sides of an equation are equal, False if two differ, None if SymPy does not read one."""
    sides = [value(side) for side in equation.split("=")]
    if len(sides) < 2 or any(side is None for side in sides):
        return None
    return all(sympy.simplify(first - second) == 0 for first, second in pairwise(sides))


def verdicts(names):
    """The verdicts on the equations of the first variants that SymPy can read."""
    found = []
    for trace in generate(41, 4000):
        for name in names:
            made = find_transform(name).variant(trace)
            said = None if made is None else verdict(made.equation)
            if said is not None:
                found.append((said, made.equation))
        if len(found) >= COUNT:
            break
    return found[:COUNT]


@pytest.mark.slow
def test_number_swaps_are_wrong_to_a_computer_algebra_system():
    found = verdicts(["number-replaced"])
    assert len(found) == COUNT
    assert [equation for holds, equation in found if holds] == []


@pytest.mark.slow
def test_rewritings_are_equal_to_a_computer_algebra_system():
    found = verdicts(["decimal-as-fraction", "fraction-as-latex", "other-times-sign"])
    assert len(found) == COUNT
    assert [equation for holds, equation in found if not holds] == []
