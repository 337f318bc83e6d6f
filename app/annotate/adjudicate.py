"""`/annotate/adjudicate`: deciding the steps on which annotators disagree, one trace at a time.

Annotators are shown as letters instead of names. The letters are reassigned for every trace, so that no annotator
can be followed from one trace to the next. Submission times are hidden too.

`POST /annotate/adjudicate/decisions` takes `{campaign, item, step, label, reason, key, after}` and answers
`{item, step, label, reason, moment}` once the decision is stored. `step` counts from 0, and `label` is neg, neu,
pos or null. `reason` may be "" only if the decision is the majority's label. `after` is the decision that the
page showed.
"""

from collections.abc import Sequence
from string import ascii_uppercase
from typing import Annotated, Any, ClassVar, Literal

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse
from markupsafe import Markup

from stepsight.app.annotate.campaigns import choose_html, links_of
from stepsight.app.annotate.label import DECISION_KEYS, ERROR_NAMES, formula, script_keys
from stepsight.app.web.access import Adjudicator
from stepsight.app.web.html import plain_page, render
from stepsight.app.web.pages import Number, PageQuery, body, read_query
from stepsight.core.trace import find_answer
from stepsight.core.validation import Model
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.adjudication import (
    Adjudication,
    AnnotatedItem,
    Decision,
    decide,
    past_decisions,
    read_adjudication,
)
from stepsight.storage.labelling.annotation import LONGEST, Count, Key
from stepsight.storage.labelling.campaigns import get_campaign, guideline_text
from stepsight.storage.labelling.submissions import SubmittedAnnotation, vote
from stepsight.storage.people.blindness import hidden_traces, shuffle_people
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
    """Pair each annotation of an item with a letter, in an order that reveals nothing about the authors. The
    letters are A to Z for the first 26, then A2 to Z2, and so on."""
    by_person = {annotation.user_id: annotation for annotation in annotations}
    lettered = []
    for number, user_id in enumerate(shuffle_people(store, by_person, "item", item_id)):
        more, place = divmod(number, len(ascii_uppercase))
        lettered.append((f"{ascii_uppercase[place]}{more + 1 if more else ''}", by_person[user_id]))
    return lettered


def adjudication_html(store: Store, address: AdjudicationAddress, user: User) -> Markup:
    """Render the page on which `user` adjudicates a campaign, without the traces that are hidden from them. Raises
    `NotFoundError` if the campaign does not exist."""
    campaign = get_campaign(store, address.campaign)
    items = read_adjudication(store, campaign.id).items
    hidden = hidden_traces(store, user, [item.item.trace_id for item in items])
    adjudication = Adjudication(tuple(item for item in items if item.item.trace_id not in hidden))
    named = adjudication.find(address.item) if address.item else None
    shown = named or adjudication.next_open() or next(iter(adjudication.items), None)
    missed = bool(address.item) and named is None
    return render(
        "annotate/adjudicate.html",
        campaign=campaign,
        links=links_of(store, user),
        adjudication=adjudication,
        hidden=len(items) - len(adjudication.items),
        guideline_text=guideline_text(store, campaign.id),
        script_keys=script_keys(DECISION_KEYS),
        message="Nobody disagrees on that trace; here is the next one." if missed else "",
        **({"trace": None} if shown is None else _item(store, shown, user)),
        **({} if shown is None else _neighbours(campaign.id, adjudication, shown)),
    )


def _item(store: Store, item: AnnotatedItem, user: User) -> dict[str, Any]:
    """Return the template's variables for a trace and the disagreements on its steps."""
    trace, item_id = get_trace(store, item.item.trace_id), item.item.id
    changed = trace.digest != item.item.digest
    past: dict[int, list[Decision]] = {}
    for decision in past_decisions(store, item_id):
        past.setdefault(decision.step, []).append(decision)
    rows = []
    for number in range(0 if changed else len(trace.steps)):
        labels = [annotation.labels[number] for annotation in item.annotations]
        rows.append(
            {
                "number": number,
                "disagreed": number in item.disagreed,
                "decisions": past.get(number, []),
                "majority": vote(labels)[0],
                "agreed": next((label for label in labels if label is not None), None),
            }
        )
    return {
        "trace": trace,
        "answer": formula(find_answer(trace.meta)),
        "item": item_id,
        "changed": changed,
        "own": any(annotation.user_id == user.id for annotation in item.annotations),
        "annotations": with_letters(store, item_id, item.annotations),
        "rows": rows,
        "keys": DECISION_KEYS,
        "error_names": ERROR_NAMES,
        "longest_reason": LONGEST,
    }


def _neighbours(campaign_id: int, adjudication: Adjudication, shown: AnnotatedItem) -> dict[str, Any]:
    """Return the template's variables for moving between traces: links to the neighbours of a trace, and its
    position."""
    ids = [item.item.id for item in adjudication.items]
    place = ids.index(shown.item.id)
    urls = [AdjudicationAddress(campaign=campaign_id, item=item_id).url() for item_id in ids]
    following = None if shown.undecided else adjudication.next_open(shown.item.id)
    return {
        "place": place + 1,
        "places": len(ids),
        "previous": urls[place - 1] if place else "",
        "next": urls[place + 1] if place + 1 < len(ids) else "",
        "onward": urls[ids.index(following.item.id)] if following else "",
        "finished": not shown.undecided and following is None,
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
