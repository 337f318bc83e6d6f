"""The sentence that heads every result: what is wrong, where, how sure that is, and who says so.

A failing equation comes first, whatever evaluators say. Where none fails, each evaluator names the steps that it
blames, and the later step that made it do so. Where nobody blames a step, the sentence says how little that means.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stepsight.core.arrays import Bools
from stepsight.core.equations.evaluator import checks_of, faults, finding
from stepsight.core.evidence import Revision, largest_revision, revisions
from stepsight.core.judgment import Judgment
from stepsight.core.scores import Hindsight, Outputs, StepScores, Thresholds
from stepsight.core.text.split import THOUGHT_STEPS
from stepsight.core.trace import Trace

_MOST_NAMED = 6


@dataclass(frozen=True)
class Conclusion:
    """The sentence, in which formulas in LaTeX stand between dollar signs. `accuses` is True if it says that
    something is wrong, and `is_exact` if an equation shows it."""

    text: str
    accuses: bool
    is_exact: bool


@dataclass(frozen=True, eq=False)
class Opinion:
    """What an evaluator says about a trace: its judgments, which may be in different modes, at its thresholds.

    `is_demonstration` is True for an evaluator that is known to be weak.
    """

    evaluator: str
    outputs: Outputs
    thresholds: Thresholds
    judgments: Sequence[Judgment]
    is_demonstration: bool = False

    @cached_property
    def _offline(self) -> StepScores | None:
        return next((judgment.offline for judgment in self.judgments if judgment.offline is not None), None)

    @cached_property
    def scores(self) -> StepScores | None:
        """The scores with the whole solution in view or, if there are none, the online ones. None if the evaluator
        says nothing about any step."""
        online = next((judgment.online for judgment in self.judgments if judgment.online is not None), None)
        scores = self._offline or online
        return scores if self.outputs.has_steps and scores is not None and scores.probs.any() else None

    @property
    def mode_note(self) -> str:
        """Words that follow a verdict: " online" if no step was judged with later ones in view, or ""."""
        return " online" if self._offline is None else ""

    @property
    def solution(self) -> float | None:
        """The evaluator's own score of the whole solution, or None if it gives none."""
        return next((judgment.solution for judgment in self.judgments if judgment.solution is not None), None)

    @cached_property
    def wrong(self) -> tuple[int, ...]:
        """The indices of the sub-steps that the evaluator blames."""
        least = 0.5 if self.outputs.in_words else self.thresholds.validity
        return () if self.scores is None else self._where(self.scores.validity < least)

    @cached_property
    def redundant(self) -> tuple[int, ...]:
        """The indices of the sub-steps that the evaluator calls redundant."""
        if self.scores is None or not self.outputs.has_redundancy:
            return ()
        return self._where(self.scores.redundancy >= (0.5 if self.outputs.in_words else self.thresholds.redundancy))

    def _where(self, condition: Bools) -> tuple[int, ...]:
        """Return the indices that meet a condition, without sub-steps on which the evaluator is silent."""
        assert self.scores is not None
        return tuple(np.flatnonzero(condition & self.scores.probs.any(axis=1)).tolist())

    @property
    def finds_error(self) -> bool:
        """True if the evaluator blames a step, or says in words that the solution is wrong."""
        is_refuted = self.outputs == Outputs.VERDICT and self.solution == 0 and not self.redundant
        return bool(self.wrong) or is_refuted

    def revisions(self, trace: Trace) -> list[Revision]:
        """The revision of each step by later steps, or an empty list if it is unknown."""
        triangles = (judgment.hindsight for judgment in self.judgments if judgment.hindsight is not None)
        hindsight: Hindsight | None = next(triangles, None) if self.outputs.has_scores else None
        return [] if hindsight is None else revisions(hindsight, trace, self.thresholds.validity)


def conclude(trace: Trace, opinions: Iterable[Opinion], thinking: int | None = None) -> Conclusion:
    """Return the sentence on a trace. The first `thinking` steps are thinking before the solution; if it is None,
    the trace's metadata say how many are."""
    checks = checks_of(trace)
    failing = [i for i, part in enumerate(checks) if faults(part)]
    # Equations need no explanation. Demonstrations come last.
    relevant = [opinion for opinion in opinions if opinion.judgments and opinion.outputs != Outputs.CHECKS]
    relevant.sort(key=lambda opinion: opinion.is_demonstration)
    blaming = [opinion for opinion in relevant if opinion.finds_error]
    if failing:
        sentences = _describe_failing(trace, failing, relevant)
    elif blaming:
        sentences = [
            f"{opinion.evaluator}{', a demonstration,' * opinion.is_demonstration} {_blame(trace, opinion)}."
            for opinion in blaming
        ]
        others = [opinion for opinion in relevant if opinion.scores is not None and opinion not in blaming]
        if others:
            names = join_words([opinion.evaluator for opinion in others])
            sentences.append(f"{names} {'blames' if len(others) == 1 else 'blame'} no step.")
    else:
        checked = {owner for owner, part in zip(trace.owners.tolist(), checks, strict=True) if part}
        sentences = _describe_no_error(trace, relevant, len(checked))
    first = next(iter([*failing, *(place for opinion in blaming for place in opinion.wrong)]), None)
    thoughts = int(trace.meta.get(THOUGHT_STEPS) or 0) if thinking is None else thinking
    if first is not None and trace.owners[first] < thoughts:
        sentences.append(f"Step {trace.step_name(first)} belongs to the thinking before the solution.")
    return Conclusion(" ".join(sentences), bool(failing or blaming), bool(failing))


def _describe_failing(trace: Trace, failing: Sequence[int], relevant: Sequence[Opinion]) -> list[str]:
    """Say what is right in place of the first failing equation, and which evaluators see that its step is wrong."""
    first, *others = failing
    check = faults(checks_of(trace)[first])[0]
    sentences = [f"Step {trace.step_name(first)} is wrong: {finding(trace, first, check)}."]
    if others:
        sentences.append(f"{_steps(trace, others).capitalize()} {'is' if len(others) == 1 else 'are'} wrong too.")
    by_verdict: dict[tuple[str, str], list[str]] = {}
    for opinion in relevant:
        if opinion.scores is None:
            continue
        verdict = ("do", "not see it")
        if opinion.wrong:
            verdict = ("blame", "it too" if first in opinion.wrong else f"{_steps(trace, opinion.wrong)} instead")
        by_verdict.setdefault(verdict, []).append(opinion.evaluator)
    singular = {"do": "does", "blame": "blames"}
    for (verb, rest), names in by_verdict.items():
        sentences.append(f"{join_words(names)} {singular[verb] if len(names) == 1 else verb} {rest}.")
    return sentences


def _blame(trace: Trace, opinion: Opinion) -> str:
    """Say which steps an evaluator blames, and which later step made it blame the first of them."""
    if not opinion.wrong:
        return "finds an error and names no step"
    blames = f"blames {_steps(trace, opinion.wrong)}{opinion.mode_note}"
    revision = next(iter(opinion.revisions(trace)[int(trace.owners[opinion.wrong[0]]) :]), None)
    if revision is None or not revision.crosses or revision.change > 0 or revision.jump is None:
        return blames
    return f"{blames}; step {trace.step_name(revision.jump.revealed)} is its evidence"


def _describe_no_error(trace: Trace, relevant: Sequence[Opinion], checked: int) -> list[str]:
    """Say who calls no step wrong, and how much that means. `checked` is the number of steps with equations that
    were checked."""
    judging = [opinion for opinion in relevant if opinion.scores is not None]
    if not judging:
        if checked:
            where = "all steps" if checked == len(trace.steps) else f"{checked} of {len(trace.steps)} steps"
            sentences = [f"The equations in {where} hold. Most errors are of another kind."]
        else:
            sentences = ["No evaluator has judged the steps, and they state no equation that can be checked."]
    else:
        names = [opinion.evaluator for opinion in judging if not opinion.is_demonstration]
        suffix = f" by {join_words(names, 'or')}" if names else ""
        sentences = [f"No step is called wrong{judging[0].mode_note}{suffix}."]
    for opinion in judging:
        if opinion.redundant:
            sentences.append(f"{opinion.evaluator} calls {_steps(trace, opinion.redundant)} redundant.")
        cleared = [revision for revision in opinion.revisions(trace) if revision.crosses and revision.change > 0]
        if (largest := largest_revision(cleared)) is not None and largest.jump is not None:
            step, revealed = largest.step + 1, trace.step_name(largest.jump.revealed)
            sentences.append(f"{opinion.evaluator} blamed step {step} until it saw step {revealed}.")
    for opinion in relevant:
        if opinion.scores is None and opinion.outputs == Outputs.SOLUTION and opinion.solution is not None:
            sentences.append(f"{opinion.evaluator} gives the whole solution {opinion.solution:.3g}.")
        elif opinion.scores is None:
            sentences.append(f"{opinion.evaluator} says nothing about the steps.")
    if demonstrations := [opinion.evaluator for opinion in judging if opinion.is_demonstration]:
        kind = "is a demonstration and misses" if len(demonstrations) == 1 else "are demonstrations and miss"
        sentences.append(f"{join_words(demonstrations)} {kind} many errors.")
    return sentences


def _steps(trace: Trace, places: Sequence[int]) -> str:
    return name_steps([trace.step_name(i) for i in range(len(trace.substeps))], places)


def name_steps(names: Sequence[str], places: Sequence[int]) -> str:
    """List sub-steps by their names, such as `steps 3, 5 and 8`. The end of a long list is replaced by a count."""
    listed = [names[place] for place in places[:_MOST_NAMED]]
    if len(places) > _MOST_NAMED:
        listed.append(f"{len(places) - _MOST_NAMED} more")
    return f"step{'s' if len(listed) > 1 else ''} {join_words(listed)}"


def join_words(words: Sequence[str], last: str = "and") -> str:
    """Join words to a list, such as `a, b and c`, in which `last` joins the last two."""
    *others, end = words
    return f"{', '.join(others)} {last} {end}" if others else end
