"""Accepting an invitation: choosing a name, if it is open, and a password. It needs no script."""

from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request
from starlette.responses import HTMLResponse, Response

from stepsight.app.access.rights import Needs
from stepsight.app.access.rules import LOGIN
from stepsight.app.web.failures import status_of
from stepsight.app.web.html import render
from stepsight.app.web.login import enter
from stepsight.core.errors import UserError
from stepsight.storage.database.store import Store
from stepsight.storage.people.invitations import accept, find_invitation
from stepsight.storage.people.passwords import SHORTEST

INVITATION = f"{LOGIN}/invitation"

Text = Annotated[str, Form()]


def router(store: Store) -> APIRouter:
    """The page behind the link, which does not use it up, and the target of its form."""
    routes = APIRouter(include_in_schema=False)
    everybody = [Depends(Needs())]

    @routes.get(INVITATION, dependencies=everybody)
    def invitation(token: str = "") -> HTMLResponse:
        return _page(store, token)

    @routes.post(INVITATION, dependencies=everybody)
    def take(
        request: Request, token: Text = "", name: Text = "", password: Text = "", again: Text = ""
    ) -> Response:
        try:
            find_invitation(store, token)
            if password != again:
                raise UserError("The two passwords differ.", "Type both again.")
            user = accept(store, token, name, password)
        except UserError as error:
            return _page(store, token, name, error)
        return enter(request, store, user)

    return routes


def _page(store: Store, token: str, name: str = "", error: UserError | None = None) -> HTMLResponse:
    try:
        invitation = find_invitation(store, token)
    except UserError as unusable:
        error, invitation = unusable, None
    values = {"invitation": invitation, "token": token, "name": name, "shortest": SHORTEST}
    page = render("people/invitation.html", error=error or "", **values)
    return HTMLResponse(page, 200 if error is None else status_of(error))
