from dataclasses import replace

import pytest

from stepsight.app.score.entered import Entered
from stepsight.app.score.result import result_html
from stepsight.core.trace import Trace
from stepsight.training.evaluate.gallery import read_gallery
from tests.app.elements import read
from tests.app.entries import typed

PROBLEM, SOLUTION = "What is 2 + 3?", "1. 2 + 3 = 5.\n2. So the answer is 5."
FORM = typed(PROBLEM, SOLUTION, ("tiny",))
LONGER = typed(PROBLEM, SOLUTION + "\n3. Check: 5 - 3 = 2.", ("tiny", "tiny-causal"))


def notices(html):
    return [alert.text for alert in read(html).all("div", role="alert")]


@pytest.mark.parametrize("names", [("tiny",), ("tiny-causal", "tiny")])
def test_a_solution_is_judged_with_the_evaluators_numbers(evaluators, names):
    page = read(result_html(evaluators, typed(PROBLEM, SOLUTION, names)))
    trace = Trace.of(PROBLEM, ["2 + 3 = 5.", "So the answer is 5."])
    for i, item in enumerate(page.one("ol", cls="steps").all("li")):
        expected = []
        for name in names:
            hindsight = evaluators.judge(name, trace).hindsight
            expected += [hindsight.online.validity[i], hindsight.offline.validity[i]]
        assert [bar.one(cls="num").text for bar in item.all("div", cls="c")] == [f"{v:.2f}" for v in expected]
    assert page.one("div", cls="q").text == PROBLEM


def test_another_solution_is_compared_only_with_one_that_was_kept(evaluators):
    other = replace(typed(PROBLEM, "1. Nothing\n2. in common.", ("tiny",)), before=(FORM.token(),))
    assert read(result_html(evaluators, other)).all("div", cls="earlier") == []
    page = read(result_html(evaluators, replace(other, kept=True)))
    assert page.one("section")["data-kept"] == FORM.token()
    # The same solution has nothing to tell of itself.
    for token in (FORM.token(), "cut off"):
        same = replace(FORM, before=(token,), kept=True)
        assert read(result_html(evaluators, same)).all("div", cls="earlier") == []


def test_a_trace_of_the_gallery_comes_with_its_sentence(evaluators):
    trace = read_gallery()[0]
    page = read(result_html(evaluators, Entered.of(trace, ["tiny"])))
    assert page.one("p", cls="reveals").text == f"About this solution: {trace.meta['note']}"
    assert read(result_html(evaluators, FORM)).all("p", cls="reveals") == []


def test_a_failing_equation_is_told_of_a_solution_that_no_evaluator_can_read(evaluators):
    """A step of 20,000 digits fits into no window."""
    html = result_html(evaluators, typed(PROBLEM, f"1. 2 + 3 = 6.\n2. {'7' * 20_000}", ("tiny",)))
    assert read(html).one("p", cls="conclusion").text.startswith("Step 1 is wrong: 2 + 3 is 5, not 6.")
    assert "tiny reads at most 1,024." in notices(html)[0]


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (typed("", SOLUTION, ("tiny",)), "The problem is empty. Enter the problem, then score again."),
        (typed(PROBLEM, "7" * 20_000, ("tiny",)), "tokens, tiny reads at most 1,024."),
        (typed(PROBLEM, SOLUTION, ()), "No evaluator is chosen. Choose one or more, then score again."),
        (
            typed(PROBLEM, SOLUTION, ("gone",)),
            "There is no evaluator 'gone'. Choose one of: tiny, tiny-causal.",
        ),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_a_solution_that_cannot_be_scored_gets_a_notice(evaluators, form, message):
    html = result_html(evaluators, form)
    assert len(notices(html)) == 1
    assert message in notices(html)[0]
    assert read(html).all("section") == []


def test_one_that_cannot_judge_does_not_keep_the_others_from_it(evaluators):
    html = result_html(evaluators, typed(PROBLEM, SOLUTION, ("gone", "tiny")))
    assert notices(html) == ["There is no evaluator 'gone'. Choose one of: tiny, tiny-causal."]
    page = read(html)
    assert [who.one("strong").text for who in page.all("span", cls="who")] == ["tiny"]
    assert Entered.from_token(page.one("section")["data-token"]).evaluators == ("tiny",)
