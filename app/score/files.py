"""Downloads of a trace with its judgments as JSON and CSV, for solutions on the Score page and for stored
traces."""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from typing import Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from stepsight.app.score.entered import Entered
from stepsight.app.scoring.batcher import ShortError
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.access import RequiresRight, Right, find_user_of
from stepsight.app.web.pages import DOWNLOAD_PATIENCE, waiting_route
from stepsight.core.escaping import csv_text
from stepsight.core.files.jsonl import format_trace
from stepsight.core.judgment import Mode
from stepsight.core.judgment_record import LONG, WIDE, ByMode, judgment_table
from stepsight.core.trace import Trace
from stepsight.storage.database.store import Store
from stepsight.storage.people.blindness import check_texts
from stepsight.storage.traces.queries import StoredTrace
from stepsight.training.evaluate.strength import concluded_record

JSON_PATH = "/score/result.json"
CSV_PATH = "/score/result.csv"
Read = Callable[[Request], tuple[str, Trace, Sequence[ByMode]]]


def score_files(store: Store, evaluators: Evaluators) -> APIRouter:
    """Build the routes that download the result of a permalink as JSON and CSV. They take the permalink's token
    `s`, and `valid` and `redundant` to override its thresholds."""

    def read(request: Request) -> tuple[str, Trace, list[ByMode]]:
        entered = Entered.from_query(request.query_params)
        check_texts(store, find_user_of(request), entered.trace)
        trace = entered.trace
        names = dict.fromkeys(entered.evaluators or (evaluators.default,))
        fits = dict(evaluators.fit(name, trace) for name in names)
        pending = {name: evaluators.submit(name, trace, mode, comes_back=True) for name, mode in fits.items()}
        if wait(pending.values(), timeout=DOWNLOAD_PATIENCE).not_done:
            raise late_error()
        records = [
            concluded_record(future.result(), evaluators.about(name), entered.thresholds, name=name)
            for name, future in pending.items()
        ]
        return "stepsight", trace, [dict.fromkeys(Mode, record) for record in records]

    return judgment_files(JSON_PATH, CSV_PATH, Right.SCORE, read)


def judgment_files(json_path: str, csv_path: str, right: Right, read: Read) -> APIRouter:
    """Build the routes that download judgments as JSON and CSV, for users who have the `right`.

    `read` returns the file's name without a suffix, the trace, and the requested judgments. It raises `UserError`
    for an invalid request.
    """
    routes = APIRouter(include_in_schema=False, dependencies=[Depends(RequiresRight(right))])

    def answer(request: Request) -> Response:
        name, trace, judgments = read(request)
        if request.url.path == csv_path:
            return _file(f"{name}.csv", judgments_csv(trace, judgments), "text/csv; charset=utf-8")
        text = json.dumps(judgments_row(trace, judgments), ensure_ascii=False)
        return _file(f"{name}.json", text, "application/json")

    for path in (json_path, csv_path):
        routes.add_api_route(path, waiting_route(answer), methods=["GET"])
    return routes


def late_error() -> ShortError:
    """Return the error for a download whose judgments took longer than `DOWNLOAD_PATIENCE`. They continue in the
    background."""
    return ShortError("The solution is still being judged.", "Download it once the page shows the result.")


def judgments_row(trace: Trace, judgments: Sequence[ByMode]) -> dict[str, Any]:
    """Return the trace in the plain format, with each distinct record listed under `judgments`.

    A stored trace also has its `dataset`, its `first_error` (a step counted from 1, or null if there is none), and
    `valid` for each step (null if the gold label does not say). For any other trace, the id is null.
    """
    more: dict[str, Any] = {"id": None}
    if isinstance(trace, StoredTrace):
        error = trace.first_error
        more = {"dataset": trace.dataset, "first_error": None if error is None else error + 1}
        more["valid"] = [step.valid for step in trace.steps]
    records = {id(record): record for by_mode in judgments for record in by_mode.values()}.values()
    return {**format_trace(trace), **more, "judgments": [record.model_dump(mode="json") for record in records]}


def judgments_csv(trace: Trace, judgments: Sequence[ByMode]) -> str:
    """Return the judgments as CSV. A stored trace has a separate row for each mode; any other trace has both modes
    side by side."""
    columns, dataset = (LONG, trace.dataset) if isinstance(trace, StoredTrace) else (WIDE, "")
    return csv_text(judgment_table(trace, judgments, columns, dataset))


def _file(name: str, text: str, kind: str) -> Response:
    return Response(text, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})
