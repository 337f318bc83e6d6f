"""The address of the page on which disagreements are decided, and what it sends.

`POST /relabel/adjudicate/decisions` takes `{campaign, item, step, label, reason, key, after}`, `step` 0-based,
`label` neg, neu, pos or null and `after` the decision that the page showed, and answers
`{item, step, label, reason, moment}` once the decision is stored.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, JSONResponse

from app.relabel.adjudication import AdjudicationAddress, adjudication_html, choose_html, read_address
from app.relabel.sent import Fields, choice, text, whole
from app.web.frame import plain_page
from app.web.page_address import read_query
from app.web.rights import Right, require
from core.label import LABEL_NAMES
from storage.labelling.decisions import decide
from storage.people.users import User
from storage.store import Store


def _adjudicator(request: Request) -> User:
    return require(request, Right.ADJUDICATE)


Adjudicator = Annotated[User, Depends(_adjudicator)]


def router(store: Store) -> APIRouter:
    """The page and its route. They raise `UserError`, which the application answers."""
    routes = APIRouter(include_in_schema=False)

    @routes.get(AdjudicationAddress.PATH)
    def adjudicate(request: Request, user: Adjudicator) -> HTMLResponse:
        address = read_address(read_query(request.url.query))
        body = adjudication_html(store, address, user) if address.campaign else choose_html(store)
        return HTMLResponse(plain_page("Adjudicate", body, "Relabel"))

    @routes.post(f"{AdjudicationAddress.PATH}/decisions")
    def add_decision(user: Adjudicator, fields: Fields) -> JSONResponse:
        made = decide(
            store,
            whole(fields, "campaign"),
            whole(fields, "item"),
            whole(fields, "step"),
            choice(fields, "label", (*LABEL_NAMES, None)),
            text(fields, "reason"),
            user,
            text(fields, "key"),
            whole(fields, "after"),
        )
        told: dict[str, Any] = {name: getattr(made, name) for name in ("item_id", "step", "label", "reason")}
        return JSONResponse({"item": told.pop("item_id"), **told, "moment": made.moment.isoformat()})

    return routes
