"""The addresses of the pages to label on, and what their forms send."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from stepsight.app.relabel.campaign import campaign_html
from stepsight.app.relabel.campaign_list import list_html
from stepsight.app.relabel.campaign_new import form_html, read_plan
from stepsight.app.relabel.campaign_summary import guideline_html
from stepsight.app.relabel.forms import Fields, text
from stepsight.app.relabel.label import labelling_html, steps_html
from stepsight.app.relabel.review import ended_html, review_html
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.frame import plain_page
from stepsight.app.web.page_address import number_reader, read_query
from stepsight.app.web.rights import Right, require, user_of_request
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.campaigns import (
    Campaign,
    add_guideline,
    close_campaign,
    create_campaign,
    get_campaign,
    guideline_text,
)
from stepsight.storage.labelling.comparison import read_review
from stepsight.storage.labelling.progress import campaign_progress
from stepsight.storage.labelling.queue import Assignment, assign_next, open_slot
from stepsight.storage.labelling.record import read_annotation
from stepsight.storage.people.users import User

LIST = "/relabel"
LABEL = "/relabel/label"


def _annotator(request: Request) -> User:
    return require(request, Right.LABEL)


def _manager(request: Request) -> User:
    return require(request, Right.MANAGE)


Annotator = Annotated[User, Depends(_annotator)]
Manager = Annotated[User, Depends(_manager)]


def pages(store: Store, evaluators: Evaluators) -> APIRouter:
    """The pages. They raise `UserError`, which the application answers."""
    routes = APIRouter(include_in_schema=False)
    _add_labelling(routes, store)
    _add_management(routes, store, evaluators)

    @routes.get(LIST)
    def campaigns(request: Request) -> HTMLResponse:
        return _page("Relabel", list_html(store, user_of_request(request)))

    return routes


def _add_labelling(routes: APIRouter, store: Store) -> None:
    @routes.get(LABEL)
    def label(request: Request, user: Annotator) -> Response:
        if "slot" in request.query_params:
            return _slot_page(store, open_slot(store, _number(request, "slot"), user), user)
        task = assign_next(store, _number(request, "campaign"), user)
        if task is None:
            return _page("Nothing left", _none_left(store, get_campaign(store, _number(request, "campaign")), user))
        return RedirectResponse(f"{LABEL}?slot={task.slot_id}", 303)

    @routes.get(f"{LABEL}/steps")
    def steps(request: Request, user: Annotator) -> HTMLResponse:
        task = open_slot(store, _number(request, "slot"), user)
        annotation = read_annotation(store, task.slot_id, user.id)
        return HTMLResponse(steps_html(store, task, annotation, user, _number(request, "from")))

    @routes.get(f"{LABEL}/guideline")
    def guideline(request: Request, user: Annotator) -> HTMLResponse:
        campaign = get_campaign(store, _number(request, "campaign"))
        return HTMLResponse(guideline_html(campaign.guideline, guideline_text(store, campaign.id)))


def _add_management(routes: APIRouter, store: Store, evaluators: Evaluators) -> None:
    @routes.get("/relabel/new")
    def new(request: Request, user: Manager) -> HTMLResponse:
        return _page("New campaign", form_html(store, evaluators, read_query(request.url.query)))

    @routes.get("/relabel/campaign")
    def campaign(request: Request, user: Manager) -> HTMLResponse:
        return _page("Campaign", campaign_html(store, _number(request, "campaign"), user))

    @routes.post("/relabel/campaigns")
    def create(user: Manager, fields: Fields) -> JSONResponse:
        made = create_campaign(store, read_plan(store, evaluators, fields), user)
        return JSONResponse({"campaign": made.id, "go": f"/relabel/campaign?campaign={made.id}"}, 201)

    @routes.post("/relabel/campaigns/{campaign:int}/guideline")
    def amend(campaign: int, user: Manager, fields: Fields) -> JSONResponse:
        version = add_guideline(store, campaign, text(fields, "text").strip(), user)
        return JSONResponse({"version": version, "go": f"/relabel/campaign?campaign={campaign}"})

    @routes.post("/relabel/campaigns/{campaign:int}/close")
    def close(campaign: int, user: Manager) -> JSONResponse:
        closed = close_campaign(store, campaign)
        return JSONResponse({"campaign": closed.id, "go": f"/relabel/campaign?campaign={closed.id}"})


def _slot_page(store: Store, task: Assignment, user: User) -> HTMLResponse:
    """Labelling while it goes on, then what was submitted."""
    annotation = read_annotation(store, task.slot_id, user.id)
    if task.expires is not None:
        return _page("Label", labelling_html(store, task, annotation, user))
    if not annotation.submitted:
        return _page("Skipped", ended_html(task))
    return _page("Submitted", review_html(task, annotation, read_review(store, task.slot_id, user), user.id))


def _none_left(store: Store, campaign: Campaign, user: User) -> str:
    found = campaign_progress(store, campaign.id, user.id)
    open_ones = found.submitted < found.slots
    later = " Traces that others have may come back; look again later." if open_ones else ""
    return f"""<h1>Nothing is left for you</h1><p class="lead">You have submitted {found.mine:,}; there is no other
trace for you in this campaign now.{later}</p>
<p class="out"><a class="button primary" href="{LIST}">Campaigns</a></p>"""


def _number(request: Request, name: str) -> int:
    """A number of the query. Raises `UserError`."""
    found = number_reader(name)(request.query_params.get(name, ""))
    assert isinstance(found, int)
    return found


def _page(title: str, body: str) -> HTMLResponse:
    return HTMLResponse(plain_page(title, body, "Relabel"))
