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
from typing import ClassVar

from app.relabel.campaign_view import counted
from app.relabel.disagreement_view import INERT
from app.relabel.labelling import texts_html
from app.view import notice_html
from app.web.page_address import PageAddress, Query, Reader, choice_reader, number_reader
from app.web.text import text_html
from core.errors import UserError
from core.patch import VALID, gold_of
from core.trace import check_text
from storage.labelling.disputes import (
    Dispute,
    Entry,
    State,
    Which,
    count_disputes,
    disputed_datasets,
    list_disputes,
)
from storage.labelling.golds import sayable
from storage.labelling.reasons import LONGEST
from storage.people.users import User
from storage.queries import StoredTrace, find_trace, get_trace
from storage.store import Store

PER_PAGE = 50
_MARKS = {"neg": "✕", "neu": "○", "pos": "✓", VALID: "✓"}
_LEAD = "The benchmark is wrong here: what people propose, and what became of it. Its own labels stay as they are."
_EXPORT = """Accepted ones make a label patch, with which figures stand beside those of the benchmark’s own labels:
<code>stepsight evaluate --dataset {name} --patch FILE</code>."""
_ACTS = {
    State.ACCEPTED: "Accept",
    State.REJECTED: "Reject",
    State.WITHDRAWN: "Withdraw",
    State.OPEN: "Open again",
}


@dataclass(frozen=True)
class DisputesAddress(PageAddress):
    """What the list shows: disputes of a `dataset`, in a `state`, of a `trace` by its number in the store."""

    PATH: ClassVar[str] = "/relabel/disputes"

    dataset: str = ""
    state: str = ""
    trace: int = 0
    page: int = 1

    def which(self, seen_by: int | None) -> Which:
        return Which(self.dataset, State(self.state) if self.state else None, self.trace or None, seen_by)


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
        "state": choice_reader("state", list(State)),
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
    """The page of a list of disputes; `seen_by` as in `Which`."""
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
    kinds = [("", "all", sum(counts.values())), *((one.value, one.value, counts[one]) for one in State)]
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
    accepted = count_disputes(store, Which(address.dataset))[State.ACCEPTED] if address.dataset else 0
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


def _entry(entry: Entry) -> str:
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
        for word in sayable(store, trace.dataset_id)
        if word != gold
    )
    known = list_disputes(store, Which(trace_id=trace.trace_id))
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
