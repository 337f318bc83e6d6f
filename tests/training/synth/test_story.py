import random
import re
from collections import Counter
from fractions import Fraction

import pytest

from stepsight.core.files.yaml_files import validate_yaml
from stepsight.training.synth import story
from stepsight.training.synth.chain import (
    PlantedError,
    Problem,
    carry_out,
    draw_groups,
    draw_problem,
    equation,
    equations,
    recomputed,
)
from stepsight.training.synth.corpus import FAMILIES, QUADRATIC, STORIES, plan_story, read_family
from stepsight.training.synth.formula import ErrorKind, misread, slip
from stepsight.training.synth.steps import StorySolution, checks
from stepsight.training.synth.story import Calculation, Quantity, Story
from stepsight.training.synth.style import ending
from tests.cases import each
from tests.messages import refused
from tests.training.synth.samples import LATEX, PLAIN, SHOP, read_story

ROOTS = """
    problems: "x^2 + {b}x + {c} = 0"
    quantities: {b: {formula: 0 - r - s}, c: {formula: r * s}}
    hidden: {r: {values: [3]}, s: {values: [-5]}}
    steps: {d: {formula: b ** 2}}
"""


@each(
    "fields, usual, larger",
    [
        ({"values": "10 to 30 by 10"}, {10, 20, 30}, {40, 50, 60}),
        ({"values": ["-3 to -2", 2, "4 to 5"]}, {-3, -2, 2, 4, 5}, {6, 7, 11, 13, 14}),
        ({"values": [1, 2, 6], "fixed": True}, {1, 2, 6}, {1, 2, 6}),
        ({"values": [7, 14], "noun": "days", "words": {7: "a week"}}, {7, 14}, {7, 14}),
    ],
)
def test_quantities_are_drawn(fields, usual, larger):
    quantity, rng = Quantity(**fields), random.Random(1)
    assert {quantity.draw(rng, larger=False) for _ in range(100)} == usual
    assert {quantity.draw(rng, larger=True) for _ in range(100)} == larger


def test_quantities_are_calculated_from_hidden_ones():
    # The roots 3 and -5 have sum -2 and product -15.
    assert read_story(ROOTS).draw(random.Random(1), False)[0] == {"b": Fraction(2), "c": Fraction(-15)}


def test_a_dozen_is_said_in_words_or_in_digits():
    def texts(cups: int) -> set[str]:
        values = {"n": Fraction(cups), "p": Fraction(3), "q": Fraction(5)}
        return {SHOP.problem(values, {"name": "Ann"}, PLAIN, random.Random(i)).split(" at")[0] for i in range(50)}

    assert texts(12) == {"Ann buys a dozen cups", "Ann buys 12 cups"}
    assert texts(11) == {"Ann buys 11 cups"}


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
    assert read_story(LEFT).steps["b"].templates == ("Together, {eq}.", "{What} comes to {eq}.")
    taken_off, one_pen = read_story(LEFT).counterparts
    paid = taken_off.steps["b"]
    assert taken_off.problems == ("{n} pens at {p}, and {q} off. What is paid?",)
    assert (paid.formula.text, paid.what) == ("a - q", "what is paid")
    assert paid.wording == ("The bag is taken off: {eq}.", "{What} comes to {eq}.")
    mistakes = [(m.kind, m.formula.text, m.reason) for m in paid.mistakes]
    assert mistakes == [("sign", "a + q", ("Together, {eq}.",))]
    assert not taken_off.verifications
    # The cost of all the pens is not needed, so neither is what speaks of it.
    assert list(one_pen.steps) == ["b"]
    assert (one_pen.steps["b"].what, one_pen.steps["b"].mistakes, one_pen.conditions) == ("both prices", (), ())


def test_every_family_has_a_file_of_stories_with_names_of_their_own():
    assert {path.stem for path in STORIES.iterdir()} == set(FAMILIES)
    for path in STORIES.iterdir():
        names = re.findall(r"^(\w+):", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert len(names) == len(set(names)), path.name


def test_every_problem_gives_all_quantities():
    for family in set(FAMILIES) - {QUADRATIC}:
        for name, read in read_family(family, dict[str, Story]).items():
            for template in (template for version in (read, *read.counterparts) for template in version.problems):
                given = set(re.findall(r"\{[+(]?(\w+?)_?\)?\}", template))
                for keys in re.findall(r"<(?:[a-z];)?([\w ,-]+)>", template):
                    given |= {key.strip() for key in keys.split(",")}
                assert given >= set(read.quantities), (family, name, template)


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


@each(
    "formula, unit, expected",
    [
        ("a + b", "", {"wrong operation": ["a - b", "a * b"]}),
        ("a * b", "", {"wrong operation": ["a + b", "a / b"]}),
        ("a * b", "π", {"wrong operation": ["a / b"]}),
        ("a + b * c", "", {"sign": ["a - b * c"], "dropped term": ["a", "a + b"]}),
        ("a * 60", "", {"wrong operation": ["a + 60", "a / 60"], "wrong unit": ["a * 100", "a * 24"]}),
        ("a * 61", "", {"wrong operation": ["a + 61", "a / 61"]}),
    ],
)
def test_mistakes_that_a_formula_invites(formula, unit, expected):
    calculation = Calculation(key="r", formula=formula, unit=unit)
    invited = [(mistake.kind, mistake.formula.text) for mistake in calculation.invited]
    assert invited == [(ErrorKind(kind), text) for kind, texts in expected.items() for text in texts]


@each("right", [2, 7, 19, 60, 385, -12, 0, 1])
def test_a_slip_is_wrong_and_near(right):
    rng = random.Random(right)
    drawn = [slip(Fraction(right), (Fraction(7),), rng) for _ in range(200)]
    assert right not in drawn
    assert len(set(drawn)) > 5
    assert all(abs(number - right) <= 100 for number in drawn)
    # Most keep the last digit, so that no rule of thumb detects them.
    assert right < 100 or sum(number % 10 == right % 10 for number in drawn) > 100


def test_a_slip_of_a_fraction_is_another_fraction():
    drawn = {slip(Fraction(3, 8), (), random.Random(seed)) for seed in range(100)}
    # A part too many or too few, a part too small, or upside down.
    assert drawn == {Fraction(1, 2), Fraction(1, 4), Fraction(1, 3), Fraction(5, 8), Fraction(8, 3)}


@each("value", [24, 7, 100, -6, 1])
def test_a_misread_number_is_another(value):
    drawn = {misread(Fraction(value), [Fraction(15)], random.Random(seed)) for seed in range(200)}
    assert value not in drawn
    assert len(drawn) >= 3
    assert value != 24 or {42, 15} <= drawn


@each("name", ["verdict", "inverse", "back", "bound", "expanded"])
def test_a_passing_check_never_sounds_like_a_failing_one(name):
    passing = {ending(name, True, random.Random(seed), c=84) for seed in range(300)}
    failing = {ending(name, False, random.Random(seed), c=94) for seed in range(300)}
    assert not any(word in text for text in passing for word in ("not", "wrong", "mistake"))
    assert name == "bound" or all("94" in text for text in failing)
    # Some words do not tell: whoever reads them has to compare the numbers.
    neutral = {text.replace("84", "#") for text in passing} & {text.replace("94", "#") for text in failing}
    assert bool(neutral) == (name in ("verdict", "inverse", "back"))


QUANTITIES = {"n": Fraction(12), "p": Fraction(7), "q": Fraction(20)}
ERRORS = {
    "slip": PlantedError(ErrorKind.SLIP, 0, "a", Fraction(94)),
    "misread": PlantedError(ErrorKind.MISREAD, 0, "n", Fraction(21)),
    "inference": PlantedError(ErrorKind.INFERENCE, 0, "a", mistake=SHOP.calculations[0].mistakes[0]),
    "answer": PlantedError(ErrorKind.ANSWER, 2, "b"),
}


def solution(error, wrong=True):
    right, faulty = carry_out(SHOP.calculations, QUANTITIES), carry_out(SHOP.calculations, QUANTITIES, error)
    problem = Problem(SHOP, QUANTITIES, {"name": "Ann"}, error, right, faulty)
    groups = [slice(i, i + 1) for i in range(3)]
    return StorySolution(problem, wrong, groups, PLAIN, None, False, random.Random(1))


@each(
    "name, results, answer",
    [
        # 12 * 7 = 84, 84 + 20 = 104, 104 + 5 = 109.
        ("slip", [94, 114, 119], 119),
        ("misread", [147, 167, 172], 172),
        ("inference", [144, 164, 169], 169),
        ("answer", [84, 104, 109], 104),
    ],
)
def test_an_error_is_carried_on(name, results, answer):
    chain = solution(ERRORS[name]).stated
    assert ([link.result for link in chain.links], chain.answer) == (results, answer)


@each(
    "name, settling, texts",
    [
        # 94 is no multiple of 7. From the answer 119 back: 119 - 5 = 114, 114 - 20 = 94, and 94 / 12 is not whole.
        (
            "slip",
            {"recompute", "plausibility", "contradiction"},
            {"contradiction": "with 119, 119 - 5 = 114 and 114 - 20 = 94 and 94 / 12 ", "recompute": "7 * 12 = 84"},
        ),
        # 172 - 5 = 167, 167 - 20 = 147, and 147 / 12 is not whole.
        ("misread", {"reread", "recompute", "contradiction"}, {"reread": "the problem says 12 cups, "}),
        # 169 - 5 = 164, 164 - 20 = 144, and 144 / 12 is 12, not 7.
        (
            "inference",
            {"method", "recompute", "add back"},
            {"method": "the cost of the cups must be 12 * 7 = 84, ", "add back": "and 144 / 12 = 12, "},
        ),
        (
            "answer",
            {"question", "contradiction"},
            {"question": "the question asks for the total with delivery, which is 109, "},
        ),
    ],
)
def test_checks_see_the_errors_that_they_can_see(name, settling, texts):
    offered = list(checks(solution(ERRORS[name])))
    seeing = [check for check in offered if check.settles and not check.passes]
    assert {check.kind for check in seeing} == settling
    for kind, text in texts.items():
        assert any(text in check.texts[0] for check in seeing if check.kind == kind)


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_in_a_right_solution_every_check_passes(error):
    offered = list(checks(solution(error, wrong=False)))
    assert all(check.passes for check in offered)
    # 109 - 5 = 104, 104 - 20 = 84, 84 / 12 = 7: the price that was given.
    [back] = [check.texts[0] for check in offered if check.kind == "add back"]
    assert back.startswith("with 109, 109 - 5 = 104 and 104 - 20 = 84 and 84 / 12 = 7, ")


def test_one_link_or_two_in_a_step():
    right, faulty = solution(ERRORS["slip"], wrong=False).stated.links, solution(ERRORS["slip"]).stated.links
    assert equation(right[:1], PLAIN) == "12 * 7 = 84"
    assert equation(right[:2], LATEX) == "12 \\times 7 + 20 = 104"
    assert equation(faulty[:2], PLAIN) == "12 * 7 + 20 = 114"
    # 12 * 7 is 84 and not 94, so the second line starts from 84.
    assert equations(recomputed(faulty[:2]), PLAIN) == ["12 * 7 = 84", "84 + 20 = 104"]
    joined = {tuple(group.start for group in draw_groups(SHOP, 1.0, random.Random(seed))) for seed in range(20)}
    assert joined == {(0, 2), (0, 1)}
    assert [group.start for group in draw_groups(SHOP, 0.0, random.Random(1))] == [0, 1, 2]


def test_problems_keep_the_conditions_of_their_story_and_their_error_changes_a_result():
    story = read_story("""
        problems: What is [{a} + {b}]?
        quantities: {a: {values: 0 to 19}, b: {values: 0 to 19}}
        steps: {c: {formula: a + b}, d: {formula: c * 2}, e: {formula: d - a}}
        conditions: [a > b + 5]
        largest: 60
    """)
    kinds = Counter()
    for seed in range(200):
        problem = draw_problem(story, random.Random(seed))
        error, right, faulty = problem.error, problem.right.links, problem.faulty.links
        assert problem.quantities["a"] > problem.quantities["b"] + 5
        assert all(link.result.denominator == 1 and 1 <= link.result <= 60 for link in (*right, *faulty))
        same = [a.result == b.result for a, b in zip(right, faulty, strict=True)]
        if error.kind == ErrorKind.ANSWER:
            assert problem.right.answer != problem.faulty.answer
        else:
            assert same[: error.index + 1] == [True] * error.index + [False]
        kinds[error.kind] += 1
    assert {ErrorKind.SLIP, ErrorKind.MISREAD, ErrorKind.OPERATION, ErrorKind.ANSWER} <= set(kinds)
