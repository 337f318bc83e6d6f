import random
import re
from fractions import Fraction

import pytest

from stepsight.core.files.yaml_files import validate_yaml
from stepsight.training.synth import story
from stepsight.training.synth.families import FAMILIES, STORIES
from stepsight.training.synth.planner import plan_story
from stepsight.training.synth.story import Quantity, Story
from tests.messages import refused
from tests.training.synth.samples import SHOP, read_story

ROOTS = """
    problems: "x^2 + {b}x + {c} = 0"
    quantities: {b: {formula: 0 - r - s}, c: {formula: r * s}}
    hidden: {r: {values: [3]}, s: {values: [-5]}}
    steps: {d: {formula: b ** 2}}
"""


def test_larger_numbers_lie_beyond_all_others():
    quantity = Quantity(values="10 to 90 by 10")
    rng = random.Random(1)
    usual = {quantity.draw(rng, larger=False) for _ in range(300)}
    larger = {quantity.draw(rng, larger=True) for _ in range(300)}
    assert max(usual) < min(larger)
    assert all(number % 10 == 0 for number in usual | larger)


@pytest.mark.parametrize(
    "fields", [{"values": [1, 2, 6], "fixed": True}, {"values": [7, 14], "noun": "days", "words": {7: "a week"}}]
)
def test_fixed_quantities_do_not_grow(fields):
    rng = random.Random(1)
    assert {Quantity(**fields).draw(rng, larger=True) for _ in range(100)} == set(fields["values"])


def test_values_are_ranges_and_numbers():
    assert list(Quantity(values="5 to 20 by 5").values) == [5, 10, 15, 20]
    assert list(Quantity(values=["-3 to -1", 2, "4 to 5"]).values) == [-3, -2, -1, 2, 4, 5]


def test_quantities_and_names_are_drawn():
    values, names = SHOP.draw(random.Random(4), larger=False)
    assert set(values) == {"n", "p", "q"}
    assert all(number in SHOP.quantities[key].values for key, number in values.items())
    assert names["name"] in ("Ann", "Ben")


def test_quantities_are_calculated_from_hidden_ones():
    # The roots 3 and -5 have sum -2 and product -15.
    assert read_story(ROOTS).draw(random.Random(1), False)[0] == {"b": Fraction(2), "c": Fraction(-15)}


def test_a_dozen_is_said_in_words_or_in_digits():
    values = {"n": Fraction(12), "p": Fraction(3), "q": Fraction(5)}
    texts = {SHOP.words(values, {}, random.Random(i))["n_"] for i in range(50)}
    assert texts == {"a dozen cups", "12 cups"}
    assert SHOP.words({**values, "n": Fraction(11)}, {}, random.Random(1))["n_"] == "11 cups"


def test_the_example_of_a_story_is_one(tmp_path):
    path = tmp_path / "example.yaml"
    example = re.search(r"story looks like this:\n(.*?)\nA file", story.__doc__, re.DOTALL)[1]
    path.write_text(example, encoding="utf-8")
    [party] = validate_yaml(dict[str, Story], path).values()
    plan = plan_story(party, True, random.Random(1))
    assert "share a bill for" in plan.problem
    assert {check.kind for check in plan.checks} >= {"add back", "reread"}


LEFT = """
    problems: "{n} pens at {p} and a bag for {q}. What is paid?"
    quantities: {n: {values: 2 to 9}, p: {values: 2 to 9}, q: {values: 2 to 9}}
    conditions: [a > q]
    steps:
      a: {formula: n * p, what: the cost of the pens}
      b:
        formula: a + q
        what: what is paid
        wording: "Together, {eq}."
        mistakes:
          - kind: sign
            formula: a - q
            wording: "{What} comes to {eq}."
            reason: "The bag is taken off: {eq}."
            right: {problems: "{n} pens at {p}, and {q} off. What is paid?"}
          - kind: dropped term
            formula: p + q
            right: {problems: "A pen at {p} and a bag for {q}, {n} times offered.", what: {b: both prices}}
    verifications: [{steps: {x: answer - q, y: x / n}, equals: p}]
"""


def test_in_a_counterpart_the_mistake_is_right_and_what_was_right_is_the_mistake():
    taken_off, one_pen = read_story(LEFT).counterparts
    paid = taken_off.steps["b"]
    assert taken_off.problems == ("{n} pens at {p}, and {q} off. What is paid?",)
    assert (paid.formula, paid.what) == ("a - q", "what is paid")
    assert paid.wording == ("The bag is taken off: {eq}.", "{What} comes to {eq}.")
    assert [(m.kind, m.formula, m.reason) for m in paid.mistakes] == [("sign", "a + q", ("Together, {eq}.",))]
    assert not taken_off.verifications
    # The cost of all the pens is not needed, so neither is what speaks of it.
    assert list(one_pen.steps) == ["b"]
    assert (one_pen.steps["b"].what, one_pen.steps["b"].mistakes, one_pen.conditions) == ("both prices", (), ())


def test_a_mistake_is_told_in_the_words_of_the_right_calculation_and_they_in_its():
    paid = read_story(LEFT).steps["b"]
    assert paid.told == ("Together, {eq}.", "{What} comes to {eq}.")


def test_no_story_replaces_another_of_its_name():
    for path in STORIES.iterdir():
        names = re.findall(r"^(\w+):", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert len(names) == len(set(names)), path.name


def test_every_family_has_a_file():
    assert {path.stem for path in STORIES.iterdir()} == set(FAMILIES)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("steps:", "step:"),
        ("b ** 2", "b * * 2"),
        ("b ** 2", "b % 2"),
        ("b ** 2", "e + b"),
        ("{b}x", "{e}x"),
        ("[3]", "3 up to 5"),
        ("{values: [3]}", "{formula: s + 1}"),
        ("r * s}", "r * s, noun: '{thing}'}"),
        ("values: [3]", "fixed: true"),
        ("b ** 2", "b ** 2, mistakes: [{kind: slip, formula: b}]"),
    ],
)
def test_a_story_that_is_none_is_refused_with_file_and_key(tmp_path, old, new):
    path = tmp_path / "roots.yaml"
    path.write_text(f"roots:{ROOTS}".replace(old, new), encoding="utf-8")
    with refused():
        validate_yaml(dict[str, Story], path)
