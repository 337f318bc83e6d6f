"""Downloading the labels of a campaign as a file, for its manager."""

from typing import Annotated, ClassVar

from fastapi import APIRouter, Request
from sqlalchemy import select
from starlette.responses import Response

from stepsight.app.access.rights import Manager
from stepsight.app.web.page_query import Number, PageQuery, read_query
from stepsight.app.web.whole_file import whole_file
from stepsight.core.validation import choice
from stepsight.storage.database.labelling_schema import ItemRow, SlotRow
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.campaigns import get_campaign
from stepsight.storage.labelling.files.export_labels import EVENTS, FORMAT_NAMES, export_labels
from stepsight.storage.people.blindness import check_traces
from stepsight.training.report.tables import slug

_ENDINGS = {"csv": "csv", "label-studio": "json", "argilla": "json"}


class LabelsAddress(PageQuery):
    """The query of the download: the id of a campaign and the format of the file. With `each`, the file has a row
    for each person."""

    PATH: ClassVar[str] = "/annotate/export"

    campaign: Number = 0
    format: Annotated[str, choice(FORMAT_NAMES)] = "jsonl"
    each: Annotated[str, choice(("1",))] = ""


def router(store: Store) -> APIRouter:
    """Build the route of the download. The application turns any `UserError` that it raises into a response."""
    routes = APIRouter(include_in_schema=False)

    @routes.get(LabelsAddress.PATH)
    def export(request: Request, user: Manager) -> Response:
        address = LabelsAddress.exact(read_query(request.url.query))
        campaign = get_campaign(store, address.campaign)
        others = (SlotRow.campaign_id == campaign.id, SlotRow.state == "submitted", SlotRow.user_id != user.id)
        with store.read() as session:
            labelled = select(ItemRow.trace_id).join(SlotRow, SlotRow.item_id == ItemRow.id).where(*others)
            trace_ids = session.scalars(labelled).all()
        check_traces(store, user, *trace_ids)
        # A format that cannot express the labels fails only at the end.
        return whole_file(
            lambda path: export_labels(
                store, campaign.name, path, address.format, per_annotator=bool(address.each)
            ),
            _name(campaign.name, address),
        )

    return routes


def _name(campaign: str, address: LabelsAddress) -> str:
    each = "-by-person" if address.each and address.format != EVENTS else ""
    return f"{slug(campaign)}-labels-{address.format}{each}.{_ENDINGS.get(address.format, 'jsonl')}"
