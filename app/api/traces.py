"""The routes of datasets and traces: GET /datasets, GET /datasets/NAME/traces and GET /traces/NUMBER."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request

from stepsight.app.access.rights import RequiresRight, Right, find_user_of
from stepsight.app.api.models import (
    Context,
    DatasetInfo,
    StepInfo,
    TraceDetail,
    TraceLine,
    TracePage,
    TraceQuery,
)
from stepsight.app.browse.address import Address
from stepsight.app.browse.selection import Selection
from stepsight.core.trace import Trace
from stepsight.storage.browse.browse import BrowseRow, browse
from stepsight.storage.judgments.judgments import trace_records
from stepsight.storage.people.blindness import check_traces, hidden_traces
from stepsight.storage.traces.queries import Dataset, find_dataset, get_trace, list_datasets


def routes(context: Context) -> APIRouter:
    router = APIRouter(tags=["traces"], dependencies=[Depends(RequiresRight(Right.READ))])

    @router.get("/datasets", summary="Every dataset, with its counts")
    def datasets() -> list[DatasetInfo]:
        rows = list_datasets(context.store)
        return [DatasetInfo(**{name: getattr(row, name) for name in DatasetInfo.model_fields}) for row in rows]

    @router.get("/datasets/{name:path}/traces", summary="The traces of a dataset, a page at a time")
    def traces(name: str, query: Annotated[TraceQuery, Query()], request: Request) -> TracePage:
        page = trace_page(context, name, query)
        hidden = hidden_traces(context.store, find_user_of(request), [line.trace for line in page.traces])
        return page.model_copy(update={"traces": [line for line in page.traces if line.trace not in hidden]})

    @router.get("/traces/{trace}", summary="One trace with its gold and its judgments")
    def trace(
        trace: int,
        request: Request,
        left_out: Annotated[bool, Query(description="Add the scores without each step, as far as known.")] = False,
    ) -> TraceDetail:
        stored = get_trace(context.store, trace)
        check_traces(context.store, find_user_of(request), stored.trace_id)
        return TraceDetail(
            trace=stored.trace_id,
            dataset=stored.dataset,
            id=stored.id,
            position=stored.position + 1,
            problem=stored.problem,
            steps=step_infos(stored),
            first_error=_number(stored.first_error),
            meta=dict(stored.meta),
            judgments=trace_records(context.store, stored, left_out=left_out),
        )

    return router


def trace_page(context: Context, name: str, query: TraceQuery) -> TracePage:
    """Return a page of a dataset's traces. Raises the errors of `find_dataset` and `Selection.exact`."""
    selection = _select(context, find_dataset(context.store, name), query)
    where, order = selection.where, selection.address.order
    page = browse(context.store, selection.dataset_id, where, order, query.limit, query.offset)
    return TracePage(
        dataset=name,
        evaluator=selection.about.key,
        errors="redundant" if page.on_redundancy else "invalid",
        total=page.total,
        offset=query.offset,
        traces=[_line(row) for row in page.rows],
    )


def step_infos(trace: Trace) -> list[StepInfo]:
    return [
        StepInfo(
            step=number,
            substeps=list(step.substeps),
            label=step.label.text if step.label is not None else None,  # type: ignore[arg-type]
            valid=step.valid,
            share=step.share,
        )
        for number, step in enumerate(trace.steps, start=1)
    ]


def _select(context: Context, dataset: Dataset, query: TraceQuery) -> Selection:
    """Select the traces that the Browse page shows for this query. Raises the errors of `Selection.exact`."""
    address = Address(**query.model_dump(exclude={"limit", "offset", "dataset"}))
    return Selection.exact(context.store, context.evaluators, dataset.id, address)


def _line(row: BrowseRow) -> TraceLine:
    changed: dict[str, Any] = {
        "trace": row.trace_id,
        "position": row.position + 1,
        "steps": row.n_steps,
        "substeps": row.n_substeps,
        "first_error": _number(row.first_error),
        "found_error": _number(row.first_wrong),
    }
    same = TraceLine.model_fields.keys() - changed.keys()
    return TraceLine(**changed, **{name: getattr(row, name) for name in same})


def _number(index: int | None) -> int | None:
    return None if index is None else index + 1
