"""A scored solution as a file: JSON, or CSV with a row per evaluator and sub-step."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from stepsight.app.access.rights import Needs, Right, find_user_of, note_scored
from stepsight.app.score.form import ScoreForm, plain_steps, steps_of
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.failures import error_response
from stepsight.app.web.judged import step_name
from stepsight.core.errors import UserError
from stepsight.core.files.csv_cells import csv_text
from stepsight.core.judgment import Judgment, judgment_record
from stepsight.core.label import LABEL_NAMES
from stepsight.core.scores import Outputs, StepScores, Thresholds
from stepsight.core.trace import Trace
from stepsight.storage.database.store import Store

JSON_PATH = "/score/result.json"
CSV_PATH = "/score/result.csv"
_COLUMNS = (*LABEL_NAMES, "validity", "redundancy", "valid", "redundant", "spread")


def score_files(store: Store, evaluators: Evaluators) -> APIRouter:
    """Both files of a result: `s` is its permalink's token, `valid` and `redundant` are other thresholds."""
    routes = APIRouter(include_in_schema=False, dependencies=[Depends(Needs(Right.SCORE))])

    def answer(request: Request) -> Response:
        try:
            form = read_query(request.query_params)
            trace, judgments = _judged(evaluators, form)
            note_scored(store, find_user_of(request), trace)
            if request.url.path == CSV_PATH:
                text = csv_text(score_rows(trace, judgments, form.thresholds, _outputs(evaluators)))
                return _file(text, "text/csv; charset=utf-8", "csv")
            record = score_record(trace, judgments, form.thresholds, _outputs(evaluators))
            return _file(json.dumps(record, ensure_ascii=False), "application/json", "json")
        except UserError as error:
            return error_response(request.scope, error)

    for path in (JSON_PATH, CSV_PATH):
        routes.add_api_route(path, answer, methods=["GET"])
    return routes


def read_query(query: Mapping[str, str]) -> ScoreForm:
    """The form of a token `s`, with the thresholds `valid` and `redundant` where the address has them.

    Raises `UserError` where one of them makes no sense.
    """
    form = ScoreForm.from_token(query.get("s", ""))
    return replace(
        form,
        validity=_fraction(query, "valid", form.validity),
        redundancy=_fraction(query, "redundant", form.redundancy),
    )


def score_record(
    trace: Trace, judgments: Mapping[str, Judgment], thresholds: Thresholds, outputs: Mapping[str, Outputs]
) -> dict[str, Any]:
    """Problem, steps, thresholds, and under `judgments` what `stepsight score` writes, one per evaluator; `outputs`
    are those of each."""
    return {
        "problem": trace.problem,
        "steps": plain_steps(steps_of(trace)),
        "thresholds": {"validity": thresholds.validity, "redundancy": thresholds.redundancy},
        "judgments": [
            judgment_record(judgment, name, thresholds, outputs[name]) for name, judgment in judgments.items()
        ],
    }


def score_rows(
    trace: Trace, judgments: Mapping[str, Judgment], thresholds: Thresholds, outputs: Mapping[str, Outputs]
) -> Iterator[list[object]]:
    """A header, then a row per evaluator and sub-step, both modes side by side. One that gives validity only has
    empty cells for the rest."""
    modes = [f"{mode}_{column}" for mode in ("online", "offline") for column in _COLUMNS]
    yield ["evaluator", "step", "text", *modes, "retroactive_change"]
    for name, judgment in judgments.items():
        hindsight = judgment.hindsight
        assert hindsight is not None
        three = outputs[name] == Outputs.THREE_WAY
        for i, text in enumerate(trace.substeps):
            cells = [
                cell
                for scores in (hindsight.online, hindsight.offline)
                for cell in _cells(scores, i, thresholds, three=three)
            ]
            yield [name, step_name(trace, i), text, *cells, _number(hindsight.retroactive[i])]


def _judged(evaluators: Evaluators, form: ScoreForm) -> tuple[Trace, dict[str, Judgment]]:
    trace = form.trace()
    names = dict.fromkeys(form.evaluators or evaluators.names[:1])
    waiting = {name: evaluators.submit(name, trace) for name in names}
    return trace, {name: future.result() for name, future in waiting.items()}


def _outputs(evaluators: Evaluators) -> dict[str, Outputs]:
    return {name: evaluators.about(name).outputs for name in evaluators.names}


def _file(text: str, kind: str, ending: str) -> Response:
    name = f'attachment; filename="stepsight.{ending}"'
    return Response(text, media_type=kind, headers={"content-disposition": name})


def _cells(scores: StepScores, i: int, thresholds: Thresholds, *, three: bool) -> list[object]:
    validity, redundancy = float(scores.validity[i]), float(scores.redundancy[i])
    spread = None if scores.spread is None else _number(scores.spread[i])
    if not three:
        return [*[None] * len(LABEL_NAMES), _number(validity), None, validity >= thresholds.validity, None, spread]
    numbers = [_number(value) for value in (*scores.probs[i], validity, redundancy)]
    return [*numbers, validity >= thresholds.validity, redundancy >= thresholds.redundancy, spread]


def _number(value: float) -> float:
    return round(float(value), 6)


def _fraction(query: Mapping[str, str], key: str, otherwise: float) -> float:
    text = query.get(key)
    if text is None:
        return otherwise
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise UserError(f"{key} is {text!r:.40}, expected a number from 0 to 1.", "Check the address.")
    return value
