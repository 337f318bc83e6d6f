"""Annotators' trust in the labels suggested to them, measured on hidden gold items."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import select

from stepsight.storage.database.labelling_schema import EventRow
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.annotation import SUGGEST
from stepsight.storage.labelling.campaigns import Campaign
from stepsight.storage.labelling.ordering import GOLD
from stepsight.storage.labelling.results.annotations import SubmittedAnnotation, iterate_annotations
from stepsight.storage.traces.queries import StoredTrace, load_traces, traces


@dataclass(frozen=True)
class Confirmation:
    """A suggested label on a hidden gold item, and whether a person kept it.

    `kind` is `planted` for a suggestion that is wrong on purpose, and otherwise `wrong` or `right` by gold. `kept`
    is True if the submitted label has the validity of the suggested one. `item_id` identifies the trace.
    """

    user_id: int
    user: str
    item_id: int
    kind: str
    kept: bool


def read_confirmations(store: Store, campaign: Campaign) -> list[Confirmation]:
    """Return a campaign's suggestions on submitted hidden gold items, where the gold labels tell whether a
    suggestion is right. Qualifications are left out."""
    answered = [
        one for one in iterate_annotations(store, campaign.id) if one.chosen == GOLD and not one.qualification
    ]
    suggestions = select(EventRow.item_id, EventRow.user_id, EventRow.step, EventRow.new).where(
        EventRow.campaign_id == campaign.id, EventRow.kind == SUGGEST
    )
    wanted = traces({one.trace_id for one in answered})
    with store.read() as session:
        suggested = {(row.item_id, row.user_id): (row.step, row.new) for row in session.execute(suggestions)}
        stored = {trace.trace_id: trace for trace in load_traces(session, wanted)}
    found: list[Confirmation] = []
    for one in answered:
        planted, labels = suggested.get((one.item_id, one.user_id), (None, ()))
        if stored[one.trace_id].digest == one.digest:
            found.extend(_confirmations(one, stored[one.trace_id], planted, labels))
    return found


def _confirmations(
    one: SubmittedAnnotation, trace: StoredTrace, planted: int | None, suggested: Sequence[str | None]
) -> Iterator[Confirmation]:
    for step, (gold, label, said) in enumerate(zip(trace.steps, suggested, one.labels, strict=False)):
        if gold.valid is None or label is None or said is None:
            continue
        is_right = gold.valid == (label != "neg")
        kind = "planted" if step == planted else "right" if is_right else "wrong"
        kept = said != "unsure" and (said == "neg") == (label == "neg")
        yield Confirmation(one.user_id, one.user, one.item_id, kind, kept)
