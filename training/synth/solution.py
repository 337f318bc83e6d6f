"""Plans of solutions, which hold everything that a trace may contain, and assembling traces from plans."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

from stepsight.core.trace import Label, Step, Trace
from stepsight.training.synth.style import capital, templates

EVIDENCE_RATE = 0.7
OTHER_CHECK_RATE = 0.3
REDUNDANT_RATE = 0.26
TWO_REDUNDANT_RATE = 0.15
LATER_REDUNDANT_RATE = 0.4
CHECK_AT_ONCE_RATE = 0.25
REDO_RATES = {"merged": 0.4, "separate": 0.2, "none": 0.4}

StatedValues = Mapping[str, str]
"""The exact values that a step states of the problem's quantities, by key."""


@dataclass(frozen=True)
class SolutionStep:
    """A step of a solution: its texts and the values that they state.

    If the solution has an error, the first of each includes the error's consequences, and the second does not.
    """

    texts: Sequence[str]
    values: Sequence[StatedValues]


@dataclass(frozen=True)
class ExtraStep:
    """A step that a trace may contain anywhere after the solution step with index `after`, where -1 is the start.

    It is either a truthful check of that step, which passes or fails, or a valid but redundant step, in which
    `passes` is None. A check with `settles` shows whether the step in focus is wrong, unless it passes despite the
    error. The `kind` of a redundant step is restating (a quantity, the question or a result), detour (calculating
    there and back), or aside (computing something that is not needed). `texts` are as in `SolutionStep`.
    """

    kind: str
    after: int
    texts: Sequence[str]
    passes: bool | None = None
    settles: bool = False

    @classmethod
    def check(cls, kind: str, after: int, text: str, passes: bool, settles: bool = True) -> Self:
        return cls(kind, after, [text] * 2, passes, settles)


@dataclass(frozen=True)
class SolutionPlan:
    """The plan of one solution of a problem.

    `focus` is the step that holds the error or, in a correct solution, could have held it. Checks, positions and
    wording are chosen in the same way for both. `redo(j)` restates the steps from the focus to step j correctly.
    `quantities` are those given in the problem, and `relations` are the formulas of all later values, in order of
    use. Together with the values that the steps state, they show which step is wrong.
    """

    problem: str
    steps: Sequence[SolutionStep]
    focus: int
    kind: str
    wrong: bool
    checks: Sequence[ExtraStep]
    redundant: Sequence[ExtraStep]
    redo: Callable[[int], str]
    quantities: StatedValues
    relations: Mapping[str, str]


def assemble_trace(
    plan: SolutionPlan,
    family: str,
    id: str,
    rng: random.Random,
    consequences: bool = False,
) -> Trace:
    """Assemble a trace from a random part of a plan. No random choice depends on whether the plan is wrong.

    With `consequences`, the steps after the error are labelled too, each on its own merits. Since a plan has only
    one error, a step that merely carries the error on is right.
    """
    settled = [replace(check, settles=check.settles and check.passes != plan.wrong) for check in plan.checks]
    checks = _place_checks(settled, len(plan.steps) - 1, rng)
    redundant = _place_redundant(plan, rng)
    redo = rng.choices(list(REDO_RATES), list(REDO_RATES.values()))[0]
    start = rng.choice(templates("openers"))
    steps: list[_DraftedStep] = []
    focus, evidence, redone = -1, None, False
    for index in range(-1, len(plan.steps)):
        if index >= 0:
            step, is_focus = plan.steps[index], index == plan.focus
            focus = len(steps) if is_focus else focus
            label = Label.NEG if is_focus and plan.wrong else Label.POS
            steps.append(_DraftedStep("line", step.texts[redone], label, step.values[redone]))
        for check in checks.get(index, []):
            if evidence and redo != "none" and not check.settles:
                continue  # it mentions numbers that a redo has replaced
            text = start + (capital(check.texts[0]) if start.endswith(". ") else check.texts[0])
            if check.settles and redo == "merged":
                text = f"{text} {plan.redo(index)}"
            steps.append(_DraftedStep("check", text, Label.POS, exposes=not check.passes))
            if not check.settles:
                continue
            evidence = {"step": len(steps) - 1, "kind": check.kind, "passes": check.passes}
            if redo == "separate":
                role, label = ("restating", Label.NEU) if check.passes else ("redo", Label.POS)
                steps.append(_DraftedStep(role, plan.redo(index), label, exposes=not check.passes))
            redone = redo != "none" and not check.passes
        for extra in redundant.get(index, []):
            steps.append(_DraftedStep(extra.kind, extra.texts[redone], Label.NEU))
    labelled = tuple(
        Step((capital(step.text),), step.label if is_first or step.exposes else None)
        for at, step in enumerate(steps)
        for is_first in [at <= focus or consequences or not plan.wrong]
    )
    meta = {
        "family": family,
        "error": plan.kind if plan.wrong else None,
        "error_step": focus if plan.wrong else None,
        "focus": focus,
        "evidence": evidence,
        "later_check": any(step.role == "check" for step in steps[focus + 1 :]),
        "redone": redone,
        "roles": [step.role for step in steps],
        "claims": [step.values or {} for step in steps],
        "givens": dict(plan.quantities),
        "relations": dict(plan.relations),
    }
    return Trace(id, plan.problem, labelled, meta)


class _DraftedStep(NamedTuple):
    """A step of a trace. `exposes` is True if it shows or mends an earlier error, so that it is always labelled."""

    role: str
    text: str
    label: Label
    values: StatedValues | None = None
    exposes: bool = False


def _place_checks(checks: Sequence[ExtraStep], last: int, rng: random.Random) -> dict[int, list[ExtraStep]]:
    """Choose at random the checks that the trace contains, by the index of the solution step that they follow."""
    settling = [check for check in checks if check.settles]
    others = [check for check in checks if not check.settles]
    with_evidence, with_other = rng.random() < EVIDENCE_RATE, rng.random() < OTHER_CHECK_RATE
    chosen = []
    if with_evidence and settling:
        kind = rng.choice(sorted({check.kind for check in settling}))
        chosen.append(rng.choice([check for check in settling if check.kind == kind]))
    if with_other and others:
        chosen.append(rng.choice(others))
    placed: dict[int, list[ExtraStep]] = {}
    for check in chosen:
        at_once = rng.random() < CHECK_AT_ONCE_RATE
        after = check.after if at_once else rng.randint(check.after, last)
        placed.setdefault(after, []).append(check)
    return placed


def _place_redundant(plan: SolutionPlan, rng: random.Random) -> dict[int, list[ExtraStep]]:
    """Choose at random the redundant steps that the trace contains, by the index of the solution step that they
    follow."""
    placed: dict[int, list[ExtraStep]] = {}
    if rng.random() >= REDUNDANT_RATE or not plan.redundant:
        return placed
    count = 2 if rng.random() < TWO_REDUNDANT_RATE and len(plan.redundant) > 1 else 1
    for step in rng.sample(plan.redundant, count):
        after = step.after
        if after >= 0 and rng.random() < LATER_REDUNDANT_RATE:
            after = rng.randint(after, len(plan.steps) - 1)
        placed.setdefault(after, []).append(step)
    return placed
