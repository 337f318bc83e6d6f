"""Downloads of the traces that match Browse's filters.

The file holds traces, judgments or, for people who manage campaigns, labels.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from stepsight.app.browse.address import Address
from stepsight.app.browse.evaluator_choice import find_choice
from stepsight.app.browse.selection import Selection
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.access import RequiresRight, Right, find_user_of, require
from stepsight.app.web.failures import whole_file
from stepsight.app.web.pages import read_query
from stepsight.core.validation import choice
from stepsight.storage.browse.browse import list_matching
from stepsight.storage.database.store import Store
from stepsight.storage.exports.table_files import (
    MEDIA_TYPES,
    TABLE_FORMATS,
    Row,
    frame_parts,
    table_parts,
    trace_lines,
)
from stepsight.storage.labelling.campaigns import list_campaigns
from stepsight.storage.labelling.consensus import LabelledTraces
from stepsight.storage.labelling.files.label_formats import COLUMNS as LABEL_COLUMNS
from stepsight.storage.labelling.files.label_formats import step_rows
from stepsight.storage.people.blindness import hidden_traces
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.report.tables import slug

PATH = "/browse/export"

CONTENTS = {
    "judgments": "Judgments",
    "outcomes": "Outcomes, a row per trace",
    "traces": "Traces",
    "labels": "Labels that people agree on",
    "annotations": "Labels of each person",
}
"""The contents of a file, as the page calls them."""

OF_PEOPLE = ("labels", "annotations")


class ExportAddress(Address):
    """The query of a download: the filters of a list, and the content to write.

    `content` is one of `CONTENTS`, and `format` is the format of a table. `by` is the key of the evaluator whose
    judgments are written; "" stands for all evaluators.
    """

    content: Annotated[str, choice(tuple(CONTENTS))] = "judgments"
    format: Annotated[str, choice(TABLE_FORMATS)] = "csv"
    by: str = ""


def contents_of(*, manages: bool) -> list[tuple[str, str]]:
    """Return the contents that a list of traces offers, with their titles. `manages` is True for a
    person who may see the labels of others."""
    return [(name, title) for name, title in CONTENTS.items() if manages or name not in OF_PEOPLE]


def router(store: Store, evaluators: Evaluators) -> APIRouter:
    """Build the route of the download."""
    routes = APIRouter(include_in_schema=False)

    @routes.get(PATH, dependencies=[Depends(RequiresRight(Right.READ))])
    def export(request: Request) -> Response:
        return _answer(store, evaluators, request)

    return routes


def _answer(store: Store, evaluators: Evaluators, request: Request) -> Response:
    address = ExportAddress.exact(read_query(request.url.query))
    dataset = find_dataset(store, address.dataset)
    # An unknown condition is an error, because nobody would notice that a file has too many traces.
    selection = Selection.exact(store, evaluators, dataset, address)
    if address.content in OF_PEOPLE:
        require(request, Right.MANAGE)
    ids = list_matching(store, dataset.id, selection.where, selection.order)
    hidden = hidden_traces(store, find_user_of(request), ids)
    ids = [trace_id for trace_id in ids if trace_id not in hidden]
    parts, format = _parts(selection, address, ids)
    extent = "" if len(ids) == dataset.traces else f"-{len(ids)}-of-{dataset.traces}"
    name = f"{slug(dataset.name)}-{address.content}{extent}.{format}"

    def write(path: Path) -> None:
        with open(path, "wb") as file:
            file.writelines(parts)

    return whole_file(write, name, MEDIA_TYPES[format])


def _parts(selection: Selection, address: ExportAddress, ids: Sequence[int]) -> tuple[Iterator[bytes], str]:
    """Return the content of the file as an iterator over chunks of bytes, and the file's format."""
    store = selection.store
    if address.content == "traces":
        return trace_lines(store, ids), "jsonl"
    if address.content == "judgments":
        evaluator_ids: list[int] | None = None
        if address.by:
            id = find_choice(selection.choices, address.by).id
            evaluator_ids = [] if id is None else [id]
        # This import loads pandas, which pages do not need.
        from stepsight.storage.exports.frames import judgment_frames

        frames = judgment_frames(store, address.dataset, ids, evaluator_ids)
        return frame_parts(frames, address.format), address.format
    if address.content == "outcomes":
        columns, outcomes = selection.outcomes(ids, address.by)
        return table_parts(columns, outcomes, address.format), address.format
    rows = label_rows(store, ids, per_annotator=address.content == "annotations")
    return table_parts(LABEL_COLUMNS, rows, address.format), address.format


def label_rows(store: Store, trace_ids: Sequence[int], *, per_annotator: bool) -> Iterator[Row]:
    """Yield the labels that these traces have in every campaign, one row per step.

    Open campaigns come first, and newer campaigns come before older ones. With `per_annotator`, the rows contain
    each annotator's labels instead of the consensus.
    """
    only = frozenset(trace_ids)
    for campaign in list_campaigns(store):
        for trace in LabelledTraces(
            store, campaign, per_annotator=per_annotator, with_gold=per_annotator, only=only
        ):
            yield from step_rows(trace, campaign.name)
