"""A single trace that a person saves, into a dataset made for such."""

from dataclasses import dataclass, replace

from sqlalchemy import select

from core.errors import UserError
from core.trace import Trace
from storage.names import check_name
from storage.queries import StoredTrace, find_trace
from storage.schema import DatasetRow
from storage.store import Store
from storage.writer import TraceWriter

SAVED = "saved"
"""The name of the dataset where no other is given, and the kind of every dataset of saved traces."""
_ID_LENGTH = 16


@dataclass(frozen=True)
class Saved:
    """The trace as stored, and whether it is `new` to its dataset."""

    trace: StoredTrace
    new: bool


def save_trace(store: Store, trace: Trace, dataset: str = SAVED) -> Saved:
    """Store a trace under an id of its own, made from its content: the same trace saved twice is one.

    Raises `UserError` where the name is none, or is that of a dataset which was imported: saved traces would change
    what is measured on it.
    """
    check_name(dataset, "the name of the dataset")
    named = replace(trace, id=trace.digest[:_ID_LENGTH])
    with store.write() as session:
        kind = session.scalar(select(DatasetRow.kind).where(DatasetRow.name == dataset))
        if kind not in (None, SAVED):
            raise UserError(
                f"The dataset {dataset!r} holds imported traces (kind {kind}).",
                f"Save under another name, such as {SAVED}.",
            )
        writer = TraceWriter(session, dataset, SAVED, "")
        writer.add([("the trace", named)])
        new = bool(writer.added)
    return Saved(find_trace(store, dataset, named.id), new)
