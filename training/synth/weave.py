"""A weave: a plan made into a trace, with its checks, redundant steps, labels and meta."""

import random
from dataclasses import dataclass, field

from stepsight.core.trace import Trace
from stepsight.training.synth.plan import Check, Claims, Filler, Plan
from stepsight.training.synth.style import capital
from stepsight.training.synth.verdict import opener

EVIDENCE_RATE = 0.7
OTHER_CHECK_RATE = 0.3
REDUNDANT_RATE = 0.26
CHECK_AT_ONCE_RATE = 0.25
REDO_RATES = {"merged": 0.4, "separate": 0.2, "none": 0.4}


@dataclass
class _Weave:
    plan: Plan
    steps: list[str] = field(default_factory=list)
    labels: list[str | None] = field(default_factory=list)
    roles: list[str] = field(default_factory=list)
    claims: list[Claims] = field(default_factory=list)
    focus: int = -1
    evidence: dict[str, object] | None = None
    check_at: list[int] = field(default_factory=list)
    redone: bool = False
    corrected: bool = False

    @property
    def after_error(self) -> bool:
        return self.plan.wrong and self.focus >= 0

    def add(self, text: str, label: str, role: str, claims: Claims | None = None, stays: bool = False) -> None:
        """Append a step; after the error it is unlabelled unless its label `stays`."""
        self.steps.append(capital(text))
        self.labels.append(None if self.after_error and not stays else label)
        self.roles.append(role)
        self.claims.append(claims or {})

    def add_line(self, index: int) -> None:
        line = self.plan.lines[index]
        is_focus = index == self.plan.focus
        text, claims = (line.right, line.right_claims) if self.corrected else (line.stated, line.claims)
        self.add(text, "neg" if is_focus and self.plan.wrong else "pos", "line", claims)
        if is_focus:
            self.focus = len(self.steps) - 1

    def add_check(self, check: Check, line: int, redo: str, start: str) -> None:
        """A check after `line`; one that settles the focus is the evidence, and may be followed by a redo."""
        if self.evidence and redo != "none" and not check.settles:
            return  # it speaks of numbers that a redo has replaced
        text = _opened(start, check.text) if check.opens else check.text
        if check.settles and redo == "merged":
            text = f"{text} {self.plan.redo(line)}"
        self.add(text, "pos", "check", stays=not check.passes)
        self.check_at.append(len(self.steps) - 1)
        if not check.settles:
            return
        self.evidence = {"step": len(self.steps) - 1, "kind": check.kind, "passes": check.passes}
        if redo == "separate":
            label, role = ("neu", "restating") if check.passes else ("pos", "redo")
            self.add(self.plan.redo(line), label, role, stays=not check.passes)
        self.redone = redo != "none" and not check.passes
        self.corrected = self.redone


def weave(plan: Plan, family: str, id: str, rng: random.Random) -> Trace:
    """Draw what the trace shows of `plan`. No draw looks at whether the plan is wrong."""
    placed = _place_checks(plan, rng)
    fillers = _place_fillers(plan, rng)
    redo = rng.choices(list(REDO_RATES), list(REDO_RATES.values()))[0]
    start = opener(rng)
    out = _Weave(plan)
    for filler in fillers.get(-1, []):
        out.add(filler.stated, "neu", filler.kind)
    for index in range(len(plan.lines)):
        out.add_line(index)
        for check in placed.get(index, []):
            out.add_check(check, index, redo, start)
        for filler in fillers.get(index, []):
            out.add(filler.right if out.corrected else filler.stated, "neu", filler.kind)
    meta = {
        "family": family,
        "error": plan.kind if plan.wrong else None,
        "error_step": out.focus if plan.wrong else None,
        "focus": out.focus,
        "evidence": out.evidence,
        "later_check": any(index > out.focus for index in out.check_at),
        "redone": out.redone,
        "roles": out.roles,
        "claims": out.claims,
        "givens": dict(plan.givens),
        "relations": dict(plan.relations),
    }
    return Trace.of(plan.problem, out.steps, out.labels, id=id, meta=meta)


def _opened(start: str, text: str) -> str:
    return start + (capital(text) if start.endswith(". ") else text)


def _place_checks(plan: Plan, rng: random.Random) -> dict[int, list[Check]]:
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
    placed: dict[int, list[Check]] = {}
    for check in chosen:
        last = len(plan.lines) - 1
        line = check.target if rng.random() < CHECK_AT_ONCE_RATE else rng.randint(check.target, last)
        placed.setdefault(line, []).append(check)
    return placed


def _place_fillers(plan: Plan, rng: random.Random) -> dict[int, list[Filler]]:
    placed: dict[int, list[Filler]] = {}
    if rng.random() >= REDUNDANT_RATE or not plan.fillers:
        return placed
    count = 2 if rng.random() < 0.15 and len(plan.fillers) > 1 else 1
    for filler in rng.sample(plan.fillers, count):
        line = filler.after
        if filler.after >= 0 and rng.random() < 0.4:
            line = rng.randint(filler.after, len(plan.lines) - 1)
        placed.setdefault(line, []).append(filler)
    return placed
