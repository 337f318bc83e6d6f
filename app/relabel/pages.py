"""Routes of the pages for campaigns and labelling, and of their forms."""

from typing import Annotated, Literal

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from markupsafe import Markup
from pydantic import Field

from stepsight.app.access.rights import Annotator, Manager, Person
from stepsight.app.relabel.campaigns import campaign_html, list_html
from stepsight.app.relabel.label import label_html, next_html, steps_html
from stepsight.app.relabel.new_campaign import NewCampaign, form_html, read_plan
from stepsight.app.relabel.review import review_html, skipped_html
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.address_page import PART
from stepsight.app.web.bodies import body
from stepsight.app.web.html import macro, plain_page, render
from stepsight.app.web.page_address import read_number, read_query
from stepsight.core.validation import ListOf, Model
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.annotators import set_annotators
from stepsight.storage.labelling.campaigns import (
    add_guideline,
    close_campaign,
    create_campaign,
    get_campaign,
    guideline_text,
)
from stepsight.storage.labelling.progress import campaign_progress
from stepsight.storage.labelling.queue import Assignment, assign_next, open_slot
from stepsight.storage.labelling.record import read_annotation
from stepsight.storage.labelling.review import read_review
from stepsight.storage.labelling.slots import find_slot
from stepsight.storage.people.users import User

LABEL = "/relabel/label"


class _NewGuideline(Model):
    text: str = ""


class _Annotators(Model):
    """The form for a campaign's annotators; numbers arrive as text."""

    who: Literal["everybody", "chosen"]
    people: ListOf[Annotated[str, Field(pattern="^[0-9]{1,12}$")]] = ()

    @property
    def ids(self) -> list[int]:
        return [int(number) for number in self.people]


def pages(store: Store, evaluators: Evaluators) -> APIRouter:
    """The pages. Their `UserError`s are answered by the application."""
    routes = APIRouter(include_in_schema=False)
    _add_labelling(routes, store)
    _add_management(routes, store, evaluators)

    @routes.get("/relabel")
    def campaigns(user: Person) -> HTMLResponse:
        return _page("Relabel", list_html(store, user))

    return routes


def _add_labelling(routes: APIRouter, store: Store) -> None:
    @routes.get(LABEL)
    def label(request: Request, user: Annotator) -> Response:
        if "slot" in request.query_params:
            return _slot_page(store, request, _asked(store, request, user), user)
        campaign_id = read_number(request.query_params, "campaign")
        if PART in request.headers:
            return _turn(request, "", next_html(store, campaign_id, user))
        assignment = assign_next(store, campaign_id, user)
        if assignment is None:
            progress = campaign_progress(store, campaign_id, user.id)
            content = render("relabel/nothing_left.html", progress=progress)
            return _turn(request, "Nothing is left for you", content)
        return RedirectResponse(f"{LABEL}?slot={assignment.public_id}", 303)

    @routes.get(f"{LABEL}/steps")
    def steps(request: Request, user: Annotator) -> HTMLResponse:
        assignment = _asked(store, request, user)
        annotation = read_annotation(store, assignment.slot_id, user.id)
        return HTMLResponse(
            steps_html(store, assignment, annotation, user, read_number(request.query_params, "from"))
        )

    @routes.get(f"{LABEL}/guideline")
    def guideline(request: Request, user: Annotator) -> HTMLResponse:
        campaign = get_campaign(store, read_number(request.query_params, "campaign"))
        text = guideline_text(store, campaign.id)
        return HTMLResponse(macro("relabel/parts.html", "guideline_text", campaign.guideline, text))


def _add_management(routes: APIRouter, store: Store, evaluators: Evaluators) -> None:
    @routes.get("/relabel/new")
    def new(request: Request, user: Manager) -> HTMLResponse:
        return _page("New campaign", form_html(store, evaluators, read_query(request.url.query)))

    @routes.get("/relabel/campaign")
    def campaign(request: Request, user: Manager) -> HTMLResponse:
        return _page("Campaign", campaign_html(store, read_number(request.query_params, "campaign"), user))

    @routes.post("/relabel/campaigns")
    def create(user: Manager, form: Annotated[NewCampaign, body(NewCampaign)]) -> JSONResponse:
        campaign = create_campaign(store, read_plan(store, evaluators, form), user)
        return JSONResponse({"campaign": campaign.id, "go": f"/relabel/campaign?campaign={campaign.id}"}, 201)

    @routes.post("/relabel/campaigns/{campaign:number}/guideline")
    def amend(campaign: int, user: Manager, new: Annotated[_NewGuideline, body(_NewGuideline)]) -> JSONResponse:
        version = add_guideline(store, campaign, new.text.strip(), user)
        return JSONResponse({"version": version, "go": f"/relabel/campaign?campaign={campaign}"})

    @routes.post("/relabel/campaigns/{campaign:number}/annotators")
    def assign(campaign: int, user: Manager, new: Annotated[_Annotators, body(_Annotators)]) -> JSONResponse:
        set_annotators(store, campaign, new.ids if new.who == "chosen" else None, user)
        return JSONResponse({"go": f"/relabel/campaign?campaign={campaign}"})

    @routes.post("/relabel/campaigns/{campaign:number}/close")
    def close(campaign: int, user: Manager) -> JSONResponse:
        closed = close_campaign(store, campaign)
        return JSONResponse({"campaign": closed.id, "go": f"/relabel/campaign?campaign={closed.id}"})


def _asked(store: Store, request: Request, user: User) -> Assignment:
    """The assignment that an address names. Raises as `open_slot` does."""
    return open_slot(store, find_slot(store, request.query_params.get("slot", "")), user)


def _slot_page(store: Store, request: Request, assignment: Assignment, user: User) -> HTMLResponse:
    """The labelling page while it is open, then the submitted trace."""
    annotation = read_annotation(store, assignment.slot_id, user.id)
    if assignment.expires is not None:
        return _turn(request, "Label a trace", label_html(store, assignment, annotation, user))
    if not annotation.submitted:
        return _turn(request, "Skipped", skipped_html(assignment))
    review = read_review(store, assignment.slot_id, user)
    return _turn(request, "Submitted", review_html(assignment, annotation, review, user.id))


def _turn(request: Request, title: str, content: Markup) -> HTMLResponse:
    """A labelling page: whole for a browser, its content alone for the script that moves from trace to trace."""
    shown = content if PART in request.headers else plain_page(title, content, "Relabel")
    return HTMLResponse(shown, headers={"vary": PART, "cache-control": "no-cache"})


def _page(title: str, content: Markup) -> HTMLResponse:
    return HTMLResponse(plain_page(title, content, "Relabel"))
