"""Exporting the labels of a campaign to a file."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stepsight.core.errors import UserError, counted
from stepsight.core.files.whole_files import atomic_file
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.campaigns import find_campaign, note_export
from stepsight.storage.labelling.consensus import LabelledTraces
from stepsight.storage.labelling.files.export_events import write_events
from stepsight.storage.labelling.files.label_formats import FORMATS

EVENTS = "events"
LABEL_FORMATS = {name: format.title for name, format in FORMATS.items()} | {EVENTS: "JSON Lines: every event"}
FORMAT_NAMES = tuple(LABEL_FORMATS)


@dataclass(frozen=True)
class LabelExport:
    """The outcome of an export. `rows` is the number of rows written, and `noun` names a row. `left_out`
    counts omitted rows by reason."""

    path: str
    rows: int
    noun: str
    left_out: Mapping[str, int]

    def __str__(self) -> str:
        lines = [f"{self.path}: {counted(self.rows, self.noun)}."]
        return "\n".join(lines + [f"  not in it: {count:,} {reason}" for reason, count in self.left_out.items()])


def export_labels(
    store: Store,
    campaign: str,
    path: str | Path,
    format: str,
    *,
    per_annotator: bool = False,
    force: bool = False,
) -> LabelExport:
    """Write the labels of a campaign to a file in one of `FORMAT_NAMES`.

    The labels are the annotators' consensus (`storage.labelling.consensus`) or, with `per_annotator`, each
    annotator's own. The format `events` always contains the whole log, after which the campaign can be deleted.
    Only a few traces are held in memory at a time, and a failed export leaves no file behind.

    Raises `NotFoundError` if the campaign does not exist. Raises `UserError` if the format is unknown, if the file
    cannot be written, or if it exists and `force` is not set.
    """
    stored = find_campaign(store, campaign)
    if format == EVENTS:
        with atomic_file(path, replace=force) as partial:
            events = write_events(store, stored, partial)
        note_export(store, stored.id, events)
        return LabelExport(str(path), events, "event", {})
    if format not in FORMATS:
        raise UserError(f"There is no format {format!r}.", f"The formats are {', '.join(FORMAT_NAMES)}.")
    target = FORMATS[format]
    labelled = LabelledTraces(
        store,
        stored,
        per_annotator=per_annotator,
        with_gold=per_annotator and target.with_gold,
    )
    inexpressible: Counter[str] = Counter()
    with atomic_file(path, replace=force) as partial:
        rows = target.write(labelled, partial, stored.name, inexpressible)
    left_out = {reason: count for reason, count in (labelled.left_out + inexpressible).items() if count}
    return LabelExport(str(path), rows, "annotation" if per_annotator else "trace", left_out)
