"""A stored trace with its judgments as a file: JSON, or CSV with a row per sub-step, evaluator and mode."""

from fastapi import APIRouter, Request
from starlette.datastructures import QueryParams

from stepsight.app.access.rights import Right, find_user_of, note_shown
from stepsight.app.browse.address import Address
from stepsight.app.browse.evaluator_choice import list_choices, shown_choices
from stepsight.app.browse.trace_judgments import judge_trace
from stepsight.app.score.files import judgment_files
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.errors import UserError
from stepsight.core.files.judgment_table import ByMode
from stepsight.core.judgment_record import judgment_record
from stepsight.storage.database.store import Store
from stepsight.storage.traces.queries import StoredTrace, get_trace

JSON_PATH = "/browse/trace.json"
CSV_PATH = "/browse/trace.csv"


def router(store: Store, evaluators: Evaluators) -> APIRouter:
    """The routes of both files, with the query of the trace's page."""

    def read(request: Request) -> tuple[str, StoredTrace, list[ByMode]]:
        trace, judgments = _read(store, evaluators, request.query_params)
        note_shown(store, find_user_of(request), [trace.trace_id])
        return f"trace-{trace.trace_id}", trace, judgments

    return judgment_files(JSON_PATH, CSV_PATH, Right.READ, read)


def _read(store: Store, evaluators: Evaluators, query: QueryParams) -> tuple[StoredTrace, list[ByMode]]:
    address, problems = Address.read({key: query.getlist(key) for key in query})
    if problems or address.trace is None:
        raise UserError("; ".join(problems) or "No trace is named.", "Follow the link on the page of a trace.")
    trace = get_trace(store, address.trace)
    shown = shown_choices(list_choices(store, evaluators, trace.dataset_id), address.shown)
    judgments: list[ByMode] = []
    for choice, answer in zip(shown, judge_trace(store, evaluators, shown, trace), strict=True):
        evaluator = choice.row or evaluators.about(choice.loaded or choice.key)
        records = {one: judgment_record(one, evaluator, answer.thresholds, answer.name) for one in answer.judgments}
        judgments.append({mode: records[one] for mode, one in answer.by_mode.items()})
    return trace, judgments


def file_address(path: str, address: Address) -> str:
    """The URL of a file of the trace that an address shows, for use in an attribute."""
    kept = ("trace", "evaluator", "against", "other", "beside")
    short = Address(**{name: getattr(address, name) for name in kept})
    return short.url(path)
