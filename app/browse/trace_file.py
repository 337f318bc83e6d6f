"""A stored trace with its judgments as a file: JSON, or CSV with a row per sub-step, evaluator and mode."""

from fastapi import APIRouter, Depends, Request
from starlette.datastructures import QueryParams
from starlette.responses import Response

from stepsight.app.access.rights import Needs, Right, find_user_of, note_shown
from stepsight.app.browse.address import Address
from stepsight.app.browse.evaluator_choice import EvaluatorChoice, list_choices, shown_choices
from stepsight.app.browse.trace_judgments import TraceJudgments, judge_trace
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.failures import error_response
from stepsight.app.web.judgment_files import judgments_file
from stepsight.core.errors import UserError
from stepsight.core.files.judgment_table import LONG
from stepsight.core.judgment_record import JudgmentRecord, judgment_record
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.judgments import StoredJudgment
from stepsight.storage.traces.queries import StoredTrace, get_trace

JSON_PATH = "/browse/trace.json"
CSV_PATH = "/browse/trace.csv"


def router(store: Store, evaluators: Evaluators) -> APIRouter:
    """Both files of a trace, under the query of its page."""
    routes = APIRouter(include_in_schema=False, dependencies=[Depends(Needs(Right.READ))])

    def answer(request: Request) -> Response:
        try:
            trace, records = _read(store, evaluators, request.query_params)
            note_shown(store, find_user_of(request), [trace.trace_id])
        except UserError as error:
            return error_response(request.scope, error)
        name = f"trace-{trace.trace_id}.{request.url.path.rpartition('.')[2]}"
        more = {
            "dataset": trace.dataset,
            "first_error": None if trace.first_error is None else trace.first_error + 1,
            "valid": [step.valid for step in trace.steps],
        }
        return judgments_file(name, trace, records, LONG, trace.dataset, more)

    for path in (JSON_PATH, CSV_PATH):
        routes.add_api_route(path, answer, methods=["GET"])
    return routes


def _read(store: Store, evaluators: Evaluators, query: QueryParams) -> tuple[StoredTrace, list[JudgmentRecord]]:
    address, problems = Address.read({key: query.getlist(key) for key in query})
    if problems or address.trace is None:
        raise UserError("; ".join(problems) or "No trace is named.", "Follow the link on the page of a trace.")
    trace = get_trace(store, address.trace)
    shown = shown_choices(list_choices(store, evaluators, trace.dataset_id), address)
    answers = judge_trace(store, evaluators, shown, trace)
    records = [
        record
        for choice, answer in zip(shown, answers, strict=True)
        for record in _records(evaluators, choice, answer)
    ]
    return trace, records


def _records(evaluators: Evaluators, choice: EvaluatorChoice, answer: TraceJudgments) -> list[JudgmentRecord]:
    evaluator = choice.row or evaluators.about(choice.loaded or choice.key)
    return [
        judgment_record(
            judgment,
            evaluator,
            answer.thresholds,
            name=answer.name,
            created=judgment.created if isinstance(judgment, StoredJudgment) else None,
        )
        for judgment in answer.judgments
    ]


def file_address(path: str, address: Address) -> str:
    """The address of a file of the trace that an address shows, as an attribute's value."""
    kept = ("trace", "evaluator", "against", "other", "beside")
    short = Address(**{name: getattr(address, name) for name in kept})
    return short.url(path)
