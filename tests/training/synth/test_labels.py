"""The labels of traces, derived anew: values by SymPy from the relations of the meta, and equations by
`core.equations`, which knows nothing of the corpus."""

import dataclasses
import math
import random
import re
from collections import Counter
from fractions import Fraction

import pytest
import sympy

from stepsight.core.equations.checker import check_steps
from stepsight.core.trace import Label
from stepsight.training.synth.corpus import FAMILIES, QUADRATIC, generate, plan_story, read_family
from stepsight.training.synth.formula import ErrorKind
from stepsight.training.synth.solution import assemble_trace
from stepsight.training.synth.story import Story

REDUNDANT = ("restating", "detour", "aside")
_NUMBER = re.compile(r"\\frac\{(\d+)\}\{(\d+)\}|(\d+(?:\.\d+)?)(?:/(\d+))?")
_CALLS = {
    "binom": sympy.binomial, "factorial": sympy.factorial, "gcd": sympy.gcd, "lcm": sympy.lcm, "mod": sympy.Mod,
    "sqrt": sympy.sqrt, "abs": sympy.Abs, "floor": sympy.floor, "ceil": sympy.ceiling,
    "percent": lambda rate, whole: rate * whole / 100, "log": lambda base, number: sympy.log(number, base),
}  # fmt: skip


def true_values(trace):
    """The givens and, in the order of the relations, what follows from them."""
    values = {key: Fraction(text) for key, text in trace.meta["givens"].items()}
    for key, formula in trace.meta["relations"].items():
        values[key] = evaluate(formula, values)
    return values


def evaluate(formula, values):
    """The exact value of a formula in Python's notation, by SymPy."""
    names = {name: sympy.Rational(value.numerator, value.denominator) for name, value in values.items()}
    value = sympy.simplify(sympy.sympify(formula, locals=_CALLS | names))
    return Fraction(int(value.p), int(value.q))


def shown(text):
    """The numbers in a text, without their signs; π is one times π."""
    parts = [[Fraction(part) for part in match.groups() if part] for match in _NUMBER.finditer(text)]
    return {
        Fraction("π" in text or "\\pi" in text),
        *(math.prod([a, *(1 / b for b in rest)]) for a, *rest in parts),
    }


def objections(trace):
    """Everything in which the labels and meta of a trace disagree with its texts."""
    truth, meta = true_values(trace), trace.meta
    claims = [{key: Fraction(text) for key, text in claim.items()} for claim in meta["claims"]]
    wrong = [
        any(truth[key] != value for key, value in claim.items()) or false_equations(step.text)
        for step, claim in zip(trace.steps, claims, strict=True)
    ]
    first = wrong.index(True) if True in wrong else None
    if meta["error_step"] != first or (meta["error"] is None) != (first is None):
        yield f"the first error is {first}"
    evidence = meta["evidence"]
    for index, (step, role) in enumerate(zip(trace.steps, meta["roles"], strict=True)):
        after = first is not None and index > first
        exposes = role == "redo" or (evidence and evidence["step"] == index and not evidence["passes"])
        expected: Label | None = Label.NEU if role in REDUNDANT else Label.POS
        if index == first:
            expected = Label.NEG
        elif after and not exposes:
            expected = None
        if step.label != expected:
            yield f"step {index} ({step.text!r}) is labelled {step.label!r}, expected {expected!r}"
        if role in ("check", "redo") and false_equations(step.text):
            yield f"step {index} ({step.text!r}) checks with a false equation"
        if meta["redone"] and index > evidence["step"] and wrong[index]:
            yield f"step {index} ({step.text!r}) is wrong after the error was mended"
        if meta["family"] != QUADRATIC and not {abs(value) for value in claims[index].values()} <= shown(step.text):
            yield f"step {index} ({step.text!r}) does not show {meta['claims'][index]}"


def false_equations(text):
    """Whether a text states one. Each clause is read by itself: a check may say that a number is wrong."""
    clauses = re.split(r"(?<=\d\$) |(?<=\d) (?=and |times as )|, |(?<=[\d$])\. ", text)
    return any(not check.holds for checks in check_steps("", clauses) for check in checks)


@pytest.fixture(scope="module")
def traces():
    """Of all families, a fifth of them on larger numbers."""
    return [*generate(3, 400, FAMILIES), *generate(4, 100, FAMILIES, larger=True)]


def test_labels_are_those_of_the_texts(traces):
    errors = Counter(trace.meta["error"] for trace in traces)
    assert set(errors) == {*ErrorKind, None}
    assert {trace.meta["family"] for trace in traces} == set(FAMILIES)
    assert not [f"{trace.id}: {text}" for trace in traces for text in objections(trace)]


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != QUADRATIC])
def test_the_counterparts_of_mistakes_are_true(family):
    """Each of them, as a right solution and as a wrong one, on numbers of training and on larger ones."""
    for story in read_family(family, dict[str, Story]).values():
        for number, counterpart in enumerate(story.counterparts):
            for wrong in (False, True):
                rng = random.Random(f"{counterpart.problems[0]}:{wrong}")
                plan = plan_story(counterpart, wrong, rng, larger=number % 2 == 1)
                assert not list(objections(assemble_trace(plan, family, "counterpart", rng)))


def test_a_flipped_label_is_objected_to(traces):
    rng = random.Random(5)
    for trace in traces:
        at = rng.randrange(len(trace.steps))
        other = rng.choice([label for label in (None, *Label) if label != trace.steps[at].label])
        step = dataclasses.replace(trace.steps[at], label=other, valid=None)
        assert list(objections(with_step(trace, at, step)))


def test_a_changed_result_is_objected_to(traces):
    """Nearly always: `core.equations` reads no lcm, nor the remainder of a division."""
    result = re.compile(r"((?<=[\d)}] )= -?)(\d+)\b(?![./]|\s*[-+*/x×])")
    missed = []
    for trace in (trace for trace in traces if trace.meta["family"] != QUADRATIC):
        at = next((i for i, s in enumerate(trace.steps) if s.label and result.search(s.text)), None)
        if at is not None:
            text = result.sub(lambda match: f"{match[1]}{int(match[2]) + 1}", trace.steps[at].text, count=1)
            changed = with_step(trace, at, dataclasses.replace(trace.steps[at], substeps=(text,)))
            missed.append(not list(objections(changed)))
    assert len(missed) > 250
    assert sum(missed) < 0.05 * len(missed)


def with_step(trace, at, step):
    return dataclasses.replace(trace, steps=(*trace.steps[:at], step, *trace.steps[at + 1 :]))
