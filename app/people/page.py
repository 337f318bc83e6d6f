"""The People page for admins: accounts, their roles, and invitations by link. It works without a script.

The first admin has to be created on the command line. Once there is an admin, everybody has to log in, even on this
machine. This decision is left to somebody who controls the machine, rather than anybody who can reach one of its
ports.
"""

from collections.abc import Callable
from shlex import quote
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request
from markupsafe import Markup
from starlette.responses import HTMLResponse, RedirectResponse, Response

from stepsight.app.web.access import LOGIN, Manager, RequiresRight
from stepsight.app.web.failures import status_of
from stepsight.app.web.html import plain_page, render
from stepsight.app.web.login import enter
from stepsight.app.web.pages import read_number
from stepsight.core.errors import UserError
from stepsight.storage.database.store import ConflictError, NotFoundError, Store
from stepsight.storage.labelling.campaigns import list_campaigns
from stepsight.storage.people.logins import (
    INVITATION_LASTS,
    accept,
    find_invitation,
    invite,
    invite_to_reset,
    list_invitations,
    revoke,
)
from stepsight.storage.people.users import (
    LOCAL,
    SHORTEST,
    Role,
    User,
    end_user,
    has_users,
    list_people,
    list_users,
    reactivate_user,
    set_role,
)

PATH = "/people"
INVITATION = f"{LOGIN}/invitation"

Text = Annotated[str, Form()]


def router(store: Store) -> APIRouter:
    """Build the routes of the page and its forms."""
    routes = APIRouter(include_in_schema=False)

    @routes.get(PATH)
    def people(user: Manager) -> HTMLResponse:
        return _page(store, user)

    @routes.post(f"{PATH}/invitations")
    def invitation(
        request: Request, user: Manager, name: Text = "", role: Text = "", campaign: Text = ""
    ) -> Response:
        def make() -> str:
            campaign_id = read_number({"campaign": campaign}, "campaign") if campaign else None
            return invite(store, _role(role), name.strip() or None, user, campaign_id)

        return _with_link(store, request, user, make)

    @routes.post(f"{PATH}/invitations/{{invitation:number}}/revoke")
    def take_back(invitation: int, user: Manager) -> Response:
        return _apply(store, user, lambda: revoke(store, invitation))

    @routes.post(f"{PATH}/users/{{person:number}}/role")
    def change_role(person: int, user: Manager, role: Text = "") -> Response:
        return _apply(store, user, lambda: set_role(store, _name(store, person), _role(role), keep_admin=True))

    @routes.post(f"{PATH}/users/{{person:number}}/deactivate")
    def deactivate(person: int, user: Manager) -> Response:
        return _apply(store, user, lambda: end_user(store, _name(store, person), keep_admin=True))

    @routes.post(f"{PATH}/users/{{person:number}}/reactivate")
    def reactivate(person: int, user: Manager) -> Response:
        return _apply(store, user, lambda: reactivate_user(store, _name(store, person)))

    @routes.post(f"{PATH}/users/{{person:number}}/reset")
    def reset(request: Request, person: int, user: Manager) -> Response:
        return _with_link(store, request, user, lambda: invite_to_reset(store, _name(store, person), user))

    everybody = [Depends(RequiresRight())]

    @routes.get(INVITATION, dependencies=everybody)
    def invited(token: str = "") -> HTMLResponse:
        return _invitation_page(store, token)

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
            return _invitation_page(store, token, name, error)
        return enter(request, store, user)

    return routes


def _apply(store: Store, user: User, change: Callable[[], object]) -> Response:
    """Apply a change and redirect to the People page. If the change fails, return the page with the error."""
    try:
        _check_users(store)
        change()
    except UserError as error:
        return _page(store, user, error=error)
    return RedirectResponse(PATH, 303)


def _with_link(store: Store, request: Request, user: User, make: Callable[[], str]) -> Response:
    """Create an invitation link and return the page that shows it. The link is never shown again."""
    try:
        _check_users(store)
        link = f"{str(request.base_url).rstrip('/')}{INVITATION}?token={make()}"
    except UserError as error:
        return _page(store, user, error=error)
    return _page(store, user, link=link)


def _check_users(store: Store) -> None:
    if not has_users(store):
        raise ConflictError("There are no users yet.", "Add an admin: stepsight user add NAME --role admin")


def _role(word: str) -> Role:
    if word not in list(Role):
        raise UserError(f"The role is {word!r:.40}.", f"Expected {', '.join(Role)}.")
    return Role(word)


def _name(store: Store, person: int) -> str:
    name = next((user.name for user in list_users(store) if user.id == person), None)
    if name is None:
        raise NotFoundError(f"There is no user {person}.")
    return name


def _page(store: Store, user: User, link: str = "", error: UserError | None = None) -> HTMLResponse:
    body: Markup = render(
        "people/page.html",
        user=user,
        open=has_users(store),
        store=quote(store.name),
        people=[person for person in list_people(store) if person.user.name != LOCAL],
        invitations=list_invitations(store),
        roles=[(role.value, role.value) for role in Role],
        campaigns=[
            (str(campaign.id), campaign.name if campaign.restricted else f"{campaign.name} (everybody may label)")
            for campaign in list_campaigns(store)
            if campaign.closed is None
        ],
        link=link,
        days=INVITATION_LASTS.days,
        error=error or "",
    )
    return HTMLResponse(plain_page("People", body, "People"), 200 if error is None else status_of(error))


def _invitation_page(store: Store, token: str, name: str = "", error: UserError | None = None) -> HTMLResponse:
    try:
        invitation = find_invitation(store, token)
    except UserError as unusable:
        error, invitation = unusable, None
    values = {"invitation": invitation, "token": token, "name": name, "shortest": SHORTEST}
    page = render("people/invitation.html", error=error or "", **values)
    return HTMLResponse(page, 200 if error is None else status_of(error))
