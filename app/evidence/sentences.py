"""Sentences about the effect of later steps on earlier verdicts. They never quote a trace."""

from collections.abc import Collection, Sequence

from stepsight.core.evaluators.conclusion import join_words, name_steps
from stepsight.core.evidence import NOTABLE, Dependence, Jump, Removal, Revision
from stepsight.core.scores import Hindsight

# A change too small to show in two decimals does not count.
_VISIBLE = 0.005


def jump_sentence(names: Sequence[str], jump: Jump, final: float | None = None) -> str:
    """Describe the largest jump of a sub-step's validity. `final` is the validity at the end. It is mentioned if it
    clearly differs from the validity after the jump."""
    span = f"from {jump.before:.2f} to {jump.after:.2f}"
    moved = f"Step {names[jump.step]} {'fell' if jump.change < 0 else 'rose'} {span}"
    if abs(jump.change) < NOTABLE:
        moved = f"The largest move of step {names[jump.step]} was {span},"
    end = f" At the end it stands at {final:.2f}." if final is not None and abs(final - jump.after) >= 0.05 else ""
    return f"{moved} when step {names[jump.revealed]} was revealed.{end}"


def change_sentence(names: Sequence[str], hindsight: Hindsight, step: int, jump: Jump | None) -> str:
    """Describe the effect of later sub-steps on the sub-step with index `step`. `jump` is the largest jump of its
    validity, or None if there is no jump."""
    final = float(hindsight.offline.validity[step])
    if len(names) == 1:
        return f"Step {names[step]} is the only one: its validity is {final:.2f}."
    if step == len(names) - 1:
        return f"Step {names[step]} is the last: nothing after it can change its validity of {final:.2f}."
    if jump is None or abs(jump.change) < _VISIBLE:
        return f"Later steps did not change step {names[step]}: its validity stays at {final:.2f}."
    return jump_sentence(names, jump, final)


def gold_sentence(revision: Revision, gold: bool | None) -> str:
    """Compare a step's gold label with its verdict after later steps. `gold` is True if the gold label calls the
    step valid, or None if it is missing."""
    name = revision.step + 1
    if gold is None:
        return f"Step {name} has no gold label."
    says = f"Gold calls step {name} {'valid' if gold else 'wrong'}"
    if revision.crosses:
        return f"{says} and {'agrees' if revision.agrees else 'disagrees'} with the revision."
    if abs(revision.change) < NOTABLE:
        return f"{says}."
    return f"{says}: the change is {'towards' if revision.agrees else 'away from'} gold, but the verdict stays."


def left_out_sentence(
    names: Sequence[str], hindsight: Hindsight, step: int, removals: Sequence[Removal], turned: bool
) -> str:
    """Name the later sub-steps on which the verdict on the sub-step with index `step` rests.

    `removals` are in the order of `core.evidence.removals`. `turned` is True if the online and offline verdicts
    differ. Returns "" if there are no removals, as for the last sub-step.
    """
    if not removals:
        return ""
    offline = float(hindsight.offline.validity[step])
    first = removals[0]
    alone = f"Without step {names[first.left_out]} its validity would be {first.validity:.2f}"
    if first.restores:
        others = [removal.left_out for removal in removals[1:] if removal.restores]
        return f"{alone}: step {names[first.left_out]} is the evidence.{_others_sentence(names, sorted(others))}"
    if turned:
        return f"No single later step carries the verdict. {alone}, which does not restore it."
    most = max(abs(removal.validity - offline) for removal in removals)
    if most < NOTABLE:
        left_out = sorted(removal.left_out for removal in removals)
        which = "any one later step" if len(left_out) == len(names) - 1 - step else name_steps(names, left_out)
        bound = "less than 0.01" if most < 0.005 else f"at most {most:.2f}"
        return f"Leaving out {which} changes its validity by {bound}."
    changed = max(removals, key=lambda removal: abs(removal.validity - offline))
    return (
        f"Without step {names[changed.left_out]} its validity would be {changed.validity:.2f}, not {offline:.2f}."
    )


def rest_sentence(names: Sequence[str], dependence: Dependence, step: int) -> str:
    """Describe which sub-steps rest on the sub-step with index `step`, and on which sub-steps it rests. Returns ""
    if neither is known."""
    parts = []
    carried = dependence.carries(step)
    fallen = [other for other in carried if dependence.turns[step, other]]
    if fallen:
        falls, rest = ("falls", "its verdict rests") if len(fallen) == 1 else ("fall", "their verdicts rest")
        below = f"{falls} below {dependence.threshold:.2f}, so {rest} on step {names[step]}."
        parts.append(f"Without step {names[step]}, {name_steps(names, sorted(fallen))} {below}")
    elif carried:
        lost = -float(dependence.changes[step, carried[0]])
        parts.append(f"Without step {names[step]}, step {names[carried[0]]} loses {lost:.2f} of its validity.")
    elif step in dependence.left_out.known:
        parts.append(f"No other verdict rests on step {names[step]}.")
    if supports := dependence.rests_on(step):
        parts.append(f"The verdict on step {names[step]} rests on {name_steps(names, sorted(supports))}.")
    return " ".join(parts)


def equation_sentence(
    names: Sequence[str],
    findings: Sequence[str],
    against: Collection[int],
    contradicted: Collection[int],
    step: int,
) -> str:
    """Say what is right in place of the failing equations of a sub-step.

    `against` holds the later sub-steps that contradict its equations, and `contradicted` the earlier ones with a
    failing equation that it contradicts. Returns "" if there is nothing to say.
    """
    parts = []
    if findings:
        parts.append(f"In step {names[step]}, {'; '.join(findings)}.")
    if against:
        later = name_steps(names, sorted(against)).capitalize()
        parts.append(f"{later} {'contradicts' if len(against) == 1 else 'contradict'} it.")
    if contradicted:
        parts.append(f"It contradicts an equation of {name_steps(names, sorted(contradicted))} that fails.")
    return " ".join(parts)


def unused_sentence(names: Sequence[str], dependence: Dependence) -> str:
    """Name the sub-steps on which no other sub-step rests, ignoring the last sub-step. Returns "" if there are
    none."""
    unused = [step for step in dependence.unused() if step < len(names) - 1]
    if not unused:
        return ""
    if len(unused) == len(names) - 1:
        return f"Leaving out any single step costs no other step {NOTABLE:.2f} or more of its validity."
    return f"No other verdict rests on {name_steps(names, unused)}."


def constant_sentence(evaluator: str) -> str:
    """Explain why a causal evaluator has no evidence to show. The evaluator's name is not escaped."""
    return (
        f"{evaluator} reads a solution from left to right: no later step can change its verdict on an earlier one, "
        "so each is the same online, offline and everywhere in between."
    )


def only_offline_sentence(evaluator: str) -> str:
    """Explain why there is no evidence if only offline scores are stored. The evaluator's name is not escaped."""
    return (
        f"Only the scores with the whole solution in view are stored for {evaluator}, so how later steps changed "
        "them is unknown: all rows are the same."
    )


def _others_sentence(names: Sequence[str], others: Sequence[int]) -> str:
    if not others:
        return ""
    if len(others) > 3:
        return f" Leaving out any of {len(others)} other steps restores it as well."
    listed = join_words([names[other] for other in others], "or")
    return f" Leaving out step {listed} restores it as well."
