"""The checker of labels objects: what is false in a trace, in its labels or its meta does not pass it."""

import dataclasses
import random
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
import sympy

from stepsight.core.label import Label
from stepsight.core.trace import Trace
from stepsight.training.synth.corpus import generate
from stepsight.training.synth.families import FAMILIES
from tests.training.synth.checker import objections
from tests.training.synth.facts import Facts, evaluate, numbers

META: dict[str, Any] = {
    "error": "arithmetic slip",
    "error_step": 2,
    "focus": 2,
    "evidence": {"step": 4, "kind": "inverse", "passes": False},
    "roles": ["restating", "line", "line", "line", "check", "redo"],
    "claims": [{}, {"a": "14"}, {"b": "94"}, {"answer": "94"}, {}, {}],
    "givens": {"n": "12", "m": "2", "p": "6"},
    "relations": {"a": "n + m", "b": "a * p", "answer": "b"},
}
STEPS = [
    "We are asked for the cost.",
    "There are 12 + 2 = 14 cups.",
    "They cost 14 * 6 = 94.",
    "The answer is 94.",
    "Check: 14 * 6 = 84, not 94.",
    "So 14 * 6 = 84, and the answer is 84.",
]
LABELS = ["neu", "pos", "neg", None, "pos", "pos"]


def trace(problem: str = "A dozen cups and 2 more cost 6 each. How much is that?", **changes: Any) -> Trace:
    """The trace above with some of its parts replaced: `step3="..."`, `label2="pos"`, or keys of its meta."""
    steps = [changes.pop(f"step{i}", text) for i, text in enumerate(STEPS)]
    labels = [changes.pop(f"label{i}", label) for i, label in enumerate(LABELS)]
    return Trace.of(problem, steps, labels, id="hand", meta=META | changes)


def test_a_true_trace_passes():
    # 12 + 2 = 14 and 14 * 6 = 84, so 94 is wrong, and the check of step 4 says so rightly.
    assert objections(trace()) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"label2": "pos"}, "step 2 .* labelled"),
        ({"label1": "neg"}, "step 1 .* labelled"),
        ({"label1": "neu"}, "step 1 .* labelled"),
        ({"label0": "pos"}, "step 0 .* labelled"),
        ({"label3": "pos"}, "step 3 .* labelled"),
        ({"label4": None}, "step 4 .* labelled"),
        ({"label5": None}, "step 5 .* labelled"),
        ({"error_step": 1}, "the first error is 2, not 1"),
        ({"step1": "There are 12 + 2 = 15 cups."}, "step 1 .* labelled"),
        ({"step1": "There are 12 + 3 = 15, so 14 cups."}, None),
        ({"step1": "There are 13 + 2 = 14 cups."}, "false: 13"),
        ({"step1": "There are some cups."}, "does not show"),
        ({"step2": "They cost 14 * 6 = 84."}, "does not show"),
        ({"step0": "We are asked for the cost of 99 cups."}, "restates .*99"),
        ({"step4": "Check: 14 * 6 = 94, so 94 is right."}, "false in a check"),
        ({"step4": "Check: 14 * 6 = 84, so 84 is right."}, "outcome True"),
        ({"step4": "Check: 14 * 6 = 84, not 95."}, "95, which nobody stated"),
        ({"step4": "Check: 14 * 6 = 84, so it holds."}, "outcome True"),
        ({"step5": "So 14 * 6 = 85, and the answer is 85."}, "redone wrongly"),
        ({"step5": "So 12 + 7 = 19."}, "no true value"),
        ({"evidence": {"step": 4, "kind": "inverse", "passes": True}}, "outcome False"),
        ({"problem": "11 cups and 2 more cost 6 each. How much is that?"}, "given n"),
        ({"claims": [{}, {"a": "14"}, {"b": "84"}, {"answer": "94"}, {}, {}]}, "step 2 .* does not show"),
        ({"claims": [{}, {"a": "12"}, {"b": "94"}, {"answer": "94"}, {}, {}]}, "step 1 .* labelled"),
        ({"relations": {"a": "n + m", "b": "a * p + 10", "answer": "b"}}, "84, which is no true value"),
        ({"relations": {"a": "n - m", "b": "a * p", "answer": "b"}}, "step 1 .* labelled"),
    ],
)
def test_it_objects_to_what_is_false(changes, expected):
    found = objections(trace(**changes))
    assert found
    assert expected is None or any(re.search(expected, text) for text in found), found


@pytest.mark.parametrize(
    ("text", "role", "passes"),
    [
        ("5 * 2 = 10; then 10 / 2 = 5.", "detour", False),
        ("12 * 2 = 24; then 24 / 2 = 12.", "detour", True),
        ("12 * 2 = 24; then 24 - 2 = 22.", "detour", False),
        ("By the way, 12 + 6 = 18.", "aside", True),
        ("By the way, 12 + 6 = 19.", "aside", False),
        ("By the way, 12 + 2 = 14.", "aside", False),
        ("Note that 12 is odd.", "aside", False),
        ("Note that 12 is even.", "aside", True),
        ("The problem says 12 cups.", "restating", True),
        ("Recall that it is 84.", "restating", False),
    ],
)
def test_redundant_steps_must_be_redundant(text, role, passes):
    roles = [role, *META["roles"][1:]]
    assert (objections(trace(step0=text, roles=roles)) == []) is passes


def test_unknowns_are_solved_from_the_problem():
    # 3x + 5 = 26 has the root 7, whatever the relations say.
    meta = META | {
        "error": None,
        "error_step": None,
        "evidence": None,
        "roles": ["line", "line"],
        "claims": [{"s": "21"}, {"x": "7"}],
        "givens": {"a": "3", "b": "5", "c": "26"},
        "relations": {"s": "c - b", "x": "s / a", "answer": "x"},
    }

    def solved(steps: list[str], **changes: Any) -> list[str]:
        return objections(Trace.of("Solve $3x + 5 = 26$.", steps, ["pos", "pos"], meta=meta | changes))

    assert solved(["$3x = 26 - 5 = 21$.", "$x = 7$."]) == []
    assert any("false: $4x" in text or "4x = 21" in text for text in solved(["$4x = 21$.", "$x = 7$."]))
    relations = {"s": "c + b", "x": "s / a", "answer": "x"}
    assert any("the problem has" in text for text in solved(["$3x = 21$.", "$x = 7$."], relations=relations))


def test_the_cases_of_a_quadratic():
    facts = Facts.of(Trace.of("Solve x^2 - 7x + 6 = 0.", ["?"], meta={"givens": {"b": "-7"}, "relations": {}}))
    assert set(facts.roots["x"]) == {1, 6}
    assert not facts.missing


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        # 153 - 10x <= 42 means x >= 11.1; |x - 34| < 20 means 14 < x < 54; 2 <= 3x - 4 < 11 means 2 <= x < 5.
        ("Solve $153 - 10x \\le 42$.", sympy.Interval(sympy.Rational(111, 10), sympy.oo)),
        ("Solve |x - 34| < 20.", sympy.Interval.open(14, 54)),
        ("Solve 2 <= 3x - 4 < 11.", sympy.Interval.Ropen(2, 5)),
        ("A number 5x + 1 is at most 11.", sympy.Interval(-sympy.oo, 2)),
        ("Solve |x| >= 3.", sympy.Union(sympy.Interval(-sympy.oo, -3), sympy.Interval(3, sympy.oo))),
        ("Solve 5x = 10.", None),
    ],
)
def test_the_region_of_an_inequality(problem, said):
    assert Facts.of(Trace.of(problem, ["?"], meta={"givens": {}, "relations": {}})).region == said


@pytest.mark.parametrize(
    ("problem", "roots"),
    [
        ("Solve |2x - 6| = 10.", {-2, 8}),
        ("Solve |x - 3| = |x - 9|.", {6}),
        ("Solve 5|x| + 3 = 68.", {-13, 13}),
        ("Solve $x^2 - 7x + 6 = 0$.", {1, 6}),
        ("Solve x/4 + 19 = 74.", {220}),
        ("Solve 2^(x - 3) = 32.", {8}),
    ],
)
def test_the_roots_of_an_equation(problem, roots):
    assert set(Facts.of(Trace.of(problem, ["?"], meta={"givens": {}, "relations": {}})).roots["x"]) == roots


def test_relations_are_evaluated_exactly():
    values = {"a": Fraction(7), "b": Fraction(2), "S": Fraction(9)}
    # 7/2 + 9 = 25/2; C(7, 2) = 21; 7 mod 2 = 1; sqrt(9) = 3; 20 percent of 9 = 9/5.
    assert evaluate("a / b + S", values) == Fraction(25, 2)
    assert evaluate("binom(a, b) + mod(a, b)", values) == 22
    assert evaluate("sqrt(S) * factorial(b)", values) == 6
    assert evaluate("percent(20, S)", values) == Fraction(9, 5)
    assert evaluate("abs(b - a) + gcd(6, S) + lcm(4, b)", values) == 5 + 3 + 4


def test_numbers_of_a_text():
    assert numbers("x^2 - 19x + 3/4 costs \\$5.50, $-\\frac{1}{2}$") >= {
        Fraction(-19),
        Fraction(3, 4),
        Fraction(11, 2),
        Fraction(-1, 2),
    }


# --- On the corpus itself ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    return list(generate(77, 400, FAMILIES))


def spoiled(traces: list[Trace], spoil: Callable[[Trace, random.Random], Trace | None]) -> tuple[int, list[Trace]]:
    """How many traces could be spoiled, and those of them that passed nevertheless."""
    rng = random.Random(5)
    changed = [other for trace in traces if (other := spoil(trace, rng)) is not None]
    return len(changed), [trace for trace in changed if not objections(trace)]


_RESULT = re.compile(r"((?<=[\d)}] )= -?)(\d+)\b(?![./]|\s*[-+*/x×])")


def flip_a_label(trace: Trace, rng: random.Random) -> Trace | None:
    at = rng.randrange(len(trace.steps))
    other = rng.choice([label for label in (None, *Label) if label != trace.steps[at].label])
    steps = list(trace.steps)
    steps[at] = dataclasses.replace(steps[at], label=other, valid=None)
    return dataclasses.replace(trace, steps=tuple(steps))


def change_a_result(trace: Trace, rng: random.Random) -> Trace | None:
    """The result of a calculation in a step that is labelled right."""
    places = [i for i, s in enumerate(trace.steps) if s.label in (Label.POS, Label.NEU)]
    places = [i for i in places if re.search(_RESULT, trace.steps[i].text)]
    if not places:
        return None
    at = rng.choice(places)
    text = re.sub(_RESULT, lambda m: f"{m[1]}{int(m[2]) + 1}", trace.steps[at].text, count=1)
    steps = list(trace.steps)
    steps[at] = dataclasses.replace(steps[at], substeps=(text,))
    return dataclasses.replace(trace, steps=tuple(steps))


def hide_the_error(trace: Trace, rng: random.Random) -> Trace | None:
    return with_meta(trace, error_step=None) if trace.meta["error"] else None


def turn_the_evidence(trace: Trace, rng: random.Random) -> Trace | None:
    evidence = trace.meta["evidence"]
    return with_meta(trace, evidence=evidence | {"passes": not evidence["passes"]}) if evidence else None


def drop_the_failing(trace: Trace, rng: random.Random) -> Trace | None:
    """The failing check says no longer that it fails."""
    evidence = trace.meta["evidence"]
    if evidence is None or evidence["passes"]:
        return None
    steps = list(trace.steps)
    steps[evidence["step"]] = dataclasses.replace(
        steps[evidence["step"]], substeps=("Check: 2 + 3 = 5, so it holds.",)
    )
    return dataclasses.replace(trace, steps=tuple(steps))


def with_meta(trace: Trace, **changes: Any) -> Trace:
    return dataclasses.replace(trace, meta={**trace.meta, **changes})


@pytest.mark.parametrize(
    ("spoil", "least"),
    [
        (flip_a_label, 400),
        (change_a_result, 250),
        (hide_the_error, 150),
        (turn_the_evidence, 150),
        (drop_the_failing, 80),
    ],
)
def test_no_spoiled_trace_passes(traces, spoil, least):
    count, passed = spoiled(traces, spoil)
    assert count >= least
    assert passed == []
