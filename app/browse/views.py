"""Saved views: the line of links above the Browse list, and the routes of its forms, which need no script."""

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Form, Request
from markupsafe import Markup
from starlette.responses import RedirectResponse, Response

from stepsight.app.access.rights import RequiresRight, Right, user_of_request
from stepsight.app.browse.address import Address
from stepsight.app.web.html import render
from stepsight.app.web.page_query import read_query
from stepsight.storage.database.store import Store
from stepsight.storage.people.users import User
from stepsight.storage.people.views import ChangeableView, list_views, save_view
from stepsight.storage.traces.queries import find_dataset

PATH = "/browse/views"

Text = Annotated[str, Form()]


def router(store: Store) -> APIRouter:
    """Build the routes that save, rename and delete a view."""
    routes = APIRouter(include_in_schema=False)
    keeping = [Depends(RequiresRight(Right.KEEP))]

    @routes.post(PATH, dependencies=keeping)
    def keep(request: Request, name: Text = "", query: Text = "") -> Response:
        address = Address.exact(read_query(query))
        dataset = find_dataset(store, address.dataset)
        written = view_query(address.changed(dataset=dataset.name))
        save_view(store, user_of_request(request), name.strip(), dataset.name, written)
        return _to(written)

    @routes.post(f"{PATH}/{{view:number}}/rename", dependencies=keeping)
    def rename(request: Request, view: int, name: Text = "", query: Text = "") -> Response:
        ChangeableView(user_of_request(request), view).rename(store, name.strip())
        return _to(query)

    @routes.post(f"{PATH}/{{view:number}}/delete", dependencies=keeping)
    def delete(request: Request, view: int, query: Text = "") -> Response:
        user = user_of_request(request)
        ChangeableView(user, view).delete(store, user)
        return _to(query)

    return routes


def views_html(store: Store, address: Address, user: User | None, keeps: bool) -> Markup:
    """Render a user's saved views as links. With `keeps`, there are also forms to save and change views."""
    views = list_views(store, user)
    here = view_query(address)
    if not views and not keeps:
        return Markup()
    return render(
        "browse/views.html",
        views=views,
        changed=[view for view in views if keeps and view.may_change],
        here=here,
        keeps=keeps,
    )


def view_query(address: Address) -> str:
    """Return the query string that a saved view stores: the address without the page number, the open trace and the
    evaluators shown beside it."""
    return urlencode(address.query(page=1, trace=None, beside=()), doseq=True)


def _to(query: str) -> Response:
    """Redirect to the list that this query selects. The page itself reports any mistakes in the query."""
    address, _ = Address.read(read_query(query))
    return RedirectResponse(str(address.narrowed().unescape()), 303)
