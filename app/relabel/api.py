"""What the pages to label on ask the server for: the next trace, and one route for everything a person does.

`POST /relabel/campaigns/NUMBER/claim` gives a turn, or 204 where nothing is left now; `GET /relabel/slots/NUMBER`
gives it again. `POST /relabel/slots/NUMBER/events` takes `{kind, key, step, new, seconds, revealed, guideline}` and
answers `{event, moment, repeated, state}` once that is stored for good; `…/undo` and `…/redo` take `{key}`. Steps
are 0-based. Errors are `{error, hint}`, as the API's.
"""

import json
from collections.abc import Callable, Coroutine
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute

from stepsight.app.relabel.campaign_summary import is_told_all
from stepsight.app.web.failures import error_json
from stepsight.app.web.rights import Right, require
from stepsight.core.errors import UserError
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.annotation import Annotation, NewEvent
from stepsight.storage.labelling.comparison import Review, ShownScores, read_review, read_scores
from stepsight.storage.labelling.plan import CampaignView
from stepsight.storage.labelling.progress import campaign_progress
from stepsight.storage.labelling.queue import Assignment, assign_next, open_slot
from stepsight.storage.labelling.record import RecordedEvent, read_annotation, record, redo, undo
from stepsight.storage.people.users import User

_FIELDS = ("kind", "key", "step", "new", "cause", "of", "seconds", "revealed", "guideline")


class _Told(APIRoute):
    """Answers an error with its status, as JSON."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def told(request: Request) -> Response:
            try:
                return await handle(request)
            except UserError as error:
                return error_json(error)

        return told


def _annotator(request: Request) -> User:
    return require(request, Right.LABEL)


async def _read_body(request: Request) -> dict[str, Any]:
    try:
        found = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise UserError("The body is no JSON.", "Send a JSON object.") from None
    if not isinstance(found, dict):
        raise UserError(f"The body is {type(found).__name__}, expected a JSON object.")
    return found


Annotator = Annotated[User, Depends(_annotator)]
Body = Annotated[dict[str, Any], Depends(_read_body)]


def router(store: Store) -> APIRouter:
    """The routes, all of which need the right to label."""
    routes = APIRouter(prefix="/relabel", include_in_schema=False, route_class=_Told)

    @routes.post("/campaigns/{campaign:int}/claim")
    def claim_next(campaign: int, user: Annotator) -> Response:
        task = assign_next(store, campaign, user)
        return Response(status_code=204) if task is None else JSONResponse(_task(store, task, user))

    @routes.get("/slots/{slot:int}")
    def read_slot(slot: int, user: Annotator) -> JSONResponse:
        return JSONResponse(_task(store, open_slot(store, slot, user), user))

    @routes.post("/slots/{slot:int}/events")
    def add_event(slot: int, user: Annotator, body: Body) -> JSONResponse:
        act = NewEvent(**{"kind": "", "key": ""} | {name: body[name] for name in _FIELDS if name in body})
        return _recorded(store, slot, user, record(store, slot, user, act))

    @routes.post("/slots/{slot:int}/undo")
    def undo_event(slot: int, user: Annotator, body: Body) -> JSONResponse:
        return _recorded(store, slot, user, undo(store, slot, user, body.get("key", "")))

    @routes.post("/slots/{slot:int}/redo")
    def redo_event(slot: int, user: Annotator, body: Body) -> JSONResponse:
        return _recorded(store, slot, user, redo(store, slot, user, body.get("key", "")))

    return routes


def _recorded(store: Store, slot: int, user: User, recorded: RecordedEvent) -> JSONResponse:
    return JSONResponse(
        {
            "event": recorded.event_id,
            "moment": recorded.moment.isoformat(),
            "repeated": recorded.repeated,
            # Of this person: who sends an act again may have lost the slot since.
            "state": _state(read_annotation(store, slot, user.id)),
        }
    )


def _task(store: Store, task: Assignment, user: User) -> dict[str, Any]:
    """A turn as JSON: of the trace only the steps that are revealed, and nothing beside it before its time."""
    draft = read_annotation(store, task.slot_id, user.id)
    campaign, trace = task.campaign, task.trace
    seen = len(trace.steps) if campaign.view is CampaignView.WHOLE else draft.revealed
    after = read_review(store, task.slot_id, user)
    return {
        "slot": task.slot_id,
        "campaign": {"id": campaign.id, "name": campaign.name, "after_error": campaign.after_error,
                     "view": campaign.view.value, "shows": campaign.shows.value},
        "guideline": task.guideline,
        "expires": None if task.expires is None else task.expires.isoformat(),
        "problem": trace.problem,
        "n_steps": len(trace.steps),
        "steps": [list(step.substeps) for step in trace.steps[:seen]],
        "scores": [_said(one) for one in read_scores(store, task.slot_id, user, draft)],
        "state": _state(draft),
        "progress": _progress(store, campaign.id, user),
        "after": None if after is None else _after(after),
    }  # fmt: skip


def _progress(store: Store, campaign_id: int, user: User) -> dict[str, int]:
    found = campaign_progress(store, campaign_id, user.id)
    return asdict(found) if is_told_all(user) else {"mine": found.mine}


def _state(draft: Annotation) -> dict[str, Any]:
    return {name: value for name, value in asdict(draft).items() if name != "first"}


def _said(said: ShownScores) -> dict[str, Any]:
    return {
        "evaluator": said.evaluator,
        "mode": said.mode.value,
        "validity": said.validity,
        "redundancy": said.redundancy,
    }


def _after(shown: Review) -> dict[str, Any]:
    trace = shown.trace
    return {
        "trace": trace.id,
        "dataset": trace.dataset,
        "gold": [None if label is None else label.text for label in trace.labels],
        "valid": [step.valid for step in trace.steps],
        "scores": [_said(one) for one in shown.scores],
        "peers": [{"labels": peer.labels, "errors": peer.errors} for peer in shown.peers],
    }
