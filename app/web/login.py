"""Logging in and out, and changing one's own password. The pages work without scripts."""

import re
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Form, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from stepsight.app.web.access import (
    LOGIN,
    PAGES,
    Person,
    RequiresRight,
    Right,
    Rules,
    cookie_name,
    find_user_of,
    rights_of,
    state_of,
)
from stepsight.app.web.failures import status_of
from stepsight.app.web.html import render
from stepsight.core.errors import UserError
from stepsight.storage.database.store import Store
from stepsight.storage.people.logins import (
    LimitError,
    WrongLoginError,
    check_password,
    log_in,
    log_out,
    open_login,
    user_of,
)
from stepsight.storage.people.users import LOCAL, SHORTEST, User, has_users, set_password

LOGOUT = "/logout"
PASSWORD = f"{LOGIN}/password"
# The database decides when a login ends; the cookie lasts as long as any login can.
_KEPT_SECONDS = 400 * 24 * 3600
# With a second slash or a backslash, a browser would go to a different server.
_OWN_ADDRESS = re.compile(r"/(?![/\\])[!-\[\]-~]*")

Text = Annotated[str, Form()]


def login_routes(store: Store) -> APIRouter:
    """Build the login pages and `POST /logout`."""
    routes = APIRouter(include_in_schema=False)
    everybody = [Depends(RequiresRight())]

    @routes.get(LOGIN, dependencies=everybody)
    def login(request: Request, next: str = "") -> Response:
        user = find_user_of(request)
        if user is not None and user.name != LOCAL:
            return RedirectResponse(_place(request, store, user, next), 303)
        return _login_page(next, open=has_users(store))

    @routes.post(LOGIN, dependencies=everybody)
    def begin(request: Request, name: Text = "", password: Text = "", next: Text = "") -> Response:
        try:
            token = log_in(store, name, password, _network_address(request))
        except (LimitError, WrongLoginError) as error:
            return _refuse_login(error, _login_page(next, name, error))
        user = user_of(store, token)
        return _login_response(request, _place(request, store, user, next) if user else LOGIN, token)

    @routes.post(LOGOUT, dependencies=everybody)
    def end(request: Request, next: Text = "") -> Response:
        log_out(store, request.cookies.get(cookie_name(request), ""))
        response = RedirectResponse(f"{LOGIN}?{urlencode({'next': next})}" if next else LOGIN, 303)
        response.delete_cookie(cookie_name(request), secure=_is_secure(request), httponly=True, samesite="lax")
        return response

    _add_password_page(routes, store)
    return routes


def _add_password_page(routes: APIRouter, store: Store) -> None:
    @routes.get(PASSWORD)
    def password(user: Person) -> Response:
        return _password_page(user)

    @routes.post(PASSWORD)
    def change(request: Request, user: Person, present: Text = "", new: Text = "", again: Text = "") -> Response:
        if user.name == LOCAL:
            return _password_page(user)
        try:
            if new != again:
                raise UserError("The two new passwords differ.", "Type both again.")
            # This counts like a login, so that nobody can try out passwords here.
            check_password(store, user.name, present, _network_address(request))
            set_password(store, user.name, new, lets_in=False)
        except WrongLoginError as error:
            error.message, error.hint = "The current password is wrong.", "Try again."
            return _refuse_login(error, _password_page(user, error))
        except UserError as error:
            return _refuse_login(error, _password_page(user, error))
        return enter(request, store, user)


def enter(request: Request, store: Store, user: User) -> Response:
    """Log in a user who has just proved their identity, and redirect to the first page that they may open."""
    return _login_response(request, _pages(rights_of(user, store))[0], open_login(store, user))


def _place(request: Request, store: Store, user: User, next: str) -> str:
    """Return the URL of the page to open after a login. This is the requested page `next` if it exists and the user
    may open it, or else the first page that the user may open."""
    rights = rights_of(user, store)
    rules: Rules = state_of(request)["rules"]
    rule = rules.find("GET", next.partition("?")[0]) if _OWN_ADDRESS.fullmatch(next) else None
    if rule is not None and rule.rights and rule.rights & rights:
        return next
    return _pages(rights)[0]


def _pages(rights: frozenset[Right]) -> list[str]:
    """Return the paths of the pages that may be opened with these rights, in the order of `PAGES`."""
    return [page.path for page in PAGES if page.right in rights]


def _login_response(request: Request, place: str, token: str) -> Response:
    response = RedirectResponse(place, 303)
    response.set_cookie(
        cookie_name(request),
        token,
        max_age=_KEPT_SECONDS,
        secure=_is_secure(request),
        httponly=True,
        samesite="lax",
    )
    return response


def _refuse_login(error: UserError, response: HTMLResponse) -> HTMLResponse:
    response.status_code = 401 if isinstance(error, WrongLoginError) else status_of(error)
    if isinstance(error, LimitError):
        response.status_code = 429
        response.headers["retry-after"] = str(error.seconds)
    return response


def _is_secure(request: Request) -> bool:
    """True if the browser asked by HTTPS. A chain of proxies states the scheme of each hop, the browser's first,
    and uvicorn reads a single one. Somebody who forges the header only keeps their own cookie from HTTP."""
    stated = request.headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower()
    return "https" in (request.url.scheme, stated)


def _network_address(request: Request) -> str:
    return request.client.host if request.client else ""


def _login_page(next: str, name: str = "", error: UserError | None = None, *, open: bool = True) -> HTMLResponse:
    """Render the login form. If nobody can log in (`open` is False), the page says how to create a user."""
    return HTMLResponse(render("login/login.html", next=next, name=name, error=error or "", open=open))


def _password_page(user: User, error: UserError | None = None) -> HTMLResponse:
    name = user.name if user.name != LOCAL else ""
    return HTMLResponse(render("login/password.html", name=name, shortest=SHORTEST, error=error or ""))
