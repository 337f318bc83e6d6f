"""Plans of solutions, which hold everything that a trace may contain, and assembling traces from plans.

Texts are functions, because a trace shows only a part of its plan. Their random choices are made when the solution
is planned.
"""

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from stepsight.core.trace import Trace
from stepsight.training.synth.style import capital
from stepsight.training.synth.wording import opener

EVIDENCE_RATE = 0.7
OTHER_CHECK_RATE = 0.3
REDUNDANT_RATE = 0.26
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
class SelfCheck:
    """A truthful check of the solution step with index `target`.

    `settles` is True if the outcome shows whether the step in focus is wrong.
    """

    kind: str
    target: int
    text: Callable[[], str]
    passes: bool
    settles: bool


@dataclass(frozen=True)
class RedundantStep:
    """A valid but redundant step. It may come anywhere after the solution step `after`, where -1 is the start.

    `kind` is restating (a quantity, the question or a result), detour (calculating there and back), or aside
    (computing something that is not needed).
    """

    after: int
    kind: str
    text: Wording


@dataclass(frozen=True)
class SolutionPlan:
    """The plan of one solution of a problem.

    `focus` is the step that holds the error or, in a correct solution, could have held it. Checks, positions and
    wording are chosen in the same way for both. `redo(j)` restates the steps from the focus to step j correctly.
    `quantities` are those given in the problem, and `relations` are the formulas of all later values, in order of
    use. Together with the values that the steps state, they show which step is wrong.
    """

    problem: str
    steps: tuple[SolutionStep, ...]
    focus: int
    kind: str
    wrong: bool
    checks: tuple[SelfCheck, ...]
    redundant: tuple[RedundantStep, ...]
    redo: Callable[[int], str]
    quantities: StatedValues
    relations: Mapping[str, str]


@dataclass
class _TraceDraft:
    plan: SolutionPlan
    consequences: bool
    steps: list[str] = field(default_factory=list)
    labels: list[str | None] = field(default_factory=list)
    roles: list[str] = field(default_factory=list)
    values: list[StatedValues] = field(default_factory=list)
    focus: int = -1
    evidence: dict[str, object] | None = None
    checks_at: list[int] = field(default_factory=list)
    redone: bool = False

    @property
    def last(self) -> int:
        return len(self.steps) - 1

    @property
    def after_error(self) -> bool:
        return self.plan.wrong and self.focus >= 0

    def add(
        self, text: str, label: str, role: str, values: StatedValues | None = None, stays: bool = False
    ) -> None:
        """Append a step.

        After the error, the label is kept only if `stays` is true or if consequences are labelled.
        """
        self.steps.append(capital(text))
        self.labels.append(label if stays or self.consequences or not self.after_error else None)
        self.roles.append(role)
        self.values.append(values or {})

    def add_solution_step(self, index: int) -> None:
        step, is_focus = self.plan.steps[index], index == self.plan.focus
        values = step.corrected_values if self.redone else step.values
        self.add(step.text(self.redone), "neg" if is_focus and self.plan.wrong else "pos", "line", values)
        if is_focus:
            self.focus = len(self.steps) - 1

    def add_redundant(self, steps: Iterable[RedundantStep]) -> None:
        for step in steps:
            self.add(step.text(self.redone), "neu", step.kind)

    def add_check(self, check: SelfCheck, after: int, redo: str, start: str) -> None:
        """Append a check after a solution step.

        If the check settles whether the focus is wrong, it is recorded as the evidence, and a redo may follow it.
        """
        if self.evidence and redo != "none" and not check.settles:
            return  # it mentions numbers that a redo has replaced
        text = start + (capital(check.text()) if start.endswith(". ") else check.text())
        if check.settles and redo == "merged":
            text = f"{text} {self.plan.redo(after)}"
        self.add(text, "pos", "check", stays=not check.passes)
        self.checks_at.append(len(self.steps) - 1)
        if not check.settles:
            return
        self.evidence = {"step": len(self.steps) - 1, "kind": check.kind, "passes": check.passes}
        if redo == "separate":
            label, role = ("neu", "restating") if check.passes else ("pos", "redo")
            self.add(self.plan.redo(after), label, role, stays=not check.passes)
        self.redone = redo != "none" and not check.passes


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
    start = opener(rng)
    draft = _TraceDraft(plan, consequences)
    draft.add_redundant(redundant.get(-1, []))
    for index in range(len(plan.steps)):
        draft.add_solution_step(index)
        for check in checks.get(index, []):
            draft.add_check(check, index, redo, start)
        draft.add_redundant(redundant.get(index, []))
    return Trace.of(plan.problem, draft.steps, draft.labels, id=id, meta=_meta(draft, family))


def _meta(draft: _TraceDraft, family: str) -> dict[str, object]:
    plan = draft.plan
    return {
        "family": family,
        "error": plan.kind if plan.wrong else None,
        "error_step": draft.focus if plan.wrong else None,
        "focus": draft.focus,
        "evidence": draft.evidence,
        "later_check": any(index > draft.focus for index in draft.checks_at),
        "redone": draft.redone,
        "roles": draft.roles,
        "claims": draft.values,
        "givens": dict(plan.quantities),
        "relations": dict(plan.relations),
    }


def _place_checks(plan: SolutionPlan, rng: random.Random) -> dict[int, list[SelfCheck]]:
    """Choose at random the checks that the trace contains, keyed by the solution step that they follow."""
    settling = [check for check in plan.checks if check.settles]
    others = [check for check in plan.checks if not check.settles]
    wants_evidence, wants_other = rng.random() < EVIDENCE_RATE, rng.random() < OTHER_CHECK_RATE
    chosen = []
    if wants_evidence and settling:
        kinds = sorted({check.kind for check in settling})
        kind = rng.choice(kinds)
        chosen.append(rng.choice([check for check in settling if check.kind == kind]))
    if wants_other and others:
        chosen.append(rng.choice(others))
    placed: dict[int, list[SelfCheck]] = {}
    for check in chosen:
        last = len(plan.steps) - 1
        after = check.target if rng.random() < CHECK_AT_ONCE_RATE else rng.randint(check.target, last)
        placed.setdefault(after, []).append(check)
    return placed


def _place_redundant(plan: SolutionPlan, rng: random.Random) -> dict[int, list[RedundantStep]]:
    """Choose at random the redundant steps that the trace contains, keyed by the solution step that they follow."""
    placed: dict[int, list[RedundantStep]] = {}
    if rng.random() >= REDUNDANT_RATE or not plan.redundant:
        return placed
    count = 2 if rng.random() < 0.15 and len(plan.redundant) > 1 else 1
    for step in rng.sample(plan.redundant, count):
        after = step.after
        if after >= 0 and rng.random() < 0.4:
            after = rng.randint(after, len(plan.steps) - 1)
        placed.setdefault(after, []).append(step)
    return placed
