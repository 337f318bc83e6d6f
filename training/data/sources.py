"""Reading traces from an origin: a generator, files, or a dataset in the store.

The `record` of a reading suffices to tell whether a different run used the same data, and reveals nothing about the
machine.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from stepsight.core.errors import UserError, located
from stepsight.core.files.jsonl import open_input
from stepsight.core.paths import data_files, portable_name
from stepsight.core.trace import Trace
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.importers import find_kind, parse_row
from stepsight.storage.importers.column_mapping import columns_kind
from stepsight.storage.importers.rows.fields import text
from stepsight.storage.importers.rows.kind import FileKind, Row, Rows, json_rows
from stepsight.storage.labelling.campaigns import Campaign, find_campaign, list_campaigns
from stepsight.storage.labelling.consensus import LabelledTraces
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from stepsight.training.data.sources_config import DRILLS, GENERATED, RELABEL, STORE, TraceOrigin
from stepsight.training.synth import drills
from stepsight.training.synth.corpus import generate

T = TypeVar("T")


class SourceReading(Generic[T]):
    """A source that is read again on every iteration. `record` describes the last complete iteration.

    `read` yields what the source holds, and completes the record, which begins with `start`.
    """

    def __init__(self, start: dict[str, Any], read: Callable[[dict[str, Any]], Iterator[T]]) -> None:
        self.record = dict(start)
        self._start, self._read = start, read

    def __iter__(self) -> Iterator[T]:
        self.record = dict(self._start)
        return self._read(self.record)


def open_origin(origin: TraceOrigin, root: Path, key: str, db: str | None = None) -> SourceReading[Trace]:
    """Return a reading of the traces of an origin.

    `root` is the folder of the configuration. `key` is the origin's key in the configuration, for error messages.
    `db` is the address of the store from which an origin of kind `store` is read.
    Raises `UserError` if the file or dataset does not exist. Iterating raises `UserError` at the first bad row,
    naming the file and line, unless the origin skips bad rows.
    """
    if origin.kind in GENERATED:
        return _open_generated(origin)
    if origin.kind == STORE:
        return _open_stored(origin, key, db)
    kind = columns_kind(origin.columns, json_rows) if origin.columns else find_kind(origin.kind)
    return _open_files(origin, root, key, kind.rows, partial(_parse, kind))


def open_problems(origin: TraceOrigin, root: Path, key: str) -> SourceReading[str]:
    """Like `open_origin`, but for an origin of kind `problems`, which yields texts instead of traces."""
    return _open_files(origin, root, key, json_rows, _parse_problem)


def _open_generated(origin: TraceOrigin) -> SourceReading[Trace]:
    seed, size, families = origin.seed or 0, origin.size or 0, origin.families
    start = {
        "kind": origin.kind,
        "size": origin.size,
        "seed": seed,
        "families": None if families is None else list(families),
        **({"consequences": True} if origin.consequences else {}),
        **({"wrong": origin.wrong} if origin.wrong is not None else {}),
    }

    def read(record: dict[str, Any]) -> Iterator[Trace]:
        if origin.kind == DRILLS:
            traces = drills.generate(seed, size, drills.WRONG if origin.wrong is None else origin.wrong)
        else:
            traces = generate(seed, size, families, consequences=origin.consequences)
        return _hash_traces(traces, record)

    return SourceReading(start, read)


def _open_stored(origin: TraceOrigin, key: str, db: str | None) -> SourceReading[Trace]:
    """Return a reading of a stored dataset with its gold labels or, with `labels: relabel`, of those of its traces
    that were labelled in a campaign, with the consensus as labels.

    Traces without any label, hidden gold items and traces of other datasets are then left out. Annotations are
    ignored if the annotator had seen scores, marked equations, gold labels or other people's labels.
    """
    dataset = origin.dataset or ""
    with open_store(db) as store:
        find_dataset(store, dataset)
        campaign = _find_campaign(store, origin, key) if origin.labels == RELABEL else None

    def labelled(store: Store, campaign: Campaign, how: Counter[str]) -> Iterator[Trace]:
        for item in LabelledTraces(store, campaign):
            if item.trace.dataset == dataset and any(item.labels):
                how.update(item.how or ())
                yield item.relabelled()

    def read(record: dict[str, Any]) -> Iterator[Trace]:
        origins = Counter[str]()
        with open_store(db) as store:
            if campaign is None:
                yield from _hash_traces(iterate_traces(store, find_dataset(store, dataset).id), record)
                return
            yield from _hash_traces(labelled(store, campaign, origins), record)
        record[RELABEL] = {"campaign": campaign.name, "steps": dict(sorted(origins.items()))}
        if not record["traces"]:
            raise UserError(
                f"The campaign {campaign.name!r} has no labels for {dataset!r}, or only labels by"
                " people who had seen scores, marked equations, gold or others' labels.",
                "Leave the source out until there are labels.",
            )

    relabelled = {RELABEL: {"campaign": campaign.name, "steps": {}}} if campaign else {}
    return SourceReading({"kind": STORE, "dataset": dataset, **relabelled, "traces": 0}, read)


def _hash_traces(traces: Iterable[Trace], record: dict[str, Any]) -> Iterator[Trace]:
    """Yield the traces. Add their hash to the record, and their number if it has a place for it."""
    digest = hashlib.sha256()
    for trace in traces:
        if "traces" in record:
            record["traces"] += 1
        digest.update(trace.digest.encode())
        yield trace
    record["sha256"] = digest.hexdigest()


def _find_campaign(store: Store, origin: TraceOrigin, key: str) -> Campaign:
    """Return the campaign that an origin names. If it names none, return the only campaign over its dataset. Raises
    `UserError` if the origin names no campaign and the dataset has no campaign or several."""
    dataset = find_dataset(store, origin.dataset or "")
    if origin.campaign is not None:
        return find_campaign(store, origin.campaign)
    campaigns = [campaign for campaign in list_campaigns(store) if campaign.dataset_id == dataset.id]
    if len(campaigns) != 1:
        names = ", ".join(campaign.name for campaign in campaigns)
        many = f"{key}: there are {len(campaigns)} campaigns over {dataset.name!r}: {names}." if campaigns else ""
        raise UserError(
            many or f"{key}: there is no campaign over {dataset.name!r}.", f"Name one with {key}.campaign."
        )
    return campaigns[0]


def _open_files(
    origin: TraceOrigin,
    root: Path,
    key: str,
    rows: Callable[[Iterable[bytes], str], Rows],
    parse: Callable[[Row, str], T],
) -> SourceReading[T]:
    """Return a reading of the files that match the path of an origin. The record refers to each by its name."""
    with located(f"{key}.path"):
        files = data_files(origin.path or "", root)

    def read(record: dict[str, Any]) -> Iterator[T]:
        entries = record["files"] = []
        for name, path in files:
            with open_input(path) as file:
                digest = hashlib.sha256()
                entry = {"path": name, "sha256": "", "rows": 0, "bad": []}
                entries.append(entry)
                yield from read_rows(digested(file, digest), str(path), entry)
                entry["sha256"] = digest.hexdigest()

    def digested(lines: Iterable[bytes], digest: "hashlib._Hash") -> Iterator[bytes]:
        for line in lines:
            digest.update(line)
            yield line

    def read_rows(lines: Iterable[bytes], path: str, entry: dict[str, Any]) -> Iterator[T]:
        refused = None
        for where, row in rows(lines, path):
            try:
                item = parse(row, where)
            except UserError as error:
                if not origin.skip_bad:
                    hint = f"{error.hint} Or leave out such rows with skip_bad: true.".strip()
                    raise UserError(error.message, hint) from None
                refused = refused or error
                entry["bad"].append(where.removeprefix(path).strip())
                continue
            entry["rows"] += 1
            yield item
        if not entry["rows"]:
            raise refused or UserError(f"{path}: no row found, the file is empty.", "Check the path.")

    start = {"kind": origin.kind, "path": portable_name(origin.path or ""), "files": []}
    return SourceReading(start, read)


def _parse(kind: FileKind, row: Row, where: str) -> Trace:
    trace = parse_row(kind, row, where)
    with located(where):
        kind.check_labels(row)
    return trace


def _parse_problem(row: Row, where: str) -> str:
    with located(where):
        return text(row, "problem" if "problem" in row else "question")
