"""What a person entered, scored by the evaluators that they chose."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from markupsafe import Markup

from stepsight.app.score.comparison import Matches, is_related
from stepsight.app.score.exports import exports_html
from stepsight.app.score.permalink import ScoreForm
from stepsight.app.score.score_view import EarlierSolution, EvaluatorScores, ScoredSolution, scored_html
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.judged import notice_html
from stepsight.core.errors import UserError
from stepsight.core.judgment import Judgment
from stepsight.core.scores import Hindsight
from stepsight.core.trace import Trace
from stepsight.training.evaluate.gallery import read_gallery


def result_html(
    evaluators: Evaluators, form: ScoreForm, before: str = "", *, kept: bool = False, read_only: bool = False
) -> Markup:
    """The judged solution and what can be done with it; or a notice that says what is wrong.

    `before` is the permalink of an earlier result to compare with: one that is `kept`, or else one of which this is
    an edit; another is passed over.
    """
    try:
        trace = form.trace()
        names = _names(form)
    except UserError as error:
        return notice_html(str(error))
    judged, problems = _judge(evaluators, trace, names)
    if not judged:
        return Markup().join(map(notice_html, problems))
    form = replace(form, evaluators=tuple(judged))
    earlier, triangles = _earlier(evaluators, trace, before, list(judged), kept=kept)
    result = ScoredSolution(
        trace,
        tuple(
            EvaluatorScores(
                name, judgment.hindsight, triangles.get(name), evaluators.scorer(name).evaluator.outputs
            )
            for name, judgment in judged.items()
            if judgment.hindsight is not None
        ),
        form.thresholds,
        form.token(),
        earlier,
        _notes().get((trace.problem, trace.substeps), ""),
        tuple(problems),
    )
    return scored_html(result, exports_html(evaluators, form, trace, read_only=read_only))


def _names(form: ScoreForm) -> list[str]:
    if not form.evaluators:
        raise UserError("No evaluator is chosen.", "Choose one or more, then score again.")
    return list(dict.fromkeys(form.evaluators))


def _judge(evaluators: Evaluators, trace: Trace, names: Sequence[str]) -> tuple[dict[str, Judgment], list[str]]:
    """The judgments of those evaluators that can give one, and a message for each of the others."""
    judged, problems, waiting = {}, [], []
    for name in names:
        try:
            waiting.append((name, evaluators.submit(name, trace)))
        except UserError as error:
            problems.append(str(error))
    for name, future in waiting:
        try:
            judged[name] = future.result()
        except UserError as error:
            problems.append(str(error))
    return judged, problems


def _earlier(
    evaluators: Evaluators, trace: Trace, token: str, names: Sequence[str], *, kept: bool
) -> tuple[EarlierSolution | None, dict[str, Hindsight]]:
    """The result to compare with and its triangles by evaluator; none where it says nothing of this one."""
    try:
        before = ScoreForm.from_token(token).trace() if token else None
    except UserError:
        return None, {}
    if before is None or (before.problem, before.substeps) == (trace.problem, trace.substeps):
        return None, {}
    if not kept and not is_related(before, trace):
        return None, {}
    judged, _ = _judge(evaluators, before, names)
    triangles = {name: judgment.hindsight for name, judgment in judged.items() if judgment.hindsight is not None}
    return EarlierSolution(before, Matches.of(before.substeps, trace.substeps), token, kept), triangles


@cache
def _notes() -> dict[tuple[str, tuple[str, ...]], str]:
    """What later steps reveal in the traces of the gallery, by problem and sub-steps."""
    return {(trace.problem, trace.substeps): str(trace.meta.get("note", "")) for trace in read_gallery()}
