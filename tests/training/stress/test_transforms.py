"""Each transform on a solution for which its variant is known."""

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

from stepsight.core.equations.evaluator import checks_of
from stepsight.core.trace import Trace
from stepsight.training.evaluate.strength import read_gallery
from stepsight.training.stress.transforms import TRANSFORMS, Demand, find_transform
from stepsight.training.synth.corpus import generate
from tests.messages import refused

APPLES = Trace.of(
    "Tom has 12 apples. He buys 7.5 kg of pears. How many apples are left after he eats 4?",
    [
        "Step 1: He eats 4 of 12 apples: 12 - 4 = 8.",
        "A half is 0.5 * 8 = 4.",
        "The pears weigh 7.5 + 1/2 = 8 kg.",
        "The answer is 8.",
    ],
)


def variant(name, trace=APPLES, seed=0):
    made = find_transform(name).variant(trace, seed)
    assert made is not None
    return made


def changed(made, trace=APPLES):
    """The steps of a variant that the original does not have, by their places."""
    return {place: text for place, text in enumerate(made.trace.substeps) if text not in trace.substeps}


@pytest.mark.parametrize("name", ["number-replaced", "sign-turned", "false-conclusion"])
def test_a_calculation_is_made_wrong_in_one_step_only(name):
    for seed in range(20):
        made = variant(name, seed=seed)
        (place,) = made.targets
        assert [i for i, part in enumerate(checks_of(made.trace)) if not all(check.holds for check in part)] == [
            place
        ]
        assert set(changed(made)) == {place}
        assert made.equation in made.trace.substeps[place]


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("decimal-as-fraction", {"A half is (1/2) * 8 = 4.", "The pears weigh (15/2) + 1/2 = 8 kg."}),
        ("fraction-as-latex", {r"The pears weigh 7.5 + \frac{1}{2} = 8 kg."}),
        ("other-times-sign", {"A half is 0.5 × 8 = 4."}),
    ],
)
def test_what_becomes_of_a_step(name, texts):
    assert {text for seed in range(40) for text in changed(variant(name, seed=seed)).values()} == texts


def test_a_step_that_was_put_in_has_no_origin_and_is_the_target():
    made = variant("false-conclusion")
    (place,) = made.targets
    assert made.origins[place] is None
    assert [APPLES.substeps[i] for i in made.origins if i is not None] == list(APPLES.substeps)


def test_confident_words_stand_behind_the_number_of_a_step():
    trace = Trace.of("How many?", ["Step 1: The sum is 3.", "Step 2: Anna has 3."])
    texts = {variant("confident-words", trace, seed).trace.substeps for seed in range(12)}
    assert all(re.match(r"Step 1: (?:The sum|.*, the sum|.*that the sum)", one) for one, _ in texts)
    assert all(re.search(r"Anna has 3\.$", two) for _, two in texts)


def test_a_variant_depends_on_trace_and_seed_alone():
    texts = {seed: variant("number-replaced", seed=seed).trace.substeps for seed in range(8)}
    assert texts == {seed: variant("number-replaced", seed=seed).trace.substeps for seed in range(8)}
    assert len(set(texts.values())) > 1


def test_nothing_to_change_gives_no_variant():
    trace = Trace.of("Why?", ["— 因为", "— 所以"])
    assert [name for name, one in TRANSFORMS.items() if one.variant(trace) is not None] == []


def test_what_must_stay_states_nothing_wrong_that_was_right_in_the_gallery():
    for trace in read_gallery()[:15]:
        wrong = sum(not check.holds for part in checks_of(trace) for check in part)
        for transform in TRANSFORMS.values():
            made = transform.variant(trace)
            if made is not None and transform.demand == Demand.STAY:
                assert sum(not check.holds for part in checks_of(made.trace) for check in part) <= wrong
                assert made.targets == ()


def test_an_unknown_transform_is_named_with_those_there_are():
    with refused():
        find_transform("numbers")


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
