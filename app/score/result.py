"""The result of scoring a solution: verdicts, a row for each sub-step, and the effect of an edit.

The result also offers ways to share, download, save and reproduce it.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from markupsafe import Markup

from stepsight.app.markup.marking import excerpt
from stepsight.app.score.comparison import StepChange, is_move, largest_move
from stepsight.app.score.entered import EarlierSolution, Entered, plain_steps, steps_of
from stepsight.app.score.running import EvaluatorScoring, RunningScores
from stepsight.app.scoring.batcher import PendingScore, ScoringCost
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.html import render
from stepsight.app.web.step_bars import (
    ONLY_VALIDITY,
    JudgedStep,
    TraceJudgments,
    column_names,
    conclusion_html,
    failing_steps,
    judged_steps,
    legend_html,
    notable,
    note_html,
    notice_html,
)
from stepsight.core.equations.evaluator import checks_of
from stepsight.core.errors import UserError
from stepsight.core.evaluator_summary import SERVED
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.models.location import is_shipped
from stepsight.core.models.placement import STORED, untyped_name
from stepsight.core.scores import Thresholds, judge_solution
from stepsight.core.trace import Trace
from stepsight.storage.database.schema import NAME_LENGTH
from stepsight.storage.traces.writer import SAVED
from stepsight.training.evaluate.strength import read_gallery

ClientDisconnected = Callable[[], bool]
"""True if the client is no longer waiting for the answer."""

_PREVIEW = 80
# Seconds between checks whether the client is still waiting.
_LOOKS = 0.5


@dataclass(frozen=True)
class ScoredSolution:
    """A solution with the judgments of each evaluator.

    If the solution is compared with an `earlier` solution, `before` maps evaluators to their judgments of the
    earlier one. `token` is the token of the solution's permalink, or None if it would be too long. `note` is a
    sentence about the solution, and `problems` are the errors of evaluators that gave no judgment. `reading_notes`
    maps evaluators to a note on their reading, if there is one, and `strength` is a line on weak evaluators, or
    empty. The first `thinking` steps are thinking before the solution. `rest` has the cost of every prefix for
    the evaluators that have read the whole solution alone.
    """

    trace: Trace
    scores: tuple[TraceJudgments, ...]
    thresholds: Thresholds
    token: str | None = None
    earlier: EarlierSolution | None = None
    before: Mapping[str, Judgment] = field(default_factory=dict)
    note: str = ""
    problems: tuple[UserError, ...] = ()
    reading_notes: Mapping[str, str] = field(default_factory=dict)
    strength: str = ""
    thinking: int = 0
    rest: Mapping[str, ScoringCost] = field(default_factory=dict)


def result_html(
    evaluators: Evaluators,
    entered: Entered,
    *,
    read_only: bool = False,
    client_disconnected: ClientDisconnected = lambda: False,
    strength_html: Callable[[Mapping[str, str]], Markup] = lambda fingerprints: Markup(),
    on_begin: Callable[[RunningScores], None] = lambda running: None,
) -> Markup:
    """Judge the solution and render the result with its exports, or a notice of an error. Raises `UserError` once
    `client_disconnected()` is True, so that nothing is computed for a client that has left. `strength_html` renders
    a line on weak evaluators, given fingerprints by name, or nothing. `on_begin` is called with the scores
    that are being computed."""
    try:
        trace, names = entered.trace, entered.chosen
    except UserError as error:
        return notice_html(str(error.without_options()))

    def begin(pending: Mapping[str, PendingScore[Judgment]]) -> None:
        scorings = {name: EvaluatorScoring(evaluators.about(name).outputs, job) for name, job in pending.items()}
        on_begin(RunningScores(trace, entered.thresholds, scorings, entered.thinking))

    judged, problems = _judge(evaluators, trace, names, client_disconnected, begin, every=entered.every)
    if not judged:
        # A failing equation needs no evaluator.
        shown = conclusion_html(trace, (), entered.thinking) if failing_steps(trace) else Markup()
        return shown + Markup().join(map(notice_html, problems))
    earlier = entered.earlier
    token = entered.token(list(judged))
    # Offers scores of every prefix, for evaluators that have read only the whole solution.
    costs = {name: evaluators.cost(name, trace) for name, judgment in judged.items() if judgment.online is None}
    result = ScoredSolution(
        trace,
        _columns(evaluators, judged, entered.thresholds),
        entered.thresholds,
        token,
        earlier,
        _judge(evaluators, earlier.trace, list(judged), client_disconnected)[0] if earlier else {},
        _notes().get((trace.problem, trace.substeps), ""),
        tuple(problems),
        {name: evaluators.about(name).reading_note for name in judged},
        strength_html({name: evaluators.about(name).fingerprint for name in judged}),
        entered.thinking,
        {name: cost for name, cost in costs.items() if cost is not None and cost.fits},
    )
    exports = exports_html(
        evaluators,
        trace,
        list(judged),
        entered.thresholds,
        token,
        read_only=read_only,
        three_way=any(column.is_three_way for column in result.scores),
    )
    return scored_html(result, exports)


def _columns(
    evaluators: Evaluators, judged: Mapping[str, Judgment], thresholds: Thresholds
) -> tuple[TraceJudgments, ...]:
    return tuple(
        TraceJudgments(name, evaluators.about(name).outputs, thresholds, dict.fromkeys(Mode, judgment))
        for name, judgment in judged.items()
    )


def _judge(
    evaluators: Evaluators,
    trace: Trace,
    names: Sequence[str],
    client_disconnected: ClientDisconnected,
    begin: Callable[[Mapping[str, PendingScore[Judgment]]], None] = lambda pending: None,
    *,
    every: bool = False,
) -> tuple[dict[str, Judgment], list[UserError]]:
    """Return the judgments, keyed by evaluator, and the errors of the evaluators that gave no judgment. `begin` is
    called with the futures of the judgments, and `every` is as in `Entered`."""
    judged: dict[str, Judgment] = {}
    waiting: dict[str, PendingScore[Judgment]] = {}
    problems: list[UserError] = []
    for name in names:
        try:
            fitting, mode = evaluators.fit(name, trace, every=every)
            # A result is shown without waiting for an evaluator that is being loaded.
            waiting[fitting] = evaluators.submit_loaded(fitting, trace, mode)
        except UserError as error:
            problems.append(error)
    begin(waiting)
    # The result marks failing equations. Checking them while the evaluators score costs no extra time.
    checks_of(trace)
    while wait(waiting.values(), timeout=_LOOKS).not_done:
        if client_disconnected():
            for future in waiting.values():
                future.cancel()
            raise UserError("Nobody was waiting for these scores any more.", "Ask for them again.")
    for name, future in waiting.items():
        try:
            judged[name] = future.result()
        except UserError as error:
            problems.append(error)
    return judged, problems


@cache
def _notes() -> dict[tuple[str, tuple[str, ...]], str]:
    """Map the problem and sub-steps of each trace in the shipped gallery to the note on that trace."""
    return {(trace.problem, trace.substeps): str(trace.meta.get("note", "")) for trace in read_gallery()}


def scored_html(result: ScoredSolution, exports: Markup | None = None) -> Markup:
    """Render the whole result. `exports` is appended to it."""
    verdicts = [[_verdict(column, mode) for mode in column.modes] for column in result.scores]
    body = render(
        "score/judged.html",
        result=result,
        note=note_html(result.note),
        conclusion=conclusion_html(result.trace, result.scores, result.thinking),
        failing=failing_steps(result.trace),
        verdicts=verdicts,
        alone=[column.name for column in result.scores if column.online is None],
        only_validity=ONLY_VALIDITY,
        earlier=_comparison(result, result.earlier) if result.earlier else None,
        rows=[_row(result, i, step) for i, step in enumerate(judged_steps(result.trace))],
        columns=column_names(result.scores),
        steps=json.dumps(steps_of(result.trace), ensure_ascii=False),
        legend=legend_html(result.scores),
    )
    body += exports or ""
    return render("score/result.html", result=result, body=body)


def _verdict(column: TraceJudgments, mode: Mode) -> dict[str, Any]:
    """Return the template's variables for the verdict on the solution in one mode."""
    words = [column.verdict(mode, i) for i in range(len(column.modes[mode]))]
    return {
        "mode": mode.value,
        "verdict": judge_solution(column.modes[mode], column.thresholds),
        "counts": _counts(words.count("not valid"), words.count("redundant"), len(words)),
    }


def _counts(wrong: int, redundant: int, steps: int) -> str:
    """Count the verdicts on a solution's steps in words."""
    every = {1: "", 2: "both steps "}.get(steps, f"all {steps} steps ")
    some = f"{wrong} of {steps} steps " if steps > 1 else ""
    counts = f"{some}not valid" if wrong else f"{every}valid"
    return f"{counts}, {redundant} redundant" if redundant else counts


def _row(result: ScoredSolution, i: int, step: JudgedStep) -> dict[str, Any]:
    """Return the template's variables for a sub-step: its bars and its verdicts."""
    cells: list[dict[str, Any]] = []
    for column in result.scores:
        if column.online is None:
            # Only the whole solution was read.
            who = column.name if len(result.scores) > 1 else ""
            cells.append({"who": who, "bar": None, "was": None})
        cells += [_cell(result, column, mode, i) for mode in column.modes]
    return {
        "step": step,
        "step_change": _step_change(result.earlier, i),
        "verdicts": [column.verdict(mode, i) for column in result.scores for mode in column.modes],
        "cells": cells,
    }


def _cell(result: ScoredSolution, column: TraceJudgments, mode: Mode, i: int) -> dict[str, Any]:
    """Return the template's variables for a sub-step's bar in one mode. They include the sub-step's validity before
    the edit if it was visibly different."""
    several = len(result.scores) > 1
    now, was = float(column.modes[mode].validity[i]), _validity_before(result, column, mode, i)
    moved = was is not None and is_move(now - was)
    return {
        "who": column.name if several and mode == Mode.ONLINE else "",
        "bar": column.bar(mode, i, named=several),
        "was": was if moved else None,
        "now": now,
        "moved": notable(now - was) if was is not None else "",
        "change": column.changed(i) if mode == Mode.OFFLINE else Markup(),
    }


def _validity_before(result: ScoredSolution, column: TraceJudgments, mode: Mode, i: int) -> float | None:
    before = result.before.get(column.name)
    if result.earlier is None or before is None:
        return None
    was = result.earlier.matches.now[i].was
    scores = before.online if mode == Mode.ONLINE else before.offline
    return None if was is None or scores is None else float(scores.validity[was])


def _step_change(earlier: EarlierSolution | None, i: int) -> str:
    """Describe in a few words how an edit affected sub-step `i`, or return "" if the edit did not affect it."""
    if earlier is None or earlier.matches.now[i].step_change == StepChange.SAME:
        return ""
    match = earlier.matches.now[i]
    if match.step_change == StepChange.MOVED and match.was is not None:
        return f"moved, was step {earlier.trace.step_name(match.was)}"
    return match.step_change.value


def _comparison(result: ScoredSolution, earlier: EarlierSolution) -> dict[str, Any]:
    """Return the template's variables for the comparison with an earlier solution."""
    matches, trace = earlier.matches, earlier.trace
    moves = {
        column.name: largest_move(matches, result.before[column.name], column.by_mode[Mode.OFFLINE])
        for column in result.scores
        if column.name in result.before
    }
    return {
        "lines": [
            {"evaluator": name, "move": move, "step": result.trace.step_name(move.step) if move else ""}
            for name, move in moves.items()
        ],
        "step_changes": [
            f"{count} {step_change.value}"
            for step_change in (StepChange.NEW, StepChange.EDITED, StepChange.MOVED)
            if (count := matches.count(step_change))
        ],
        "gone": [(trace.step_name(i), excerpt(trace.substeps[i], _PREVIEW)) for i in matches.gone],
    }


def exports_html(
    evaluators: Evaluators,
    trace: Trace,
    names: Sequence[str],
    thresholds: Thresholds,
    token: str | None,
    *,
    read_only: bool = False,
    three_way: bool = True,
) -> Markup:
    """Render links, thresholds, downloads, a form for saving, and a program that reproduces the result. `names` are
    the evaluators of the result, of which at least one gives redundancy if `three_way`, and `token` is its
    permalink's token."""
    types = {name: evaluators.about(name).dtype for name in names}
    # The type of weights behind an inference server is unknown.
    types = {name: "float32" if dtype == SERVED else dtype for name, dtype in types.items()}
    specs = {name: evaluators.spec(name) for name in names}
    if read_only:
        # Folders of this server stay private. A reader has the evaluator in a different folder, or not at all.
        bare = {name: untyped_name(name, types[name], evaluators.about(name).reading) for name in names}
        specs = {name: spec if is_shipped(spec) else bare[name] for name, spec in specs.items()}
    # If no type was requested or chosen, the program does not request one either.
    chosen = evaluators.place.dtype != STORED or set(types.values()) != {"float32"}
    python = python_snippet(trace, specs, thresholds, types if chosen else None)
    return render(
        "score/exports.html",
        token=token,
        read_only=read_only,
        dataset=SAVED,
        longest=NAME_LENGTH,
        thresholds=thresholds,
        defaults=Thresholds(),
        three_way=three_way,
        python=python,
    )


def python_snippet(
    trace: Trace, specs: Mapping[str, str], thresholds: Thresholds, dtypes: Mapping[str, str] | None = None
) -> str:
    """Return a Python program that prints every sub-step's validity and the verdict, for each evaluator and mode.

    `specs` maps the names of evaluators to arguments of `load_evaluator`, and `dtypes` maps them to types of
    weights. If `dtypes` is None, `load_evaluator` chooses the types.
    """
    steps = "".join(f"        {step!r},\n" for step in plain_steps(steps_of(trace)))
    types = dtypes or {}
    if not types:
        entries, taken, arguments = {name: repr(spec) for name, spec in specs.items()}, "spec", "spec"
    else:
        entries = {name: f"({spec!r}, {types.get(name, 'float32')!r})" for name, spec in specs.items()}
        taken, arguments = "(spec, dtype)", "spec, dtype=dtype"
    listed = "".join(f"    {name!r}: {entry},\n" for name, entry in entries.items())
    return f"""from stepsight import Scorer, Trace, load_evaluator
from stepsight.core.scores import Thresholds, judge_solution

trace = Trace.of(
    {trace.problem!r},
    [
{steps}    ],
)
evaluators = {{
{listed}}}
thresholds = Thresholds(validity={thresholds.validity!r}, redundancy={thresholds.redundancy!r})

for name, {taken} in evaluators.items():
    hindsight = Scorer(load_evaluator({arguments})).score_one(trace).hindsight
    for mode, scores in (("online", hindsight.online), ("offline", hindsight.offline)):
        verdict = "valid" if judge_solution(scores, thresholds).valid else "not valid"
        print(name, mode, *(f"{{value:.4f}}" for value in scores.validity), verdict)
"""
