"""`/annotate/adjudicate`: deciding the steps on which annotators disagree, one trace at a time.

Annotators are shown as letters instead of names. The letters are reassigned for every trace, so that no annotator
can be followed from one trace to the next. Submission times are hidden too.

`POST /annotate/adjudicate/decisions` takes `{campaign, item, step, label, reason, key, after}` and answers
`{item, step, label, reason, moment}` once the decision is stored. `step` counts from 0, and `label` is neg, neu,
pos or null. `reason` may be "" only if the decision is the majority's label. `after` is the decision that the
page showed.
"""

from collections.abc import Sequence
from dataclasses import replace
from string import ascii_uppercase
from typing import Annotated, Any, ClassVar, Literal

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse
from markupsafe import Markup

from stepsight.app.access.rights import Adjudicator
from stepsight.app.annotate.campaigns import choose_html
from stepsight.app.annotate.label import DECISION_KEYS, ERROR_NAMES, formula, script_keys
from stepsight.app.web.html import plain_page, render
from stepsight.app.web.pages import Number, PageQuery, body, read_query
from stepsight.core.trace import Trace, find_answer
from stepsight.core.validation import Model
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.annotation import LONGEST, Count, Key
from stepsight.storage.labelling.campaigns import get_campaign, guideline_text
from stepsight.storage.labelling.results.adjudication import (
    Adjudication,
    Decision,
    Disagreement,
    decide,
    past_decisions,
    read_adjudication,
)
from stepsight.storage.labelling.results.annotations import SubmittedAnnotation, vote
from stepsight.storage.people.blindness import hidden_traces
from stepsight.storage.people.server_secret import shuffle_people
from stepsight.storage.people.users import User
from stepsight.storage.traces.queries import get_trace


class AdjudicationAddress(PageQuery):
    """The query of the page: the id of a campaign, and the id of one of its items. If `item` is 0, the page shows
    the next undecided item.
    """

    PATH: ClassVar[str] = "/annotate/adjudicate"

    campaign: Number = 0
    item: Number = 0


class _NewDecision(Model):
    campaign: Count
    item: Count
    step: Count
    label: Literal["neg", "neu", "pos"] | None
    reason: str = ""
    key: Key
    after: Count


def with_letters(
    store: Store, item_id: int, annotations: Sequence[SubmittedAnnotation]
) -> list[tuple[str, SubmittedAnnotation]]:
    """Pair each annotation of an item with a letter, in an order that reveals nothing about the authors."""
    by_person = {annotation.user_id: annotation for annotation in annotations}
    order = shuffle_people(store, by_person, "item", item_id)
    return [(_letter(number), by_person[user_id]) for number, user_id in enumerate(order)]


def _letter(number: int) -> str:
    """Return the letter for a number counted from 0: A to Z for the first 26, then A2 to Z2, and so on."""
    more, place = divmod(number, len(ascii_uppercase))
    return f"{ascii_uppercase[place]}{more + 1 if more else ''}"


def adjudication_html(store: Store, address: AdjudicationAddress, user: User) -> Markup:
    """Render the page on which `user` adjudicates a campaign. Raises `NotFoundError` if the campaign does not
    exist."""
    campaign = get_campaign(store, address.campaign)
    adjudication = _visible_to(store, campaign.id, user)
    asked = adjudication.find(address.item) if address.item else None
    shown = asked or adjudication.next_open() or next(iter(adjudication.disagreements), None)
    missed = bool(address.item) and asked is None
    return render(
        "annotate/adjudicate.html",
        campaign=campaign,
        adjudication=adjudication,
        guideline_text=guideline_text(store, campaign.id),
        script_keys=script_keys(DECISION_KEYS),
        message="Nobody disagrees on that trace; here is the next one." if missed else "",
        **({"trace": None} if shown is None else _disagreement(store, address, adjudication, shown, user)),
    )


def _visible_to(store: Store, campaign_id: int, user: User) -> Adjudication:
    """Return the state of a campaign's adjudication without the traces that are hidden from `user`."""
    adjudication = read_adjudication(store, campaign_id)
    hidden = hidden_traces(store, user, [one.trace_id for one in adjudication.disagreements])
    visible = tuple(one for one in adjudication.disagreements if one.trace_id not in hidden)
    return replace(adjudication, disagreements=visible)


def _disagreement(
    store: Store, address: AdjudicationAddress, adjudication: Adjudication, shown: Disagreement, user: User
) -> dict[str, Any]:
    """Return the template's variables for a trace and the disagreements on its steps."""
    trace = get_trace(store, shown.trace_id)
    numbers = range(len(trace.steps) if trace.digest == shown.digest else 0)
    return {
        "answer": formula(find_answer(trace.meta)),
        "item": shown.item_id,
        "changed": trace.digest != shown.digest,
        "own": any(annotation.user_id == user.id for annotation in shown.annotations),
        **_steps(store, trace, shown, numbers),
        **_neighbours(address.campaign, adjudication, shown),
    }


def _steps(store: Store, trace: Trace, shown: Disagreement, numbers: range) -> dict[str, Any]:
    """Return the template's variables for the steps of a trace."""
    past: dict[int, list[Decision]] = {}
    for decision in past_decisions(store, shown.item_id):
        past.setdefault(decision.step, []).append(decision)
    disagreed = set(shown.steps)
    return {
        "trace": trace,
        "annotations": with_letters(store, shown.item_id, shown.annotations),
        "rows": [
            {"number": number, "disagreed": number in disagreed, "decisions": past.get(number, [])}
            | _row(trace, shown, number)
            for number in numbers
        ],
        "keys": DECISION_KEYS,
        "error_names": ERROR_NAMES,
        "longest_reason": LONGEST,
    }


def _row(trace: Trace, shown: Disagreement, number: int) -> dict[str, Any]:
    labels = [annotation.labels[number] for annotation in shown.annotations]
    return {
        "majority": vote(labels)[0],
        "agreed": next((label for label in labels if label is not None), None),
    }


def _neighbours(campaign_id: int, adjudication: Adjudication, shown: Disagreement) -> dict[str, Any]:
    """Return the template's variables for moving between traces: links to the neighbours of a trace, and its
    position."""
    items = [one.item_id for one in adjudication.disagreements]
    place = items.index(shown.item_id)
    urls = [AdjudicationAddress(campaign=campaign_id, item=item).url() for item in items]
    decided = not shown.undecided(adjudication.decisions)
    following = adjudication.next_open(shown.item_id) if decided else None
    return {
        "place": place + 1,
        "places": len(items),
        "previous": urls[place - 1] if place else "",
        "next": urls[place + 1] if place + 1 < len(items) else "",
        "onward": urls[items.index(following.item_id)] if following else "",
        "finished": decided and following is None,
    }


def router(store: Store) -> APIRouter:
    """Build the routes of the page and of its decisions. The application turns any `UserError` that they raise into
    a response."""
    routes = APIRouter(include_in_schema=False)

    @routes.get(AdjudicationAddress.PATH)
    def adjudicate(request: Request, user: Adjudicator) -> HTMLResponse:
        address = AdjudicationAddress.exact(read_query(request.url.query))
        if address.campaign:
            content = adjudication_html(store, address, user)
        else:
            content = choose_html(store, "Adjudicate", AdjudicationAddress.PATH)
        return HTMLResponse(plain_page("Adjudicate", content, "Annotate"))

    @routes.post(f"{AdjudicationAddress.PATH}/decisions")
    def add_decision(user: Adjudicator, new: Annotated[_NewDecision, body(_NewDecision)]) -> JSONResponse:
        about = (new.campaign, new.item, new.step, new.label, new.reason)
        decision = decide(store, *about, user, new.key, new.after)
        return JSONResponse(
            {
                "item": decision.item_id,
                "step": decision.step,
                "label": decision.label,
                "reason": decision.reason,
                "moment": decision.moment.isoformat(),
            }
        )

    return routes
