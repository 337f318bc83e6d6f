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
from stepsight.core.judgment_record import JudgmentRecord, judgment_record
from stepsight.storage.database.store import Store
from stepsight.storage.traces.queries import StoredTrace, get_trace

JSON_PATH = "/browse/trace.json"
CSV_PATH = "/browse/trace.csv"


def router(store: Store, evaluators: Evaluators) -> APIRouter:
    """Both files of a trace, under the query of its page."""

    def read(request: Request) -> tuple[str, StoredTrace, list[JudgmentRecord]]:
        trace, records = _read(store, evaluators, request.query_params, table=request.url.path == CSV_PATH)
        note_shown(store, find_user_of(request), [trace.trace_id])
        return f"trace-{trace.trace_id}", trace, records

    return judgment_files(JSON_PATH, CSV_PATH, Right.READ, read)


def _read(
    store: Store, evaluators: Evaluators, query: QueryParams, *, table: bool
) -> tuple[StoredTrace, list[JudgmentRecord]]:
    address, problems = Address.read({key: query.getlist(key) for key in query})
    if problems or address.trace is None:
        raise UserError("; ".join(problems) or "No trace is named.", "Follow the link on the page of a trace.")
    trace = get_trace(store, address.trace)
    shown = shown_choices(list_choices(store, evaluators, trace.dataset_id), address.shown)
    answers = judge_trace(store, evaluators, shown, trace)
    records = []
    for choice, answer in zip(shown, answers, strict=True):
        evaluator = choice.row or evaluators.about(choice.loaded or choice.key)
        for judgment in answer.judgments:
            record = judgment_record(judgment, evaluator, answer.thresholds, answer.name)
            # A table has the rows of a mode once: those of the judgment that stands in it.
            others = [mode.value for mode in record.modes if table and answer.by_mode.get(mode) is not judgment]
            records.append(record.model_copy(update=dict.fromkeys(others)))
    return trace, records


def file_address(path: str, address: Address) -> str:
    """The address of a file of the trace that an address shows, as an attribute's value."""
    kept = ("trace", "evaluator", "against", "other", "beside")
    short = Address(**{name: getattr(address, name) for name in kept})
    return short.url(path)
