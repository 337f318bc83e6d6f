"""Disputes of a benchmark's labels: the list, a single dispute with its discussion, and the form to file a dispute.

`/annotate/disputes` lists disputes, filtered by its query, and `/annotate/disputes/NUMBER` shows a dispute.
`/annotate/dispute?trace=12&step=3` is the form for a step, counted from 1. The trace can also be given as
`dataset=NAME&id=ID` instead of its number in the store. `proposed` and `reason` fill in the form. People who may
not see gold labels at the moment see only disputes about traces that they have labelled.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from markupsafe import Markup
from pydantic import AfterValidator

from stepsight.app.markup.text import MARKS
from stepsight.app.web.access import Annotator, RequiresRight, Right, find_user_of, has_right, user_of_request
from stepsight.app.web.html import plain_page, render
from stepsight.app.web.pages import Number, PageNumber, PageQuery, body, read_query
from stepsight.core.errors import UserError
from stepsight.core.files.label_patch import GOLD_VALUES, format_patch
from stepsight.core.trace import check_text
from stepsight.core.validation import Model, choice
from stepsight.storage.database.labelling_schema import Dispute
from stepsight.storage.database.store import ForbiddenError, Store
from stepsight.storage.labelling.annotation import LONGEST, Count
from stepsight.storage.labelling.disputes import (
    FILE,
    DisputeFilter,
    DisputeState,
    add_entry,
    count_disputes,
    disputed_datasets,
    get_dispute,
    gold_values,
    list_disputes,
    make_patch,
    open_dispute,
    possible_states,
)
from stepsight.storage.people.blindness import check_traces, hidden_traces, is_unblinded
from stepsight.storage.people.users import User
from stepsight.storage.traces.queries import StoredTrace, find_dataset, find_trace, get_trace

PER_PAGE = 50
_VERBS = {
    DisputeState.ACCEPTED: "Accept",
    DisputeState.REJECTED: "Reject",
    DisputeState.WITHDRAWN: "Withdraw",
    DisputeState.OPEN: "Reopen",
}


class DisputesAddress(PageQuery):
    """The query of the list of disputes. `trace` is the number of the disputed trace in the store."""

    PATH: ClassVar[str] = "/annotate/disputes"

    dataset: Annotated[str, AfterValidator(lambda name: name and check_text(name, "the dataset"))] = ""
    state: Annotated[str, choice(tuple(DisputeState))] = ""
    trace: Number = 0
    page: PageNumber = 1

    @property
    def active(self) -> bool:
        """True if any parameter differs from its default."""
        return self != DisputesAddress()

    def filter(self, unblinded_for: User | None) -> DisputeFilter:
        state = DisputeState(self.state) if self.state else None
        return DisputeFilter(self.dataset, state, self.trace or None, unblinded_for)


class DisputeAddress(PageQuery):
    """The query of the form for filing a dispute: a step, counted from 1, and its trace. The trace is given by its
    number in the store, `trace`, or by its `dataset` and `id`. `proposed` and `reason` pre-fill the form."""

    PATH: ClassVar[str] = "/annotate/dispute"

    trace: Number = 0
    dataset: str = ""
    id: str = ""
    step: PageNumber = 1
    proposed: Annotated[str, choice(tuple(filter(None, GOLD_VALUES)))] = ""
    reason: str = ""

    def find(self, store: Store) -> StoredTrace:
        """Return the trace that the query names. Raises `NotFoundError` if the trace does not exist."""
        return find_trace(store, self.dataset, self.id) if not self.trace else get_trace(store, self.trace)


class _NewDispute(Model):
    trace: Count
    step: Count
    digest: str = ""
    proposed: Annotated[str, choice(tuple(filter(None, GOLD_VALUES)))] | None
    reason: str = ""


class _NewEntry(Model):
    text: str = ""
    state: Annotated[str, choice(("", *DisputeState))] = ""


def gold_value(value: str | None) -> str:
    """Return a current or proposed gold label preceded by its mark, or `unlabelled` if it is None."""
    return f"{MARKS[value]} {value}" if value else "unlabelled"


def list_html(
    store: Store, address: DisputesAddress, disputes: Sequence[Dispute], unblinded_for: User | None
) -> Markup:
    """Render a page of the list of disputes. If `disputes` holds one more dispute than fits on a page, the page
    links to the next one. `unblinded_for` means the same as in `DisputeFilter`."""
    counts = count_disputes(store, address.filter(unblinded_for))
    accepted = address.dataset and count_disputes(store, DisputeFilter(address.dataset))[DisputeState.ACCEPTED]
    patch = DisputesAddress(dataset=address.dataset).url(f"{DisputesAddress.PATH}/patch")
    return render(
        "annotate/disputes.html",
        address=address,
        disputes=disputes[:PER_PAGE],
        more=len(disputes) > PER_PAGE,
        datasets=[("", "all"), *((name, name) for name in disputed_datasets(store, unblinded_for))],
        states=[
            ("", "all", sum(counts.values())),
            *((state.value, state.value, counts[state]) for state in DisputeState),
        ],
        # Only people who may see all disputes see this count.
        patch=patch if accepted and unblinded_for is None else "",
    )


def dispute_html(store: Store, dispute: Dispute, user: User | None, *, labels: bool) -> Markup:
    """Render a dispute with its discussion. If `labels` is True, the user may add to the discussion."""
    trace = get_trace(store, dispute.trace_id)
    return render(
        "annotate/dispute.html",
        dispute=dispute,
        trace=trace,
        others=DisputesAddress(trace=dispute.trace_id).url(),
        labels=labels and user is not None,
        actions=[(state, _VERBS[state]) for state in possible_states(dispute, user)] if user else [],
        own=user is not None and user.id == dispute.user_id and dispute.others_decide,
        longest_reason=LONGEST,
    )


def form_html(store: Store, address: DisputeAddress, trace: StoredTrace) -> Markup:
    """Render the form for disputing a step's gold label. Raises `UserError` if the trace has no such step."""
    if not 1 <= address.step <= len(trace.steps):
        raise UserError(f"There is no step {address.step}: the trace has {len(trace.steps)}.", "Check the address.")
    number = address.step - 1
    gold = trace.steps[number].gold
    earlier = list_disputes(store, DisputeFilter(trace_id=trace.trace_id))
    return render(
        "annotate/new_dispute.html",
        trace=trace,
        number=number,
        gold=gold,
        values=[value for value in gold_values(store, trace.dataset_id) if value != gold],
        earlier=[dispute for dispute in earlier if dispute.step == number],
        proposed=address.proposed,
        reason=address.reason[:LONGEST],
        longest_reason=LONGEST,
    )


def router(store: Store) -> APIRouter:
    """Build the routes of the dispute pages and forms. The application turns any `UserError` that they raise into a
    response."""
    routes = APIRouter(include_in_schema=False)
    _add_pages(routes, store)
    _add_posts(routes, store)
    return routes


def _add_pages(routes: APIRouter, store: Store) -> None:
    seeing = [Depends(RequiresRight(Right.READ, Right.LABEL))]

    @routes.get(DisputesAddress.PATH, dependencies=seeing)
    def disputes(request: Request) -> HTMLResponse:
        address = DisputesAddress.exact(read_query(request.url.query))
        unblinded_for = None if has_right(request, Right.READ) else user_of_request(request)
        start = (address.page - 1) * PER_PAGE
        shown = list_disputes(store, address.filter(unblinded_for), start, PER_PAGE + 1)
        hidden = hidden_traces(store, find_user_of(request), [dispute.trace_id for dispute in shown])
        shown = [dispute for dispute in shown if dispute.trace_id not in hidden]
        return _page("Disputes", list_html(store, address, shown, unblinded_for))

    @routes.get(f"{DisputesAddress.PATH}/patch", dependencies=[Depends(RequiresRight(Right.READ))])
    def patch(request: Request, dataset: str = "") -> Response:
        stored = find_dataset(store, dataset)
        accepted = list_disputes(store, DisputeFilter(dataset=stored.name, state=DisputeState.ACCEPTED))
        check_traces(store, find_user_of(request), *(dispute.trace_id for dispute in accepted))
        patch, _ = make_patch(store, stored, name=FILE)
        headers = {"content-disposition": f'attachment; filename="{FILE}"'}
        return Response(format_patch(patch), media_type="application/json", headers=headers)

    @routes.get(f"{DisputesAddress.PATH}/{{number:number}}", dependencies=seeing)
    def dispute(request: Request, number: int) -> HTMLResponse:
        dispute = get_dispute(store, number)
        _check_unblinded(store, request, dispute.trace_id)
        labels = has_right(request, Right.LABEL)
        return _page(f"Dispute {number}", dispute_html(store, dispute, find_user_of(request), labels=labels))

    @routes.get(DisputeAddress.PATH)
    def form(request: Request, user: Annotator) -> HTMLResponse:
        address = DisputeAddress.exact(read_query(request.url.query))
        trace = address.find(store)
        _check_unblinded(store, request, trace.trace_id)
        return _page("Dispute a label", form_html(store, address, trace))


def _add_posts(routes: APIRouter, store: Store) -> None:
    @routes.post(DisputesAddress.PATH)
    def file(request: Request, user: Annotator, new: Annotated[_NewDispute, body(_NewDispute)]) -> JSONResponse:
        _check_unblinded(store, request, new.trace)
        dispute = open_dispute(store, new.trace, new.step, new.proposed, new.reason, user, new.digest or None)
        return _dispute_response(dispute, 201)

    @routes.post(f"{DisputesAddress.PATH}/{{number:number}}/entries")
    def add(
        request: Request, number: int, user: Annotator, new: Annotated[_NewEntry, body(_NewEntry)]
    ) -> JSONResponse:
        _check_unblinded(store, request, get_dispute(store, number).trace_id)
        state = DisputeState(new.state) if new.state else None
        return _dispute_response(add_entry(store, number, user, new.text, state), 200)


def _check_unblinded(store: Store, request: Request, trace_id: int) -> None:
    """Raise `ForbiddenError` unless the user may see the gold label, which a dispute reveals."""
    if has_right(request, Right.READ):
        check_traces(store, find_user_of(request), trace_id)
    elif not is_unblinded(store, user_of_request(request), trace_id):
        raise ForbiddenError("The gold of this trace is hidden while a blind campaign is open.", "Label it first.")


def _dispute_response(dispute: Dispute, status: int) -> JSONResponse:
    go = f"{DisputesAddress.PATH}/{dispute.id}"
    return JSONResponse({"dispute": dispute.id, "state": dispute.state, "go": go}, status)


def _page(title: str, content: Markup) -> HTMLResponse:
    return HTMLResponse(plain_page(title, content, "Annotate"))
