"""Plans of solutions, which hold everything that a trace may contain, and assembling traces from plans.

Texts are functions, because a trace shows only a part of its plan. Their random choices are made when the solution
is planned.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

from stepsight.core.label import Label
from stepsight.core.trace import Step, Trace
from stepsight.training.synth.style import capital
from stepsight.training.synth.wording import templates

EVIDENCE_RATE = 0.7
OTHER_CHECK_RATE = 0.3
REDUNDANT_RATE = 0.26
TWO_REDUNDANT_RATE = 0.15
LATER_REDUNDANT_RATE = 0.4
CHECK_AT_ONCE_RATE = 0.25
REDO_RATES = {"merged": 0.4, "separate": 0.2, "none": 0.4}

StatedValues = Mapping[str, str]
"""The exact values that a step states of the problem's quantities, by key."""

Wording = Callable[[bool], str]
"""The text of a step; the argument is True for the corrected version, without the error."""


@dataclass(frozen=True)
class SolutionStep:
    """A step of a solution, with the values that it states. If the solution has an error, `values` include the
    error's consequences, whereas `corrected_values` do not."""

    text: Wording
    values: StatedValues = field(default_factory=dict)
    corrected_values: StatedValues = field(default_factory=dict)


@dataclass(frozen=True)
class ExtraStep:
    """A step that a trace may contain anywhere after the solution step with index `after`, where -1 is the start.

    It is either a truthful check of that step, which passes or fails, or a valid but redundant step, in which
    `passes` is None. The `kind` of a redundant step is restating (a quantity, the question or a result), detour
    (calculating there and back), or aside (computing something that is not needed). `settles` is True if the
    outcome of a check shows whether the step in focus is wrong.
    """

    kind: str
    after: int
    text: Wording
    passes: bool | None = None
    settles: bool = False

    @classmethod
    def check(cls, kind: str, after: int, text: str, passes: bool, settles: bool = True) -> Self:
        return cls(kind, after, lambda corrected: text, passes, settles)

    def settling(self, wrong: bool) -> Self:
        """Return this check of a solution that is right or wrong. It settles nothing if it passes despite an error,
        or fails without one."""
        return replace(self, settles=self.settles and self.passes != wrong)


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
    checks = _place_checks(plan, rng)
    redundant = _place_redundant(plan, rng)
    redo = rng.choices(list(REDO_RATES), list(REDO_RATES.values()))[0]
    start = rng.choice(templates("openers"))
    steps: list[_Step] = []
    focus, evidence, redone = -1, None, False
    for index in range(-1, len(plan.steps)):
        if index >= 0:
            step, is_focus = plan.steps[index], index == plan.focus
            focus = len(steps) if is_focus else focus
            values = step.corrected_values if redone else step.values
            label = Label.NEG if is_focus and plan.wrong else Label.POS
            steps.append(_Step("line", step.text(redone), label, values))
        for check in checks.get(index, []):
            if evidence and redo != "none" and not check.settles:
                continue  # it mentions numbers that a redo has replaced
            text = check.text(redone)
            text = start + (capital(text) if start.endswith(". ") else text)
            if check.settles and redo == "merged":
                text = f"{text} {plan.redo(index)}"
            steps.append(_Step("check", text, Label.POS, exposes=not check.passes))
            if not check.settles:
                continue
            evidence = {"step": len(steps) - 1, "kind": check.kind, "passes": check.passes}
            if redo == "separate":
                role, label = ("restating", Label.NEU) if check.passes else ("redo", Label.POS)
                steps.append(_Step(role, plan.redo(index), label, exposes=not check.passes))
            redone = redo != "none" and not check.passes
        for extra in redundant.get(index, []):
            steps.append(_Step(extra.kind, extra.text(redone), Label.NEU))
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


class _Step(NamedTuple):
    """A step of a trace. `exposes` is True if it shows or mends an earlier error, so that it is always labelled."""

    role: str
    text: str
    label: Label
    values: StatedValues | None = None
    exposes: bool = False


def _place_checks(plan: SolutionPlan, rng: random.Random) -> dict[int, list[ExtraStep]]:
    """Choose at random the checks that the trace contains, by the index of the solution step that they follow."""
    settling = [check for check in plan.checks if check.settles]
    others = [check for check in plan.checks if not check.settles]
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
        after = check.after if at_once else rng.randint(check.after, len(plan.steps) - 1)
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
