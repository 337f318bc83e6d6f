"""The addresses of the pages of disputes, and what their forms send.

`POST /relabel/disputes` takes `{trace, step, digest, proposed, reason}`, with the number of the trace in the
store, `step` 0-based and `proposed` neg, neu, pos, valid or null, and answers `{dispute, state, go}`, as does
`POST /relabel/disputes/NUMBER/entries`, which takes `{text, state}`. `GET /relabel/disputes/patch?dataset=NAME` is
the label patch of the accepted ones.
"""

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

from app.relabel.dispute_pages import (
    DisputeAddress,
    DisputesAddress,
    dispute_html,
    form_html,
    list_html,
    listed,
    read_form_address,
    read_list_address,
)
from app.relabel.sent import Fields, choice, text, whole
from app.web.frame import plain_page
from app.web.identity import find_user_of, user_of_request
from app.web.page_address import read_query
from app.web.rights import Right, has_right, require
from core.patch import SAID, format_patch
from storage.labelling.disputes import (
    Dispute,
    State,
    Which,
    add_entry,
    get_dispute,
    list_disputes,
    open_dispute,
)
from storage.labelling.patches import make_patch
from storage.labelling.sight import has_seen_through
from storage.people.exposures import GOLD, note_exposure
from storage.people.users import User
from storage.queries import find_dataset
from storage.store import ForbiddenError, Store

_NAME = "label-patch.json"


def _annotator(request: Request) -> User:
    return require(request, Right.LABEL)


Annotator = Annotated[User, Depends(_annotator)]


def router(store: Store) -> APIRouter:
    """The pages and their routes. They raise `UserError`, which the application answers."""
    routes = APIRouter(include_in_schema=False)
    _add_pages(routes, store)
    _add_acts(routes, store)
    return routes


def _add_pages(routes: APIRouter, store: Store) -> None:
    @routes.get(DisputesAddress.PATH)
    def disputes(request: Request) -> HTMLResponse:
        address = read_list_address(read_query(request.url.query))
        seen_by = None if has_right(request, Right.READ) else user_of_request(request).id
        found = listed(store, address, seen_by)
        _note(store, request, *(dispute.trace_id for dispute in found))
        return _page("Disputes", list_html(store, address, found, seen_by))

    @routes.get(f"{DisputesAddress.PATH}/patch")
    def patch(request: Request, dataset: str = "") -> Response:
        if not has_right(request, Right.READ):
            raise ForbiddenError("A label patch tells the gold of traces.", "Ask again once no campaign is blind.")
        found = find_dataset(store, dataset)
        accepted = list_disputes(store, Which(dataset=found.name, state=State.ACCEPTED))
        _note(store, request, *(dispute.trace_id for dispute in accepted))
        made, _ = make_patch(store, found, name=_NAME)
        told = {"content-disposition": f'attachment; filename="{_NAME}"'}
        return Response(format_patch(made), media_type="application/json", headers=told)

    @routes.get(f"{DisputesAddress.PATH}/{{number:int}}")
    def dispute(request: Request, number: int) -> HTMLResponse:
        found = get_dispute(store, number)
        _check_sight(store, request, found.trace_id)
        labels = has_right(request, Right.LABEL)
        body = dispute_html(store, found, find_user_of(request), labels=labels)
        return _page(f"Dispute {found.id}", body)

    @routes.get(DisputeAddress.PATH)
    def form(request: Request, user: Annotator) -> HTMLResponse:
        address = read_form_address(read_query(request.url.query))
        trace = address.find(store)
        _check_sight(store, request, trace.trace_id)
        return _page("Dispute a label", form_html(store, address, trace))


def _add_acts(routes: APIRouter, store: Store) -> None:
    @routes.post(DisputesAddress.PATH)
    def file(request: Request, user: Annotator, fields: Fields) -> JSONResponse:
        trace_id = whole(fields, "trace")
        _check_sight(store, request, trace_id)
        said = choice(fields, "proposed", SAID)
        digest = text(fields, "digest") or None
        made = open_dispute(store, trace_id, whole(fields, "step"), said, text(fields, "reason"), user, digest)
        return _told(made, 201)

    @routes.post(f"{DisputesAddress.PATH}/{{number:int}}/entries")
    def add(request: Request, number: int, user: Annotator, fields: Fields) -> JSONResponse:
        _check_sight(store, request, get_dispute(store, number).trace_id)
        state = choice({"state": ""} | dict(fields), "state", ("", *State)) or None
        said = text(fields, "text")
        return _told(add_entry(store, number, user, said, State(state) if state else None), 200)


def _check_sight(store: Store, request: Request, trace_id: int) -> None:
    """A dispute tells the gold: only who may see it gets further, which is noted where the trace is to be labelled.
    Raises `ForbiddenError`."""
    if has_right(request, Right.READ):
        _note(store, request, trace_id)
    elif not has_seen_through(store, user_of_request(request).id, trace_id):
        raise ForbiddenError("The gold of this trace is hidden while a blind campaign is open.", "Label it first.")


def _note(store: Store, request: Request, *trace_ids: int) -> None:
    user = find_user_of(request)
    if user is not None:
        note_exposure(store, user.id, trace_ids, GOLD)


def _told(dispute: Dispute, status: int) -> JSONResponse:
    go = f"{DisputesAddress.PATH}/{dispute.id}"
    return JSONResponse({"dispute": dispute.id, "state": dispute.state.value, "go": go}, status)


def _page(title: str, body: str) -> HTMLResponse:
    return HTMLResponse(plain_page(title, body, "Relabel"))
