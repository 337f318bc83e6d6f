"""Previewing an upload before it is stored: its first traces and the bad rows near its beginning."""

import time
from dataclasses import dataclass, replace

from stepsight.core.errors import UserError
from stepsight.core.trace import Trace
from stepsight.storage.database.store import Store
from stepsight.storage.importers import read_traces
from stepsight.storage.importers.column_mapping import NAME as COLUMNS
from stepsight.storage.importers.column_mapping import ColumnMap
from stepsight.storage.importers.recognition import Finding, Holds, find_reader, kind_of, recognise
from stepsight.storage.jobs.uploads import Upload, UploadSource, read_beginning
from stepsight.storage.judgments.score_files import datasets_of, outputs_of, read_scores
from stepsight.storage.traces.queries import list_datasets

SHOWN_TRACES = 2
SHOWN_BAD = 20
# The longest time for a preview; the import itself reads the whole file before it stores anything.
_SECONDS = 2.0


class _EnoughError(Exception):
    """Raised to end a preview when its time is up."""


@dataclass(frozen=True)
class Preview:
    """A preview of an upload, read as `finding` describes it.

    `good` and `bad` count the examined rows that can and cannot be imported. `faults` lists the first bad rows by
    place and error. `whole` is True if all rows were examined. `traces` are the first traces. `outputs` is the kind
    of scores in a score file. `error` says why the file cannot be imported at all, or is None. `stored` is the name
    of the dataset that the same file has already been imported into, or "". `notes` are sentences about
    what is left out of the rows.
    """

    upload: Upload
    finding: Finding
    traces: tuple[Trace, ...] = ()
    outputs: str = ""
    good: int = 0
    bad: int = 0
    faults: tuple[tuple[str, UserError], ...] = ()
    whole: bool = True
    error: UserError | None = None
    stored: str = ""
    notes: tuple[str, ...] = ()

    @property
    def can_be_added(self) -> bool:
        return self.error is None and self.good > 0


def preview(store: Store, upload: Upload, kind: str = "", columns: ColumnMap | None = None) -> Preview:
    """Preview a complete upload. If `kind` or `columns` is given, it replaces the one suggested for the file.
    Raises `UserError` if the content of the upload cannot be recognised."""
    source, beginning = UploadSource(store, upload), read_beginning(store, upload.id)
    finding = recognise(beginning, source, upload.name, upload.sha256)
    if finding.holds == Holds.SCORES:
        return _preview_scores(store, Preview(upload, finding), source)
    if finding.holds == Holds.LABELS:
        return _preview_labels(Preview(upload, finding), source, beginning)
    if kind:
        finding = replace(finding, kind=kind)
    if columns is not None:
        finding = replace(finding, columns=columns)
    shown = Preview(upload, finding, stored=_stored(store, upload))
    if finding.kind == COLUMNS and not (finding.columns and finding.columns.problem and finding.columns.steps):
        return replace(shown, error=UserError("Say which columns hold the problem and the steps."))
    return _preview_traces(shown, source, beginning)


def _preview_traces(shown: Preview, source: UploadSource, beginning: bytes) -> Preview:
    faults: list[tuple[str, UserError]] = []
    traces: list[Trace] = []
    bad = good = 0
    until = time.monotonic() + _SECONDS
    name = shown.upload.name

    def note(where: str, error: UserError, content: bytes) -> None:
        nonlocal bad
        bad += 1
        if time.monotonic() > until:
            raise _EnoughError
        if len(faults) < SHOWN_BAD:
            faults.append((where.removeprefix(f"{name} "), error))

    whole, error, kind = True, None, None
    try:
        kind = kind_of(shown.finding.kind, shown.finding.columns, beginning)
        for _, trace in read_traces(kind, source, name, note):
            good += 1
            if len(traces) < SHOWN_TRACES:
                traces.append(trace)
            if time.monotonic() > until:
                raise _EnoughError
    except _EnoughError:
        whole = False
    except UserError as fault:
        error = fault
    notes = kind.notes() if kind else ()
    shown = replace(shown, traces=tuple(traces), good=good, bad=bad, faults=tuple(faults))
    return replace(shown, whole=whole, error=error, notes=notes)


def _preview_labels(shown: Preview, source: UploadSource, beginning: bytes) -> Preview:
    until, good, whole = time.monotonic() + _SECONDS, 0, True
    try:
        for _ in find_reader(beginning)(source, shown.upload.name):
            good += 1
            if time.monotonic() > until:
                whole = False
                break
    except UserError as fault:
        return replace(shown, error=fault)
    return replace(shown, good=good, whole=whole)


def _preview_scores(store: Store, shown: Preview, source: UploadSource) -> Preview:
    try:
        rows, _ = read_scores(source, shown.upload.name)
        outputs = outputs_of(rows)
        if not shown.finding.dataset:
            fitting = datasets_of(store, rows)
            shown = replace(shown, finding=replace(shown.finding, dataset=fitting[0] if len(fitting) == 1 else ""))
    except UserError as fault:
        return replace(shown, error=fault)
    return replace(shown, outputs=outputs.value, good=len(rows))


def _stored(store: Store, upload: Upload) -> str:
    return next((one.name for one in list_datasets(store) if one.sha256 == upload.sha256), "")
