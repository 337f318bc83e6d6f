"""`/relabel/adjudicate`: the steps on which annotators disagree, to be decided trace by trace without their names.

A trace's answers are told apart by letters, which are dealt out anew for every trace, so that nobody can be
followed from one to the next; when they were given is not told either.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from string import ascii_uppercase
from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, JSONResponse

from stepsight.app.relabel.adjudicate_step import agreed_html, disagreed_html
from stepsight.app.relabel.campaign_summary import counted, guideline_html, terms_html
from stepsight.app.relabel.forms import Fields, choice, text, whole
from stepsight.app.web.frame import plain_page
from stepsight.app.web.judged import notice_html
from stepsight.app.web.page_address import PageAddress, Query, number_reader, read_query
from stepsight.app.web.rights import Right, require
from stepsight.app.web.text import text_html
from stepsight.core.errors import UserError
from stepsight.core.label import LABEL_NAMES
from stepsight.core.trace import Step
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.campaigns import Campaign, get_campaign, guideline_text, list_campaigns
from stepsight.storage.labelling.results.answers import SubmittedAnnotation
from stepsight.storage.labelling.results.decisions import decide, past_decisions
from stepsight.storage.labelling.results.disagreements import Adjudication, Disagreement, read_adjudication
from stepsight.storage.people.exposures import LABELS, note_exposure
from stepsight.storage.people.users import User
from stepsight.storage.traces.queries import StoredTrace, get_trace

_LEAD = """Steps on which two people gave different labels, or somebody was unsure. Who is behind a letter changes
from trace to trace. What they said stays; a decision can be changed by another one."""
_NONE = '<p class="hint">There is no campaign yet.</p>'


@dataclass(frozen=True)
class AdjudicationAddress(PageAddress):
    """What the query asks for: a `campaign`, and one of its items, both by id; 0 is the next undecided one."""

    PATH: ClassVar[str] = "/relabel/adjudicate"

    campaign: int = 0
    item: int = 0


def read_address(query: Query) -> AdjudicationAddress:
    """The address that a query spells. Raises `UserError` where a part makes no sense."""
    readers = {"campaign": number_reader("campaign"), "item": number_reader("item")}
    address, problems = AdjudicationAddress.spelled(query, readers)
    if problems:
        raise UserError(problems[0])
    return address


def letters(
    campaign: Campaign, item_id: int, annotations: Sequence[SubmittedAnnotation]
) -> list[tuple[str, SubmittedAnnotation]]:
    """The answers of an item in an order that tells nothing of who gave them, each with its letter."""

    def place(annotation: SubmittedAnnotation) -> bytes:
        return hashlib.sha256(f"{campaign.seed} {campaign.id} {item_id} {annotation.user_id}".encode()).digest()

    return [(_letter(number), annotation) for number, annotation in enumerate(sorted(annotations, key=place))]


def _letter(number: int) -> str:
    """A to Z, then A2 to Z2 and so on."""
    more, place = divmod(number, len(ascii_uppercase))
    return f"{ascii_uppercase[place]}{more + 1 if more else ''}"


def choose_html(store: Store) -> str:
    """The page where no campaign is named."""
    rows = "".join(
        f'<li><a href="{AdjudicationAddress(one.id).url()}">{escape(one.name)}</a>, {terms_html(one)}</li>'
        for one in list_campaigns(store)
    )
    return f"<h1>Adjudicate</h1>{f'<ul>{rows}</ul>' if rows else _NONE}"


def adjudication_html(store: Store, address: AdjudicationAddress, user: User) -> str:
    """The page of a campaign as `user` sees it. Raises `NotFoundError`."""
    campaign = get_campaign(store, address.campaign)
    found = read_adjudication(store, campaign.id)
    shown = found.find(address.item) if address.item else None
    notice = "Nobody disagrees on that trace; here is the next one." if address.item and shown is None else ""
    shown = shown or found.next_open() or next(iter(found.disagreements), None)
    if shown is None:
        body = '<p class="hint">Nobody disagrees on any step that was submitted so far.</p>'
    else:
        note_exposure(store, user.id, [shown.trace_id], LABELS)
        body = _AdjudicationView(store, campaign, found, shown, user).html()
    name, text = escape(campaign.name), guideline_text(store, campaign.id)
    return f"""<div id="adjudicate" data-campaign="{campaign.id}">
<p class="pager"><a href="/relabel">Campaigns</a></p>
<h1>Adjudicate: {name}</h1><p class="lead">{_LEAD}</p>
<details class="guideline">{guideline_html(campaign.guideline, text)}</details>
{notice_html(notice)}{_progress(found)}{body}</div>"""


def _progress(found: Adjudication) -> str:
    if not found.steps:
        return ""
    said = f"{found.decided:,} of {counted(found.steps, 'step')} decided"
    return f"""<div class="progress"><div class="meter" role="img" aria-label="{said}"><i
 style="width:{100 * found.decided / found.steps:.1f}%"></i></div><span class="n">{said}</span></div>"""


class _AdjudicationView:
    """One trace with its disagreements."""

    def __init__(
        self, store: Store, campaign: Campaign, found: Adjudication, shown: Disagreement, user: User
    ) -> None:
        self.campaign = campaign
        self.found = found
        self.shown = shown
        self.user = user
        self.trace: StoredTrace = get_trace(store, shown.trace_id)
        self.past = past_decisions(store, shown.item_id)

    def html(self) -> str:
        head = f'{self._pager()}<p class="q">{text_html(self.trace.problem)}</p>'
        if self.trace.digest != self.shown.digest:
            told = "The trace has changed since it was labelled, so that nothing of it can be decided."
            return f"{head}{notice_html(told)}"
        steps = "".join(self._step(number, step) for number, step in enumerate(self.trace.steps))
        return (
            f"""{head}{self._about()}<ol class="steps" data-item="{self.shown.item_id}">{steps}</ol>{self._end()}"""
        )

    def _pager(self) -> str:
        items = [one.item_id for one in self.found.disagreements]
        place = items.index(self.shown.item_id)
        before = self._link(items[place - 1], "Previous", "prev") if place else ""
        after = self._link(items[place + 1], "Next", "next") if place + 1 < len(items) else ""
        where = f"trace {place + 1:,} of {len(items):,} with disagreements"
        return f"""<p class="pager">{before}<span class="place">{where}</span>{after}
<span class="keys"><kbd>1</kbd> <kbd>2</kbd> <kbd>3</kbd> <kbd>0</kbd> decide <kbd>?</kbd> all keys</span></p>"""

    def _link(self, item: int, text: str, rel: str) -> str:
        return f'<a href="{AdjudicationAddress(self.campaign.id, item).url()}" rel="{rel}">{text}</a>'

    def _about(self) -> str:
        """What qualifies the answers as a whole."""
        there = len(self.shown.annotations)
        told = [f"{counted(there, 'answer')} of {self.campaign.overlap:,}"]
        if any(annotation.user_id == self.user.id for annotation in self.shown.annotations):
            told.append("one of them is yours, which a decision of yours will tell")
        flags = [
            f"{letter} flagged the problem: {text_html(annotation.flag)}"
            for letter, annotation in self._said()
            if annotation.flag
        ]
        return f'<p class="hint">{"; ".join(told)}.</p>' + "".join(
            f'<p class="flagged">{flag}</p>' for flag in flags
        )

    def _said(self) -> list[tuple[str, SubmittedAnnotation]]:
        return letters(self.campaign, self.shown.item_id, self.shown.annotations)

    def _step(self, number: int, step: Step) -> str:
        if number not in self.shown.steps:
            return agreed_html(number, step, self.shown.annotations)
        made = [decision for decision in self.past if decision.step == number]
        return disagreed_html(number, step, self._said(), made)

    def _end(self) -> str:
        """Where to go once all of it is decided."""
        if self.shown.undecided(self.found.decisions):
            return ""
        following = self.found.next_open(self.shown.item_id)
        if following is None:
            return '<p class="end" role="status">Every step of this campaign is decided.</p>'
        url = AdjudicationAddress(self.campaign.id, following.item_id).url()
        return f"""<p class="end"><span role="status">This trace is decided.</span>
<a class="button primary onward" href="{url}">Next trace</a></p>"""


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
