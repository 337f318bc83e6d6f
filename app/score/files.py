"""A scored solution as a file: JSON, or CSV with a row per evaluator and sub-step."""

from collections.abc import Mapping
from dataclasses import replace

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from stepsight.app.access.rights import Needs, Right, find_user_of, note_scored
from stepsight.app.score.form import ScoreForm
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.failures import error_response
from stepsight.app.web.judgment_files import judgments_file
from stepsight.core.errors import UserError
from stepsight.core.files.judgment_table import WIDE
from stepsight.core.judgment import Judgment
from stepsight.core.judgment_record import judgment_record
from stepsight.core.trace import Trace
from stepsight.storage.database.store import Store

JSON_PATH = "/score/result.json"
CSV_PATH = "/score/result.csv"


def score_files(store: Store, evaluators: Evaluators) -> APIRouter:
    """Both files of a result: `s` is its permalink's token, `valid` and `redundant` are other thresholds."""
    routes = APIRouter(include_in_schema=False, dependencies=[Depends(Needs(Right.SCORE))])

    def answer(request: Request) -> Response:
        try:
            form = read_query(request.query_params)
            trace, judgments = _judged(evaluators, form)
            note_scored(store, find_user_of(request), trace)
            records = [
                judgment_record(judgment, evaluators.about(name), form.thresholds, name=name)
                for name, judgment in judgments.items()
            ]
            name = f"stepsight.{request.url.path.rpartition('.')[2]}"
            return judgments_file(name, trace, records, WIDE, more={"id": None})
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


def _judged(evaluators: Evaluators, form: ScoreForm) -> tuple[Trace, dict[str, Judgment]]:
    trace = form.trace()
    names = dict.fromkeys(form.evaluators or evaluators.names[:1])
    waiting = {name: evaluators.submit(name, trace) for name in names}
    return trace, {name: future.result() for name, future in waiting.items()}


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
