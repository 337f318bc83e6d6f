"""A plan made into a trace: what is drawn does not depend on whether the plan is wrong."""

import random
from collections import Counter
from dataclasses import replace

import pytest

from stepsight.core.label import Label
from stepsight.core.trace import Trace
from stepsight.training.synth.solution import RedundantStep, SelfCheck, SolutionPlan, SolutionStep, assemble_trace


def step(stated: str, right: str, key: str, value: str, right_value: str, wrong: bool) -> SolutionStep:
    values, right_values = {key: value if wrong else right_value}, {key: right_value}
    return SolutionStep(lambda corrected: stated if wrong and not corrected else right, values, right_values)


def plan(wrong: bool) -> SolutionPlan:
    return SolutionPlan(
        problem="What is (2 + 3) * 4?",
        steps=(
            step("so 2 + 3 = 5.", "so 2 + 3 = 5.", "a", "5", "5", wrong),
            step("then 5 * 4 = 30.", "then 5 * 4 = 20.", "b", "30", "20", wrong),
            step("the answer is 30.", "the answer is 20.", "answer", "30", "20", wrong),
        ),
        focus=1,
        kind="arithmetic slip",
        wrong=wrong,
        checks=(
            SelfCheck(
                "inverse", 1, lambda: "30 / 4 is not 5." if wrong else "20 / 4 = 5, as stated.", not wrong, True
            ),
            SelfCheck("reread", 0, lambda: "the problem says 2, as stated.", True, False),
        ),
        redundant=(RedundantStep(-1, "aside", lambda corrected: "by the way, 2 * 2 = 4."),),
        redo=lambda step: "So 5 * 4 = 20.",
        quantities={"n": "2", "m": "3", "k": "4"},
        relations={"a": "n + m", "b": "a * k", "answer": "b"},
    )


def woven(wrong: bool, count: int = 400) -> list[Trace]:
    return [assemble_trace(plan(wrong), "sums", f"t-{seed}", random.Random(seed)) for seed in range(count)]


def test_behind_an_error_each_step_can_be_labelled_by_itself():
    for seed in range(100):
        bare, whole = (
            assemble_trace(plan(True), "sums", "t", random.Random(seed), consequences)
            for consequences in (False, True)
        )
        assert bare.substeps == whole.substeps
        at = whole.meta["error_step"]
        expected = [Label.NEU if role in ("aside", "restating") else Label.POS for role in whole.meta["roles"]]
        # "The answer is 30." carries the error on, and is right of what stands before it.
        assert list(whole.labels) == [*expected[:at], Label.NEG, *expected[at + 1 :]]
        assert all(one in (None, other) for one, other in zip(bare.labels, whole.labels, strict=True))


def test_labels_and_meta_of_a_wrong_trace():
    for trace in woven(wrong=True):
        at = trace.meta["error_step"]
        assert trace.steps[at].text == "Then 5 * 4 = 30."
        assert trace.labels[at] == Label.NEG
        assert trace.meta["error"] == "arithmetic slip"
        assert trace.meta["roles"][at] == "line"
        assert trace.meta["claims"][at] == {"b": "30"}
        for i, (role, label) in enumerate(zip(trace.meta["roles"], trace.labels, strict=True)):
            exposes = role == "redo" or (role == "check" and "is not 5" in trace.steps[i].text)
            if i > at:
                assert label == (Label.POS if exposes else None)
            elif i < at:
                assert label == (Label.NEU if role in ("aside", "restating", "detour") else Label.POS)


def test_after_a_redo_the_rest_is_right():
    redone = [trace for trace in woven(wrong=True) if trace.meta["redone"]]
    assert len(redone) > 30
    for trace in redone:
        last = [claims for claims in trace.meta["claims"] if "answer" in claims]
        step = trace.meta["evidence"]["step"]
        ends = trace.meta["claims"].index(last[0])
        assert last == [{"answer": "20" if ends > step else "30"}]


def test_a_right_trace_is_labelled_throughout():
    for trace in woven(wrong=False):
        assert trace.meta["error"] is None
        assert trace.meta["error_step"] is None
        assert not trace.meta["redone"]
        assert None not in trace.labels
        assert Label.NEG not in trace.labels


@pytest.mark.parametrize("feature", ["steps", "roles", "evidence"])
def test_right_and_wrong_are_drawn_alike(feature):
    def shape(trace: Trace) -> object:
        roles = ["redo" if "So 5 * 4" in s.text and r != "check" else r
                 for s, r in zip(trace.steps, trace.meta["roles"], strict=True)]  # fmt: skip
        evidence = trace.meta["evidence"] and trace.meta["evidence"]["step"]
        return {"steps": len(trace.steps), "roles": tuple(roles), "evidence": evidence}[feature]

    assert [shape(trace) for trace in woven(True)] == [shape(trace) for trace in woven(False)]


def test_the_same_seed_gives_the_same_trace():
    assert assemble_trace(plan(True), "sums", "t", random.Random(5)) == assemble_trace(
        plan(True), "sums", "t", random.Random(5)
    )


def test_every_offered_text_is_used():
    roles = Counter(role for trace in woven(True) for role in trace.meta["roles"])
    assert set(roles) == {"line", "check", "redo", "aside"}
    bare = replace(plan(False), checks=(), redundant=())
    assert {len(assemble_trace(bare, "sums", "t", random.Random(seed)).steps) for seed in range(50)} == {3}
