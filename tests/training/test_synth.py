"""The corpus: its labels by construction, re-derived here from the texts alone, and the absence of give-aways."""

import itertools
import re
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction

import pytest
import sympy

from core.assets import asset
from core.errors import UserError
from core.jsonl import format_trace, parse_trace, read_file
from core.label import Label
from core.trace import Trace
from training.synth.corpus import FAMILIES, generate

SIZE = 2000
HIGHEST_AUC = 0.62


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    return list(generate(7, SIZE))


# --- Reading a step's equations from its text ---------------------------------------------------------------

_TOKEN = re.compile(r"\d+(?:\.\d+)?|[A-Za-z]+|\S")
_PERCENT = re.compile(r"(\d+)% of (\d+) = (\d+)")
_SIGNS = frozenset("+-*/()")


def plain(text: str) -> str:
    """LaTeX and the other signs rewritten with `+ - * /`."""
    for old, new in (("\\times", "*"), ("\\cdot", "*"), ("\\div", "/"), ("÷", "/"), ("×", "*"), ("$", "")):
        text = text.replace(old, new)
    text = text.replace("\\% \\text{ of }", "% of")
    return re.sub(r"(?<=[\d)]) x (?=[\d(])", " * ", text)


def equations(text: str) -> list[tuple[str, bool]]:
    """Each equation `formula = number` between numbers that the text states, and whether it is true."""
    text = plain(text)
    found = [(m[0], Fraction(int(m[1]) * int(m[2]), 100) == int(m[3])) for m in _PERCENT.finditer(text)]
    tokens = _TOKEN.findall(text)
    for at, token in enumerate(tokens):
        if token == "=":
            left, right = _formula_before(tokens, at), _number_after(tokens, at)
            if left and right is not None:
                found.append((f"{left} = {right}", _value(left) == right))
    return found


def _formula_before(tokens: list[str], at: int) -> str | None:
    start = at
    while start and (tokens[start - 1] in _SIGNS or tokens[start - 1][0].isdigit()):
        start -= 1
    formula = " ".join(tokens[start:at])
    # After a letter x or a power, these are the last terms of an equation in x.
    unknown = start > 0 and tokens[start - 1] in ("x", "^", "%")
    if unknown or formula.count("(") != formula.count(")") or len(re.findall(r"\d+(?:\.\d+)?", formula)) < 2:
        return None
    return formula


def _number_after(tokens: list[str], at: int) -> Fraction | None:
    shown = re.match(r"(- )?(\d+(?:\.\d+)?)(?! x)", " ".join(tokens[at + 1 : at + 4]))
    return Fraction((shown[1] or "").strip() + shown[2]) if shown else None


def _value(formula: str) -> Fraction:
    """Exact: every number is made a Fraction before Python reads the formula."""
    source = re.sub(r"\d+(?:\.\d+)?", lambda match: f"Fraction('{match[0]}')", formula)
    result = eval(source, {"__builtins__": {}, "Fraction": Fraction})
    assert isinstance(result, Fraction)
    return result


def test_the_reader_of_equations_itself():
    assert equations("So $3 \\times 13 = 38$.") == [("3 * 13 = 38", False)]
    assert equations("6x = 95 - 17 = 78.") == [("95 - 17 = 78", True)]
    assert equations("6 x (-1) = -6, as needed") == [("6 * ( - 1 ) = -6", True)]
    assert equations("$15\\% \\text{ of } 260 = 39$") == [("15% of 260 = 39", True)]
    assert equations("200 - (38 + 16) = 146") == [("200 - ( 38 + 16 ) = 146", True)]
    assert equations("x = 3 gives 9 - 21 + 6 = -6") == [("9 - 21 + 6 = -6", True)]
    assert equations("(x - 6)(x + 1) = 0, so 3x + 5 = 26") == []


# --- Determinism ---------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_traces():
    assert [t.digest for t in generate(3, 50)] == [t.digest for t in generate(3, 50)]
    assert [t.digest for t in generate(3, 50)] != [t.digest for t in generate(4, 50)]


def test_a_shorter_corpus_is_the_beginning_of_a_longer_one():
    longer = [format_trace(t) for t in generate(11, 100)]
    assert [format_trace(t) for t in generate(11, 10)] == longer[:10]


def test_it_streams():
    assert len(list(itertools.islice(generate(1, 10**9), 3))) == 3


def test_families_can_be_chosen(traces):
    assert {t.meta["family"] for t in generate(1, 40, ["linear", "age"])} == {"linear", "age"}
    assert {t.meta["family"] for t in traces} == set(FAMILIES)
    with pytest.raises(UserError, match="calculus found, expected some of shopping"):
        generate(1, 1, ["calculus"])


def test_traces_survive_the_plain_format(traces):
    for trace in traces[:50]:
        assert parse_trace(format_trace(trace), "here") == trace


# --- Labels --------------------------------------------------------------------------------------------------


def test_labels_before_at_and_after_the_error(traces):
    for trace in traces:
        at, evidence = trace.meta["error_step"], trace.meta["evidence"]
        negs = [i for i, label in enumerate(trace.labels) if label == Label.NEG]
        assert negs == ([] if at is None else [at])
        assert trace.first_error == at
        if at is None:
            assert None not in trace.labels
            continue
        assert None not in trace.labels[: at + 1]
        # After the error only the step that exposes it, and its redo, are labelled: pos.
        after = {i: label for i, label in enumerate(trace.labels) if i > at and label is not None}
        allowed = {evidence["step"], evidence["step"] + 1} if evidence else set()
        assert set(after) <= allowed
        assert all(label == Label.POS for label in after.values())


def test_the_evidence_stands_after_the_focus_and_tells_the_truth(traces):
    for trace in traces:
        evidence, wrong = trace.meta["evidence"], trace.meta["error"] is not None
        if evidence is None:
            continue
        assert trace.meta["focus"] < evidence["step"] < len(trace.steps)
        assert trace.meta["later_check"]
        assert evidence["passes"] is not wrong
        assert trace.labels[evidence["step"]] == Label.POS


def test_true_equations_everywhere_but_in_slips(traces):
    read = 0
    for trace in traces:
        for index, step in enumerate(trace.steps):
            found = equations(step.text)
            read += len(found)
            if step.label == Label.NEG and trace.meta["error"] == "calculation slip":
                # A jump states only its result, and a wrong pair may be right in its sum or in its product.
                bare = not found or trace.meta["family"] == "quadratic"
                assert bare or not all(true for _, true in found), (trace.id, step.text)
            else:
                assert all(true for _, true in found), (trace.id, index, step.text)
    assert read > 3 * SIZE


def test_right_traces_solve_their_equations():
    x = sympy.Symbol("x")
    for trace in generate(5, 150, ["linear", "quadratic"]):
        problem = trace.problem.replace("$", "")
        shown = re.search(r"(?:-?\d+|x)[\dx^+\-()/ ]* = [\dx+\- ]*\d", problem)
        assert shown, problem
        left, right = (_sympy(side, x) for side in shown[0].split("="))
        if trace.meta["error"] is None:
            assert _claims(trace), trace.steps
            roots = set(sympy.solve(left - right, x))
            assert _claims(trace) <= roots, (trace.problem, [s.text for s in trace.steps])


def _sympy(text: str, x: sympy.Symbol) -> sympy.Expr:
    text = re.sub(r"(\d)\s*(?=[x(])", r"\1*", text.strip()).replace("^", "**")
    return sympy.sympify(text, locals={"x": x})


def _claims(trace: Trace) -> set[int]:
    """Every value that the trace gives to x, in `x = 7`, `x = 78 / 6 = 13` or `x is 13`."""
    text = " ".join(plain(step.text) for step in trace.steps)
    stated = r"(?<![\d+\-*/(])(?<![\d+\-*/] )x = (?:[^=,.;A-Za-z]*= )*(-?\d+)"
    return set(map(int, re.findall(stated, text) + re.findall(r"\bx is (?:\\boxed{)?(-?\d+)", text)))


# --- Give-aways ----------------------------------------------------------------------------------------------


def auc(items: Sequence[tuple[float, bool]]) -> float:
    """ROC AUC, ties counted half. By hand: scores 1, 2, 2 with the first 2 and no other true give 0.75."""
    ranked = sorted(items)
    positives = sum(truth for _, truth in ranked)
    rank_sum, start = 0.0, 0
    for _, group in itertools.groupby(ranked, key=lambda item: item[0]):
        truths = [truth for _, truth in group]
        rank_sum += (start + (len(truths) + 1) / 2) * sum(truths)
        start += len(truths)
    return (rank_sum - positives * (positives + 1) / 2) / (positives * (len(ranked) - positives))


def test_auc_by_hand():
    assert auc([(1, False), (2, True), (2, False)]) == 0.75


_OPENS_CHECK = re.compile(r"Check|To check|Wait|Looking back|Verify|Let me double|Now test")

TRACE_FEATURES: dict[str, Callable[[Trace], float]] = {
    "number of steps": lambda t: len(t.steps),
    "length": lambda t: sum(len(s.text) for s in t.steps),
    "length of the problem": lambda t: len(t.problem),
    "length of the last step": lambda t: len(t.steps[-1].text),
    "presence of a check": lambda t: any(_OPENS_CHECK.match(s.text) for s in t.steps),
    "number of checks": lambda t: sum(bool(_OPENS_CHECK.match(s.text)) for s in t.steps),
    "ends with a check": lambda t: bool(_OPENS_CHECK.match(t.steps[-1].text)),
    "ends with an answer": lambda t: "nswer" in t.steps[-1].text or "boxed" in t.steps[-1].text,
    "says wait": lambda t: any("Wait" in s.text for s in t.steps),
    "begins with so": lambda t: sum(s.text.startswith("So ") for s in t.steps),
}

STEP_FEATURES: dict[str, Callable[[Trace, int], float]] = {
    "position": lambda t, i: i,
    "relative position": lambda t, i: i / len(t.steps),
    "distance to the end": lambda t, i: len(t.steps) - i,
    "last step": lambda t, i: i == len(t.steps) - 1,
    "first step": lambda t, i: i == 0,
    "length": lambda t, i: len(t.steps[i].text),
    "digits": lambda t, i: sum(c.isdigit() for c in t.steps[i].text),
    "an equation": lambda t, i: "=" in t.steps[i].text,
    "being a check": lambda t, i: bool(_OPENS_CHECK.match(t.steps[i].text)),
    "a check follows": lambda t, i: i + 1 < len(t.steps) and bool(_OPENS_CHECK.match(t.steps[i + 1].text)),
}


@pytest.mark.parametrize("name", TRACE_FEATURES)
def test_no_feature_of_a_trace_tells_whether_it_is_wrong(traces, name):
    feature = TRACE_FEATURES[name]
    # Nothing is drawn differently for a wrong trace, so only chance is left: five standard errors at 2,000.
    assert abs(auc([(feature(t), t.meta["error"] is not None) for t in traces]) - 0.5) < 0.065


@pytest.mark.parametrize("name", STEP_FEATURES)
def test_no_feature_of_a_step_tells_its_label(traces, name):
    feature = STEP_FEATURES[name]
    items = [
        (feature(t, i), step.label == Label.NEG)
        for t in traces
        for i, step in enumerate(t.steps)
        if step.label is not None
    ]
    assert 1 - HIGHEST_AUC < auc(items) < HIGHEST_AUC


# --- Rates and variety ---------------------------------------------------------------------------------------


def test_rates(traces):
    wrong = [t for t in traces if t.meta["error"]]
    right = [t for t in traces if not t.meta["error"]]
    assert len(wrong) / SIZE == pytest.approx(0.5, abs=0.05)
    for group in (wrong, right):
        share = sum(t.meta["evidence"] is not None for t in group) / len(group)
        assert share == pytest.approx(0.6, abs=0.05)
    redundant = sum(Label.NEU in t.labels for t in right) / len(right)
    assert redundant == pytest.approx(0.35, abs=0.06)
    kinds = Counter(t.meta["error"] for t in wrong)
    assert set(kinds) == {"calculation slip", "misreading", "wrong operation"}
    assert min(kinds.values()) > 0.15 * len(wrong)


def test_errors_after_which_no_check_fails(traces):
    wrong = [t for t in traces if t.meta["error"]]
    elsewhere = [t for t in wrong if t.meta["later_check"] and t.meta["evidence"] is None]
    silent = [t for t in wrong if not t.meta["later_check"]]
    assert len(elsewhere) > 0.04 * len(wrong)
    assert len(silent) > 0.2 * len(wrong)


def test_wording_varies(traces):
    openings = Counter(" ".join(s.text.split()[:2]) for t in traces for s in t.steps)
    assert len([count for count in openings.values() if count >= 10]) > 60
    assert len({t.meta["evidence"]["kind"] for t in traces if t.meta["evidence"]}) >= 10
    assert sum("$\\" in t.problem or re.search(r"\$[^$]+\$", t.problem) is not None for t in traces) > SIZE / 5


def test_wrong_pairs_miss_the_sum_or_the_product():
    wrong = [t for t in generate(2, 300, ["quadratic"]) if t.meta["error"] == "calculation slip"]
    for trace in wrong:
        at = trace.meta["error_step"]
        need = next(s.text for s in trace.steps[:at] if re.search(r"multiply|product", s.text))
        product, total = map(int, re.findall(r"-?\d+", need))
        shown = re.search(r"(?:Take|Use|take|are) \$?(-?\d+)\$? and \$?(-?\d+)|^\$?(-?\d+)\$? and \$?(-?\d+)",
                          trace.steps[at].text)  # fmt: skip
        assert shown, trace.steps[at].text
        p, q = (int(group) for group in shown.groups() if group)
        assert (p * q, p + q) != (product, total)
    assert len(wrong) > 50


def test_texts_are_clean(traces):
    for trace in traces:
        for text in (trace.problem, *trace.substeps):
            bare = re.sub(r"\\(?:text|boxed|frac)\{[^{}]*\}(?:\{[^{}]*\})?", "", text)
            assert not re.search(r"[{}@\[\]]|\.\.|None", bare), text
            assert "  " not in text
            assert not text[0].islower() or text[0] == "x", text


# --- The demo traces -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def demo() -> list[Trace]:
    path = asset("traces", "demo.jsonl")
    return [parse_trace(row, f"demo.jsonl line {number}") for number, row in read_file(path)]


def test_demo_traces_are_labelled_and_explained(demo):
    assert len(demo) >= 10
    assert len({trace.id for trace in demo}) == len(demo)
    for trace in demo:
        assert trace.meta["title"]
        assert trace.meta["note"].endswith(".")
        assert trace.has_gold
        at, evidence = trace.first_error, trace.meta["evidence"]
        if evidence is not None:
            assert 0 < evidence < len(trace.steps)
            assert trace.labels[evidence] == Label.POS
        if at is not None and evidence is not None:
            assert at < evidence
        if at is None:
            assert None not in trace.labels


def test_demo_arithmetic_is_true_but_in_wrong_steps(demo):
    for trace in demo:
        for step in trace.steps:
            if step.label != Label.NEG:
                assert all(true for _, true in equations(step.text)), (trace.id, step.text)


def test_demo_covers_what_the_pages_show(demo):
    labels = [set(trace.labels) for trace in demo]
    assert sum(Label.NEG not in found for found in labels) >= 3
    assert sum(Label.NEU in found for found in labels) >= 2
    assert any("Wait" in trace.substeps[i] for trace in demo for i in range(len(trace.steps)))
    assert any("$1.24" in trace.problem for trace in demo)
    assert {trace.id for trace in demo} >= {"factoring-product-check"}
    assert not {t.digest for t in generate(0, 300)} & {t.digest for t in demo}
