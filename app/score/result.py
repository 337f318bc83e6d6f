"""The result of scoring a solution: the verdicts, a row per sub-step, and how an edit moved them."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from markupsafe import Markup

from stepsight.app.score.comparison import Fate, StepMatches, is_move, largest_move
from stepsight.app.score.entered import EarlierSolution, Entered, steps_of
from stepsight.app.score.exports import exports_html
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.scoring.line import wait_for
from stepsight.app.web.html import render
from stepsight.app.web.judged import (
    ONLY_VALIDITY,
    bar_html,
    change_html,
    checked_html,
    legend_html,
    notable,
    note_html,
    notice_html,
    signed,
    step_name,
)
from stepsight.core.equations.evaluator import checks_of
from stepsight.core.errors import UserError
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import Hindsight, Outputs, StepScores, Thresholds, judge_solution, verdict_word
from stepsight.core.trace import Trace
from stepsight.training.evaluate.gallery import read_gallery

HasLeft = Callable[[], bool]
"""Tells whether who asked does not wait for the answer any more."""

_PREVIEW = 80
# Steps from which on a result begins with all of their marks.
_LONG = 10


@dataclass(frozen=True)
class EvaluatorScores:
    """One evaluator's scores of the solution, and of the earlier one that it is compared with, if any; `outputs`
    tells what kind of thing it says."""

    evaluator: str
    now: Hindsight
    before: Hindsight | None = None
    outputs: Outputs = Outputs.THREE_WAY

    @property
    def is_three_way(self) -> bool:
        return self.outputs == Outputs.THREE_WAY


@dataclass(frozen=True)
class ScoredSolution:
    """A solution with what each evaluator said of it. `token` is its permalink's, None where there is none;
    `note` a sentence on it, `problems` what could not be done."""

    trace: Trace
    scores: tuple[EvaluatorScores, ...]
    thresholds: Thresholds
    token: str | None = None
    earlier: EarlierSolution | None = None
    note: str = ""
    problems: tuple[UserError, ...] = ()


def result_html(
    evaluators: Evaluators,
    entered: Entered,
    *,
    read_only: bool = False,
    has_left: HasLeft = lambda: False,
) -> Markup:
    """The judged solution and what can be done with it; or a notice that says what is wrong.

    Raises `UserError` once who asked `has_left`: nothing is computed for nobody.
    """
    try:
        trace, names = entered.trace, _names(entered)
    except UserError as error:
        return notice_html(str(error))
    judged, problems = _judge(evaluators, trace, names, has_left)
    if not judged:
        return Markup().join(map(notice_html, problems))
    triangles = (
        _triangles(_judge(evaluators, entered.earlier.trace, list(judged), has_left)[0]) if entered.earlier else {}
    )
    token = entered.token(list(judged))
    result = ScoredSolution(
        trace,
        tuple(
            EvaluatorScores(name, hindsight, triangles.get(name), evaluators.about(name).outputs)
            for name, hindsight in _triangles(judged).items()
        ),
        entered.thresholds,
        token,
        entered.earlier,
        _notes().get((trace.problem, trace.substeps), ""),
        tuple(problems),
    )
    exports = exports_html(evaluators, trace, list(judged), entered.thresholds, token, read_only=read_only)
    return scored_html(result, exports)


def _names(entered: Entered) -> list[str]:
    if not entered.evaluators:
        raise UserError("No evaluator is chosen.", "Choose one or more, then score again.")
    return list(dict.fromkeys(entered.evaluators))


def _judge(
    evaluators: Evaluators, trace: Trace, names: Sequence[str], has_left: HasLeft
) -> tuple[dict[str, Judgment], list[UserError]]:
    """The judgments of those evaluators that can give one, and why not for each of the others."""
    judged, waiting = {}, []
    problems: list[UserError] = []
    for name in names:
        try:
            # A result does not wait for an evaluator that is being loaded.
            waiting.append((name, evaluators.submit_loaded(name, trace)))
        except UserError as error:
            problems.append(error)
    # Beside the scoring, which takes longer: the steps show what comes of it.
    checks_of(trace)
    wait_for([future for _, future in waiting], has_left)
    for name, future in waiting:
        try:
            judged[name] = future.result()
        except UserError as error:
            problems.append(error)
    return judged, problems


def _triangles(judged: Mapping[str, Judgment]) -> dict[str, Hindsight]:
    return {name: judgment.hindsight for name, judgment in judged.items() if judgment.hindsight is not None}


@cache
def _notes() -> dict[tuple[str, tuple[str, ...]], str]:
    """What later steps reveal in the traces of the gallery, by problem and sub-steps."""
    return {(trace.problem, trace.substeps): str(trace.meta.get("note", "")) for trace in read_gallery()}


def scored_html(result: ScoredSolution, exports: Markup | None = None) -> Markup:
    """The whole result, with what can be done with it."""
    verdicts = [_verdicts(result, scores) for scores in result.scores]
    body = render(
        "score/judged.html",
        result=result,
        note=note_html(result.note),
        verdicts=verdicts,
        only_validity=ONLY_VALIDITY,
        earlier=_comparison(result, result.earlier) if result.earlier else None,
        three_way=any(scores.is_three_way for scores in result.scores),
        rows=[_row(result, i) for i in range(len(result.trace.substeps))],
        columns=_columns(result),
        long=_LONG,
        steps=json.dumps(steps_of(result.trace), ensure_ascii=False),
        legend=legend_html(
            [scores.outputs for scores in result.scores],
            spread=any(scores.now.spread is not None for scores in result.scores),
        ),
    )
    body += exports or ""
    return render("score/result.html", result=result, body=body, said=_sentence(verdicts))


def _columns(result: ScoredSolution) -> list[str]:
    """The names of a step's verdicts, in the order of its bars."""
    names = [f"{one.evaluator} " if len(result.scores) > 1 else "" for one in result.scores]
    return [f"{name}{mode}" for name in names for mode in (Mode.ONLINE, Mode.OFFLINE)]


def _sentence(verdicts: Sequence[Mapping[str, Any]]) -> str:
    """The verdicts as they are read out."""
    words = {True: "valid", False: "not valid"}
    said = [
        f"{line['evaluator']}: online {words[line['online']['verdict'].valid]}, "
        f"offline {words[line['offline']['verdict'].valid]}"
        for line in verdicts
    ]
    return f"Scored by {'; '.join(said)}."


def _verdicts(result: ScoredSolution, scores: EvaluatorScores) -> dict[str, Any]:
    """One evaluator's verdicts on the whole solution."""
    change = scores.now.retroactive
    largest = int(np.abs(change).argmax())
    moved = f"step {step_name(result.trace, largest)}, {signed(float(change[largest]))}"
    line = partial(_verdict, thresholds=result.thresholds, three_way=scores.is_three_way)
    return {
        "evaluator": scores.evaluator,
        "online": line(Mode.ONLINE, scores.now.online),
        "offline": line(Mode.OFFLINE, scores.now.offline),
        "change": moved if change.any() else "none",
        "three_way": scores.is_three_way,
    }


def _verdict(mode: Mode, scores: StepScores, thresholds: Thresholds, three_way: bool) -> dict[str, Any]:
    """The verdict on the solution in one mode; the page's script writes it anew when a threshold moves."""
    valid = scores.validity >= thresholds.validity
    redundant = int((valid & (scores.redundancy >= thresholds.redundancy)).sum()) if three_way else 0
    counts = f"{int((~valid).sum())} of {len(scores)} not valid" + (f", {redundant} redundant" if redundant else "")
    verdict = judge_solution(scores, thresholds)
    return {"mode": mode.value, "verdict": verdict, "three_way": three_way, "counts": counts}


def _row(result: ScoredSolution, i: int) -> dict[str, Any]:
    """A sub-step with its bars; its numbers go along for the thresholds of the page."""
    trace = result.trace
    numbers = [
        [float(scores.validity[i]), float(scores.redundancy[i]) if one.is_three_way else None]
        for one in result.scores
        for scores in (one.now.online, one.now.offline)
    ]
    return {
        "name": step_name(trace, i),
        "html": checked_html(trace, i),
        "more": i > 0 and trace.owners[i - 1] == trace.owners[i],
        "fate": _fate(result.earlier, i),
        "verdicts": [
            verdict_word(scores.probs[i], result.thresholds, one.outputs)
            for one in result.scores
            for scores in (one.now.online, one.now.offline)
        ],
        "cells": [_cell(result, one, mode, i) for one in result.scores for mode in (Mode.ONLINE, Mode.OFFLINE)],
        "scores": json.dumps(numbers, separators=(",", ":")),
    }


def _cell(result: ScoredSolution, one: EvaluatorScores, mode: Mode, i: int) -> dict[str, Any]:
    """The bar of a sub-step in one mode, with what its validity was before the edit where that shows."""
    scores = _of_mode(one.now, mode)
    name = one.evaluator if len(result.scores) > 1 else ""
    now, was = float(scores.validity[i]), _validity_before(result, one, mode, i)
    moved = was is not None and is_move(now - was)
    return {
        "who": name if mode == Mode.ONLINE else "",
        "bar": bar_html(mode, scores, i, result.thresholds, name, one.outputs),
        "was": was if moved else None,
        "now": now,
        "moved": notable(now - was) if was is not None else "",
        "change": change_html(float(one.now.retroactive[i])) if mode == Mode.OFFLINE else Markup(),
    }


def _validity_before(result: ScoredSolution, one: EvaluatorScores, mode: Mode, i: int) -> float | None:
    if result.earlier is None or one.before is None:
        return None
    was = result.earlier.matches.now[i].was
    return None if was is None else float(_of_mode(one.before, mode).validity[was])


def _of_mode(hindsight: Hindsight, mode: Mode) -> StepScores:
    return hindsight.online if mode == Mode.ONLINE else hindsight.offline


def _fate(earlier: EarlierSolution | None, i: int) -> str:
    """What the edit did to a sub-step; "" where nothing."""
    if earlier is None or earlier.matches.now[i].fate == Fate.SAME:
        return ""
    match = earlier.matches.now[i]
    if match.fate == Fate.MOVED and match.was is not None:
        return f"moved, was step {step_name(earlier.trace, match.was)}"
    return match.fate.value


def _comparison(result: ScoredSolution, earlier: EarlierSolution) -> dict[str, Any]:
    """How the scores moved against the earlier solution."""
    matches, trace = earlier.matches, earlier.trace
    return {
        "kept": earlier.kept,
        "shared": matches.kept,
        "lines": [
            _largest_move(result.trace, scores.evaluator, matches, scores.before, scores.now)
            for scores in result.scores
            if scores.before is not None
        ],
        "fates": [
            f"{count} {fate.value}"
            for fate in (Fate.NEW, Fate.EDITED, Fate.MOVED)
            if (count := matches.count(fate))
        ],
        "gone": [(step_name(trace, i), _beginning(trace.substeps[i])) for i in matches.gone],
    }


def _largest_move(
    trace: Trace, evaluator: str, matches: StepMatches, before: Hindsight, now: Hindsight
) -> dict[str, Any]:
    move = largest_move(matches, before, now)
    return {"evaluator": evaluator, "move": move, "step": step_name(trace, move.step) if move else ""}


def _beginning(text: str) -> str:
    return text if len(text) <= _PREVIEW else text[:_PREVIEW].rsplit(" ", 1)[0] + " …"
