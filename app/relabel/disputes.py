"""Disputes of a benchmark's labels: all of them, one with its discussion, and the form that files one.

`/relabel/disputes` lists them under conditions, `/relabel/disputes/NUMBER` shows one, and
`/relabel/dispute?trace=12&step=3` is the form for a step, which counts from 1; in place of the trace's number in
the store, `dataset=NAME&id=ID` names it. Who may not see gold for now sees disputes of traces that they have
labelled.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Annotated, ClassVar

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

from stepsight.app.relabel.adjudicate_step import INERT
from stepsight.app.relabel.campaign_summary import counted
from stepsight.app.relabel.forms import Fields, choice, text, whole
from stepsight.app.relabel.label import texts_html
from stepsight.app.web.frame import plain_page
from stepsight.app.web.judged import notice_html
from stepsight.app.web.page_address import PageAddress, Query, Reader, choice_reader, number_reader, read_query
from stepsight.app.web.rights import Right, find_user_of, has_right, require, user_of_request
from stepsight.app.web.text import text_html
from stepsight.core.errors import UserError
from stepsight.core.patch import GOLD_VALUES, VALID, format_patch, gold_of
from stepsight.core.trace import check_text
from stepsight.storage.database.store import ForbiddenError, Store
from stepsight.storage.labelling.annotation import LONGEST
from stepsight.storage.labelling.comparison import is_unblinded
from stepsight.storage.labelling.disputes import (
    Dispute,
    DisputeEntry,
    DisputeFilter,
    DisputeState,
    add_entry,
    count_disputes,
    disputed_datasets,
    get_dispute,
    gold_values,
    list_disputes,
    open_dispute,
)
from stepsight.storage.labelling.patches import make_patch
from stepsight.storage.people.exposures import GOLD, note_exposure
from stepsight.storage.people.users import User
from stepsight.storage.traces.queries import StoredTrace, find_dataset, find_trace, get_trace

PER_PAGE = 50
_MARKS = {"neg": "✕", "neu": "○", "pos": "✓", VALID: "✓"}
_LEAD = "The benchmark is wrong here: what people propose, and what became of it. Its own labels stay as they are."
_EXPORT = """Accepted ones make a label patch, with which figures stand beside those of the benchmark’s own labels:
<code>stepsight evaluate --dataset {name} --patch FILE</code>."""
_ACTS = {
    DisputeState.ACCEPTED: "Accept",
    DisputeState.REJECTED: "Reject",
    DisputeState.WITHDRAWN: "Withdraw",
    DisputeState.OPEN: "Open again",
}


@dataclass(frozen=True)
class DisputesAddress(PageAddress):
    """What the list shows: disputes of a `dataset`, in a `state`, of a `trace` by its number in the store."""

    PATH: ClassVar[str] = "/relabel/disputes"

    dataset: str = ""
    state: str = ""
    trace: int = 0
    page: int = 1

    def which(self, seen_by: int | None) -> DisputeFilter:
        return DisputeFilter(
            self.dataset, DisputeState(self.state) if self.state else None, self.trace or None, seen_by
        )


@dataclass(frozen=True)
class DisputeAddress(PageAddress):
    """What the form is for: a `step`, from 1, of a `trace` by its number in the store, or by `dataset` and `id`."""

    PATH: ClassVar[str] = "/relabel/dispute"

    trace: int = 0
    dataset: str = ""
    id: str = ""
    step: int = 1

    def find(self, store: Store) -> StoredTrace:
        """The trace. Raises `NotFoundError`."""
        return find_trace(store, self.dataset, self.id) if not self.trace else get_trace(store, self.trace)


def read_list_address(query: Query) -> DisputesAddress:
    """The address that a query spells. Raises `UserError` where a part makes no sense."""
    readers: dict[str, Reader] = {
        "dataset": partial(check_text, what="the dataset"),
        "state": choice_reader("state", list(DisputeState)),
        "trace": number_reader("trace"),
        "page": number_reader("page", least=1),
    }
    address, problems = DisputesAddress.spelled(query, readers)
    if problems:
        raise UserError(problems[0])
    return address


def read_form_address(query: Query) -> DisputeAddress:
    """The address that a query spells. Raises `UserError` where a part makes no sense."""
    readers = {"trace": number_reader("trace"), "step": number_reader("step", least=1)}
    address, problems = DisputeAddress.spelled(query, readers)
    if problems:
        raise UserError(problems[0])
    return address


def said_html(said: str | None) -> str:
    """What the gold says of a step, or should say."""
    return f"{_MARKS[said]} {said}" if said else "unlabelled"


def listed(store: Store, address: DisputesAddress, seen_by: int | None) -> list[Dispute]:
    """The disputes that a page of the list shows, and one more where there is a further page."""
    return list_disputes(store, address.which(seen_by), (address.page - 1) * PER_PAGE, PER_PAGE + 1)


def list_html(store: Store, address: DisputesAddress, found: Sequence[Dispute], seen_by: int | None) -> str:
    """The page of a list of disputes; `seen_by` as in `DisputeFilter`."""
    rows = "".join(_row(dispute) for dispute in found[:PER_PAGE])
    table = f"""<table class="table"><thead><tr>
<th scope="col">No.</th><th scope="col">Trace</th>
<th scope="col">Benchmark</th><th scope="col">Should say</th><th scope="col">State</th><th scope="col">Filed</th>
</tr></thead><tbody>{rows}</tbody></table>"""
    shown = table if rows else f'<p class="hint empty">{_nothing(address)}</p>'
    return f"""<div id="disputes"><p class="pager"><a href="/relabel">Campaigns</a></p><h1>Disputes</h1>
<p class="lead">{_LEAD}</p>{_filters(store, address, seen_by)}{shown}{_pager(address, len(found))}
{_patch(store, address, seen_by)}</div>"""


def _nothing(address: DisputesAddress) -> str:
    if address != DisputesAddress():
        return "There is no such dispute."
    return 'There is no dispute yet. One is filed beside a step of a trace in <a href="/browse">Browse</a>.'


def _row(dispute: Dispute) -> str:
    entries = f", {counted(len(dispute.entries), 'entry', 'entries')}" if dispute.entries else ""
    url = f"{DisputesAddress.PATH}/{dispute.id}"
    name = f"{escape(dispute.dataset)} · {escape(dispute.trace)}, step {dispute.step + 1}"
    changed = " · trace changed" if dispute.changed else ""
    return f"""<tr><th scope="row"><a href="{url}">{dispute.id}</a></th><td><a href="{url}">{name}</a></td>
<td>{said_html(dispute.gold)}</td><td>{said_html(dispute.proposed)}</td>
<td><span class="state {dispute.state}">{dispute.state}</span>{changed}</td>
<td>{escape(dispute.user)}, {dispute.moment:%Y-%m-%d}{entries}</td></tr>"""


def _filters(store: Store, address: DisputesAddress, seen_by: int | None) -> str:
    counts = count_disputes(store, address.which(seen_by))
    kinds = [("", "all", sum(counts.values())), *((one.value, one.value, counts[one]) for one in DisputeState)]
    links = "".join(
        f'<a class="chip" href="{address.url(state=value, page=1)}"'
        f"{' aria-current=true' if address.state == value else ''}>{name} ({count:,})</a>"
        for value, name, count in kinds
    )
    options = "".join(
        f'<option value="{escape(name)}"{" selected" if name == address.dataset else ""}>{escape(name)}</option>'
        for name in disputed_datasets(store, seen_by)
    )
    kept = f'<input type="hidden" name="state" value="{escape(address.state)}">' if address.state else ""
    trace = f'<a class="chip" href="{address.url(trace=0)}">one trace ✕</a>' if address.trace else ""
    return f"""<form class="choose" action="{address.PATH}"><label>Dataset <select name="dataset">
<option value="">all</option>{options}</select></label>{kept}<button class="button">Show</button></form>
<nav class="states" aria-label="State">{links}{trace}</nav>"""


def _pager(address: DisputesAddress, shown: int) -> str:
    before = f'<a href="{address.url(page=address.page - 1)}">Previous</a>' if address.page > 1 else ""
    after = f'<a href="{address.url(page=address.page + 1)}">Next</a>' if shown > PER_PAGE else ""
    return f'<p class="pager">{before}{after}</p>' if before or after else ""


def _patch(store: Store, address: DisputesAddress, seen_by: int | None) -> str:
    """Where the label patch of the dataset is, for who may see all of it."""
    accepted = (
        count_disputes(store, DisputeFilter(address.dataset))[DisputeState.ACCEPTED] if address.dataset else 0
    )
    if not accepted or seen_by is not None:
        return ""
    url = DisputesAddress(dataset=address.dataset).url(f"{DisputesAddress.PATH}/patch")
    return f"""<p class="hint">{_EXPORT.format(name=escape(address.dataset))}</p>
<p><a class="button" href="{url}" download>Label patch</a></p>"""


def dispute_html(store: Store, dispute: Dispute, user: User | None, *, labels: bool) -> str:
    """One dispute with its discussion; with `labels` the user may add to it."""
    trace = get_trace(store, dispute.trace_id)
    step = trace.steps[dispute.step] if dispute.step < len(trace.steps) else None
    title = f"{escape(dispute.dataset)} · {escape(dispute.trace)}, step {dispute.step + 1}"
    changed = "The trace has changed since this was filed; it goes into no label patch." if dispute.changed else ""
    entries = "".join(map(_entry, dispute.entries))
    others = DisputesAddress(trace=dispute.trace_id).url()
    return f"""<div id="disputes"><p class="pager"><a href="/relabel/disputes">Disputes</a>
<a href="/browse?trace={dispute.trace_id}">The trace in Browse</a><a href="{others}">Disputes of this trace</a></p>
<h1>Dispute {dispute.id}</h1><p class="lead">{title} <span class="state {dispute.state}">{dispute.state}</span></p>
{notice_html(changed)}<p class="q">{text_html(trace.problem)}</p>
<div class="card disputed">{texts_html(dispute.step, step) if step else ""}<p class="proposal">
<span>The benchmark says <strong>{said_html(dispute.gold)}</strong></span>
<span>It should say <strong>{said_html(dispute.proposed)}</strong></span></p></div>
<ol class="entries"><li><p>{text_html(dispute.reason)}</p>{_by(dispute.user, dispute.moment)}</li>{entries}</ol>
{_forms(dispute, user) if user is not None and labels else ""}</div>"""


def _entry(entry: DisputeEntry) -> str:
    state = f'<p><span class="state {entry.state}">{entry.state}</span></p>' if entry.state else ""
    text = f"<p>{text_html(entry.text)}</p>" if entry.text else ""
    return f"<li>{state}{text}{_by(entry.user, entry.moment)}</li>"


def _by(user: str, moment: object) -> str:
    return f'<p class="hint">{escape(user)}, {moment:%Y-%m-%d %H:%M}</p>'


def _forms(dispute: Dispute, user: User) -> str:
    buttons = "".join(
        f'<button class="button" name="state" value="{state.value}">{_ACTS[state]}</button>'
        for state in dispute.possible(user)
    )
    return f"""<form class="fields" {INERT} data-post="{DisputesAddress.PATH}/{dispute.id}/entries">
<label class="wide">Say something <textarea name="text" rows="3" maxlength="{LONGEST}"></textarea></label>
<div class="told"></div><p class="row"><button class="button primary" name="state" value="">Add</button>{buttons}
</p></form>"""


def form_html(store: Store, address: DisputeAddress, trace: StoredTrace) -> str:
    """The form that files a dispute of a step. Raises `UserError` where the trace has no such step."""
    if not 1 <= address.step <= len(trace.steps):
        raise UserError(f"There is no step {address.step}: the trace has {len(trace.steps)}.", "Check the address.")
    step = trace.steps[address.step - 1]
    gold = gold_of(step)
    choices = "".join(
        f'<label class="choice"><input type="radio" name="proposed" value="{word or ""}" required> '
        f"{said_html(word)}</label>"
        for word in gold_values(store, trace.dataset_id)
        if word != gold
    )
    known = list_disputes(store, DisputeFilter(trace_id=trace.trace_id))
    there = "".join(
        f'<li><a href="{DisputesAddress.PATH}/{one.id}">Dispute {one.id}</a>: {said_html(one.proposed)},'
        f" {one.state}</li>"
        for one in known
        if one.step == address.step - 1
    )
    before = f'<h2>Filed already</h2><ul class="known">{there}</ul>' if there else ""
    return f"""<div id="disputes"><p class="pager"><a href="/relabel/disputes">Disputes</a>
<a href="/browse?trace={trace.trace_id}">The trace in Browse</a></p><h1>Dispute a label</h1>
<p class="lead">{escape(trace.dataset)} · {escape(trace.id)}, step {address.step}</p>
<p class="q">{text_html(trace.problem)}</p><div class="card disputed">{texts_html(address.step - 1, step)}
<p class="proposal"><span>The benchmark says <strong>{said_html(gold)}</strong></span></p></div>{before}
<form class="fields" {INERT} data-post="{DisputesAddress.PATH}" data-trace="{trace.trace_id}"
data-step="{address.step - 1}" data-digest="{trace.digest}">
<fieldset><legend>It should say</legend>{choices}</fieldset>
<label class="wide">Why <textarea name="reason" rows="4" required maxlength="{LONGEST}"></textarea></label>
<div class="told"></div><p><button class="button primary">File the dispute</button></p></form></div>"""


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
        accepted = list_disputes(store, DisputeFilter(dataset=found.name, state=DisputeState.ACCEPTED))
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
        said = choice(fields, "proposed", GOLD_VALUES)
        digest = text(fields, "digest") or None
        made = open_dispute(store, trace_id, whole(fields, "step"), said, text(fields, "reason"), user, digest)
        return _told(made, 201)

    @routes.post(f"{DisputesAddress.PATH}/{{number:int}}/entries")
    def add(request: Request, number: int, user: Annotator, fields: Fields) -> JSONResponse:
        _check_sight(store, request, get_dispute(store, number).trace_id)
        state = choice({"state": ""} | dict(fields), "state", ("", *DisputeState)) or None
        said = text(fields, "text")
        return _told(add_entry(store, number, user, said, DisputeState(state) if state else None), 200)


def _check_sight(store: Store, request: Request, trace_id: int) -> None:
    """A dispute tells the gold: only who may see it gets further, which is noted where the trace is to be labelled.
    Raises `ForbiddenError`."""
    if has_right(request, Right.READ):
        _note(store, request, trace_id)
    elif not is_unblinded(store, user_of_request(request).id, trace_id):
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
