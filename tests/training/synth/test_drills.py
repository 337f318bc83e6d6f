"""Drills: every equation is read from its text and worked out with SymPy."""

import itertools
import re
from collections import Counter

import sympy

from stepsight.core.trace import Label
from stepsight.training.synth.drills import generate
from tests.training.synth.samples import sha256

_REWRITES = (
    (r"\\cdot|\\times|×|(?<=[\d)]) x (?=[\d(-])", "*"),
    (r"\\div|÷", "/"),
    (r"\\frac\{(-?\d+)\}\{(\d+)\}", r"((\1)/(\2))"),
    (r"\\sqrt\{(\d+)\}", r"sqrt(\1)"),
    (r"\^\{(\d+)\}", r"^\1"),
    (r"(\d+)(?:\\%|%)(?: \\text\{ of \}| of) (\d+)", r"(\1*\2/100)"),
    (r"\\gcd", "gcd"),
    (r"\\text\{lcm\}", "lcm"),
    (r"\\binom\{(\d+)\}\{(\d+)\}", r"binomial(\1,\2)"),
    (r"C\(", "binomial("),
    (r"(\d+) (?:\\bmod|mod) (\d+)", r"Mod(\1,\2)"),
    (r"\|(\d+ - \d+)\|", r"Abs(\1)"),
    (r"(\d+)!", r"factorial(\1)"),
)
_EQUATION = re.compile(
    r"^(?:So|We have|This gives|Then|Thus,|We get|That means|Now|I know that|Simplifying, we get) "
)
_SOLVED = re.compile(
    r"(-?\d+[xynatb](?: [+-] \d+)?) = (-?\d+)"
    r"\$?(?: \\Rightarrow | \\implies |, so |, then | => )\$?([xynatb]) = (-?\d+)"
)
_NAMES = {name: sympy.Symbol(name) for name in "xynatb"}


def sides(text):
    """The sides of a chain of equations in a step's text, as SymPy expressions."""
    text = _EQUATION.sub("", text.replace(", as we can compute", "")).rstrip(".").replace("$", "").strip()
    for old, new in _REWRITES:
        text = re.sub(old, new, text)
    text = re.sub(r"(\d)(?=[a-z(])(?!\d)", r"\1*", text)
    text = re.sub(r"(?<![a-z])([xynatb])\(", r"\1*(", text).replace(")(", ")*(")
    parser = {"gcd": sympy.gcd, "lcm": sympy.lcm, **_NAMES}
    return [sympy.sympify(side.replace("^", "**"), locals=parser, rational=True) for side in text.split("=")]


def test_every_label_is_that_of_the_equation():
    read = Counter()
    for trace in generate(3, 500):
        for step in trace.steps:
            if re.search(r"Rightarrow|implies|so |then |=>", step.text):
                continue
            parts = sides(step.text)
            assert len(parts) > 1, step.text
            true = all(sympy.expand(a - b) == 0 for a, b in itertools.pairwise(parts))
            assert (step.label == Label.POS) is true, step.text
            read[step.label] += 1
    assert min(read.values()) > 500


def test_linear_equations_with_their_solutions():
    read = 0
    for trace in generate(4, 500):
        for step in trace.steps:
            shown = _SOLVED.search(step.text)
            if shown:
                left = sympy.sympify(re.sub(r"(\d)([a-z])", r"\1*\2", shown[1]))
                solved = sympy.solve(left - int(shown[2]), sympy.Symbol(shown[3]))
                assert (step.label == Label.POS) is (solved == [int(shown[4])]), step.text
                read += 1
    assert read > 50


def test_a_drill_depends_on_its_seed_and_number_alone():
    assert [t.digest for t in generate(1, 5)] == [t.digest for t in itertools.islice(generate(1, 50), 5)]
    assert [t.digest for t in generate(1, 5)] != [t.digest for t in generate(2, 5)]


def test_drills_do_not_change():
    """As the corpus: they are what the shipped evaluators learned from."""
    assert sha256(generate(0, 2000)) == "c36071d7f4bed2ac47df7d955d73851e7e288dcc16ba5d3e14517bd85eff454c"
