"""The checker of labels objects: what is false in a trace, in its labels or its meta does not pass it."""

import dataclasses
import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from stepsight.core.label import Label
from stepsight.core.trace import Trace
from stepsight.training.synth.corpus import generate
from stepsight.training.synth.families import FAMILIES
from tests.training.synth.checker import objections

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
        ({"step1": "There are 13 + 2 = 14 cups."}, "false: 13"),
        ({"step1": "There are some cups."}, "does not show"),
        ({"step2": "They cost 14 * 6 = 84."}, "does not show"),
        ({"step0": "We are asked for the cost of 99 cups."}, "restates .*99"),
        ({"step4": "Check: 14 * 6 = 94, so 94 is right."}, "false: 14"),
        ({"step4": "Check: 14 * 6 = 84, so 84 is right."}, "outcome True"),
        ({"step4": "Check: 14 * 6 = 84, so it holds."}, "outcome True"),
        ({"step5": "So 14 * 6 = 85, and the answer is 85."}, "false: 14"),
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
    changed = re.search(_RESULT, text)
    if changed is None or re.search(r"\b[a-z]\b[^,.]*$", text[: changed.start()]):
        # An equation in a letter is read by nobody but the relations.
        return None
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
