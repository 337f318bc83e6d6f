"""Previewing an upload before it is stored: its first traces and the bad rows near its beginning."""

from dataclasses import dataclass, fields, replace

from stepsight.core.errors import UserError
from stepsight.storage.database.store import Store
from stepsight.storage.importers.column_mapping import ColumnMap
from stepsight.storage.importers.recognition import Holds
from stepsight.storage.jobs.reading import Reading, read_upload
from stepsight.storage.jobs.uploads import Upload, UploadSource
from stepsight.storage.judgments.score_files import datasets_of, read_scores
from stepsight.storage.traces.queries import list_datasets

# Of larger score files, the dataset that they fit is not looked for, since that holds their rows in memory.
_MOST_BYTES, _MOST_ROWS = 30_000_000, 100_000


@dataclass(frozen=True, kw_only=True)
class Preview(Reading):
    """A preview of an upload. `stored` is the name of the dataset that the same file was imported into, or ""."""

    upload: Upload
    stored: str = ""

    @property
    def can_be_added(self) -> bool:
        return self.error is None and self.good > 0


def preview(store: Store, upload: Upload, kind: str = "", columns: ColumnMap | None = None) -> Preview:
    """Preview a complete upload. If `kind` or `columns` is given, it replaces the one suggested for the file.
    Raises `UserError` if the content of the upload cannot be recognised."""
    source = UploadSource(store, upload)
    shown = read_upload(source, kind, columns)
    if shown.finding.holds == Holds.SCORES:
        shown = _with_dataset(store, shown, source)
    stored = _stored(store, upload) if shown.finding.holds == Holds.TRACES else ""
    found = {field.name: getattr(shown, field.name) for field in fields(shown)}
    return Preview(**found, upload=upload, stored=stored)


def _with_dataset(store: Store, shown: Reading, source: UploadSource) -> Reading:
    """Suggest the dataset that scores fit, if there is one alone."""
    if shown.finding.dataset or shown.error or shown.good > _MOST_ROWS or shown.size > _MOST_BYTES:
        return shown
    try:
        fitting = datasets_of(store, read_scores(source, source.name)[0])
    except UserError as fault:
        return replace(shown, error=fault)
    return replace(shown, finding=replace(shown.finding, dataset=fitting[0] if len(fitting) == 1 else ""))


def _stored(store: Store, upload: Upload) -> str:
    return next((one.name for one in list_datasets(store) if one.sha256 == upload.sha256), "")
