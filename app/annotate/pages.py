"""The routes of the campaign and labelling pages and of their forms."""

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from fastapi.routing import APIRoute
from markupsafe import Markup
from pydantic import Field

from stepsight.app.annotate.campaigns import (
    NewCampaign,
    campaign_html,
    form_html,
    list_html,
    read_plan,
    turns_html,
)
from stepsight.app.annotate.label import (
    label_html,
    next_html,
    nothing_left_html,
    review_html,
    skipped_html,
    steps_html,
)
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.access import Annotator, Manager, Person
from stepsight.app.web.failures import error_json
from stepsight.app.web.html import macro, plain_page
from stepsight.app.web.pages import PART, body, read_number, read_query
from stepsight.core.errors import UserError
from stepsight.core.validation import ListOf, Model
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.annotation import Key, NewEvent
from stepsight.storage.labelling.campaigns import (
    add_guideline,
    check_annotator,
    close_campaign,
    create_campaign,
    get_campaign,
    guideline_text,
    set_annotators,
)
from stepsight.storage.labelling.queue import Assignment, assign_next, open_slot
from stepsight.storage.labelling.record import SUBMITTED, RecordedEvent, load_slot, read_annotation, record
from stepsight.storage.labelling.review import read_review
from stepsight.storage.people.users import User

LABEL = "/annotate/label"


class _NewGuideline(Model):
    text: str = ""


class _Annotators(Model):
    """The fields of the form that chooses a campaign's annotators. Numbers arrive as text."""

    who: Literal["everybody", "chosen"]
    people: ListOf[Annotated[str, Field(pattern="^[0-9]{1,12}$")]] = ()

    @property
    def ids(self) -> list[int]:
        return [int(number) for number in self.people]


def pages(store: Store, evaluators: Evaluators) -> APIRouter:
    """Build the routes of the Annotate pages. The application turns any `UserError` that they raise into a
    response."""
    routes = APIRouter(include_in_schema=False)
    _add_management(routes, store, evaluators)
    routes.include_router(labelling_routes(store))

    @routes.get("/annotate")
    def campaigns(user: Person) -> HTMLResponse:
        return _page("Annotate", list_html(store, user))

    return routes


def labelling_routes(store: Store) -> APIRouter:
    """Build the routes that require the right to label: the labelling pages, and those of their script."""
    routes = APIRouter(include_in_schema=False)
    routes.include_router(_script_routes(store))

    @routes.get(LABEL)
    def label(request: Request, user: Annotator) -> Response:
        if "slot" in request.query_params:
            return _slot_page(store, request, _requested_assignment(store, request, user), user)
        campaign_id = read_number(request.query_params, "campaign")
        if PART in request.headers:
            return _labelling_page(request, "", next_html(store, campaign_id, user))
        assignment = assign_next(store, campaign_id, user)
        if assignment is None:
            return _labelling_page(request, "Nothing is left for you", nothing_left_html(store, campaign_id, user))
        return RedirectResponse(f"{LABEL}?slot={assignment.slot}", 303)

    @routes.get("/annotate/own")
    def own(request: Request, user: Annotator) -> HTMLResponse:
        query = {"page": "1", **request.query_params}
        page = max(1, read_number(query, "page"))
        return _page("Your traces", turns_html(store, read_number(query, "campaign"), user, page))

    @routes.get(f"{LABEL}/steps")
    def steps(request: Request, user: Annotator) -> HTMLResponse:
        assignment = _requested_assignment(store, request, user)
        annotation = read_annotation(store, assignment.slot, user.id)
        start = read_number(request.query_params, "from")
        return HTMLResponse(steps_html(store, assignment, annotation, user, start))

    @routes.get(f"{LABEL}/guideline")
    def guideline(request: Request, user: Annotator) -> HTMLResponse:
        campaign = get_campaign(store, read_number(request.query_params, "campaign"))
        with store.read() as session:
            check_annotator(session, campaign, user)
        text = guideline_text(store, campaign.id)
        return HTMLResponse(macro("annotate/parts.html", "guideline_text", campaign.guideline, text))

    return routes


def _add_management(routes: APIRouter, store: Store, evaluators: Evaluators) -> None:
    @routes.get("/annotate/new")
    def new(request: Request, user: Manager) -> HTMLResponse:
        return _page("New campaign", form_html(store, evaluators, read_query(request.url.query)))

    @routes.get("/annotate/campaign")
    def campaign(request: Request, user: Manager) -> HTMLResponse:
        return _page("Campaign", campaign_html(store, read_number(request.query_params, "campaign"), user))

    @routes.post("/annotate/campaigns")
    def create(user: Manager, form: Annotated[NewCampaign, body(NewCampaign)]) -> JSONResponse:
        campaign = create_campaign(store, read_plan(store, evaluators, form), user)
        return JSONResponse({"campaign": campaign.id, "go": f"/annotate/campaign?campaign={campaign.id}"}, 201)

    @routes.post("/annotate/campaigns/{campaign:number}/guideline")
    def amend(campaign: int, user: Manager, new: Annotated[_NewGuideline, body(_NewGuideline)]) -> JSONResponse:
        version = add_guideline(store, campaign, new.text.strip(), user)
        return JSONResponse({"version": version, "go": f"/annotate/campaign?campaign={campaign}"})

    @routes.post("/annotate/campaigns/{campaign:number}/annotators")
    def assign(campaign: int, user: Manager, new: Annotated[_Annotators, body(_Annotators)]) -> JSONResponse:
        set_annotators(store, campaign, new.ids if new.who == "chosen" else None, user)
        return JSONResponse({"go": f"/annotate/campaign?campaign={campaign}"})

    @routes.post("/annotate/campaigns/{campaign:number}/close")
    def close(campaign: int, user: Manager) -> JSONResponse:
        closed = close_campaign(store, campaign)
        return JSONResponse({"campaign": closed.id, "go": f"/annotate/campaign?campaign={closed.id}"})


def _requested_assignment(store: Store, request: Request, user: User) -> Assignment:
    """Open the assignment that the request's `slot` parameter names. Raises the same errors as `open_slot`."""
    return open_slot(store, request.query_params.get("slot", ""), user)


def _slot_page(store: Store, request: Request, assignment: Assignment, user: User) -> HTMLResponse:
    """Render an assignment: the labelling page while it is open, and the submitted or skipped trace afterwards."""
    annotation = read_annotation(store, assignment.slot, user.id)
    if assignment.expires is not None:
        return _labelling_page(request, "Label a trace", label_html(store, assignment, annotation, user))
    if not annotation.submitted:
        return _labelling_page(request, "Skipped", skipped_html(assignment))
    review = read_review(store, assignment.slot, user)
    return _labelling_page(request, "Submitted", review_html(assignment, annotation, review, user.id))


def _labelling_page(request: Request, title: str, content: Markup) -> HTMLResponse:
    """Return a labelling page, or only its content if the page's script requests the next trace."""
    shown = content if PART in request.headers else plain_page(title, content, "Annotate")
    return HTMLResponse(shown, headers={"vary": PART, "cache-control": "no-cache"})


def _page(title: str, content: Markup) -> HTMLResponse:
    return HTMLResponse(plain_page(title, content, "Annotate"))


class _JsonErrors(APIRoute):
    """A route that reports errors as JSON, whichever media types the client accepts."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handle(request)
            except UserError as error:
                return error_json(error)

        return answer


class _Turn(Model):
    """An undo or redo. `of` is the key of the event that it is meant for; without it, the newest is undone."""

    key: Key
    of: Key | None = None


def _script_routes(store: Store) -> APIRouter:
    """Build the routes used by the labelling page's script.

    `GET /annotate/slots/SLOT` returns what the user has done in the slot with this random id: `{guideline, expires,
    state}`, where `expires` is null once the slot has ended.

    `POST /annotate/slots/SLOT/events` takes `{kind, key, step, new, seconds, revealed, guideline}` and answers
    `{moment, repeated, state}` once the event is durably stored. If the page submits a trace and the campaign shows
    nothing in between, the answer includes the `next` trace. `…/undo` and `…/redo` take `{key, of}`. Steps count
    from 0. Errors are `{error, hint}`, as in the API.
    """
    routes = APIRouter(prefix="/annotate", include_in_schema=False, route_class=_JsonErrors)

    @routes.get("/slots/{slot}")
    def read_slot(slot: str, user: Annotator) -> JSONResponse:
        assignment = open_slot(store, slot, user)
        return JSONResponse(
            {
                "guideline": assignment.campaign.guideline,
                "expires": None if assignment.expires is None else assignment.expires.isoformat(),
                "state": read_annotation(store, assignment.slot, user.id).as_json(),
            }
        )

    @routes.post("/slots/{slot}/events")
    def add_event(
        request: Request, slot: str, user: Annotator, event: Annotated[NewEvent, body(NewEvent)]
    ) -> JSONResponse:
        recorded = record(store, slot, user, event)
        goes_on = event.kind == "submit" and PART in request.headers
        return _event_response(recorded, _next_page(store, slot, user) if goes_on else None)

    @routes.post("/slots/{slot}/undo")
    def undo(slot: str, user: Annotator, sent: Annotated[_Turn, body(_Turn)]) -> JSONResponse:
        return _record_turn(store, slot, user, sent, "undo")

    @routes.post("/slots/{slot}/redo")
    def redo(slot: str, user: Annotator, sent: Annotated[_Turn, body(_Turn)]) -> JSONResponse:
        return _record_turn(store, slot, user, sent, "redo")

    return routes


def _record_turn(store: Store, slot: str, user: User, sent: _Turn, cause: str) -> JSONResponse:
    return _event_response(record(store, slot, user, NewEvent(key=sent.key, cause=cause, of=sent.of)))


def _event_response(event: RecordedEvent, next: str | None = None) -> JSONResponse:
    answer = {
        "moment": event.moment.isoformat(),
        "repeated": event.repeated,
        "state": event.annotation.as_json(),
    }
    return JSONResponse(answer if next is None else answer | {"next": next})


def _next_page(store: Store, public_id: str, user: User) -> str | None:
    """Render the page of the trace that follows a submission. Returns None if the browser has to request the next
    page separately."""
    with store.read() as session:
        slot = load_slot(session, public_id)
    if slot.settings.is_final or slot.row.state != SUBMITTED:
        return None
    try:
        return next_html(store, slot.campaign.id, user)
    except UserError:
        # The submission is kept. A separate request for the next trace is refused with the reason.
        return None
