"""Reading traces from an origin: a generator, files, or a dataset in the store.

The `record` of a reading suffices to tell whether a different run used the same data, and reveals nothing about the
machine.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from stepsight.core.errors import UserError
from stepsight.core.files.jsonl import open_input
from stepsight.core.paths import data_files, portable_name
from stepsight.core.trace import Trace
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.importers import find_kind, parse_row
from stepsight.storage.importers.column_mapping import columns_kind
from stepsight.storage.importers.rows.fields import located, text
from stepsight.storage.importers.rows.kind import FileKind, Row, Rows, json_rows
from stepsight.storage.labelling.campaigns import Campaign, find_campaign, list_campaigns
from stepsight.storage.labelling.results.consensus import LabelledTraces
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from stepsight.training.data.sources_config import DRILLS, GENERATED, RELABEL, STORE, TraceOrigin
from stepsight.training.synth import drills
from stepsight.training.synth.corpus import generate

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class SourceReading(Protocol[T_co]):
    """A source that is read again on every iteration. `record` describes the last complete iteration."""

    def __iter__(self) -> Iterator[T_co]: ...

    @property
    def record(self) -> dict[str, Any]: ...


def open_origin(origin: TraceOrigin, root: Path, key: str) -> SourceReading[Trace]:
    """Return a reading of the traces of an origin.

    `root` is the folder of the configuration. `key` is the origin's key in the configuration, for error messages.
    Raises `UserError` if the file or dataset does not exist. Iterating raises `UserError` at the first bad row,
    naming the file and line, unless the origin skips bad rows.
    """
    if origin.kind in GENERATED:
        return GeneratedReading(origin)
    if origin.kind == STORE:
        return RelabelledReading(origin, key) if origin.labels == RELABEL else StoredReading(origin)
    kind = columns_kind(origin.columns, json_rows) if origin.columns else find_kind(origin.kind)
    return FileReading(origin, _find(origin, root, key), kind.rows, partial(_parse, kind))


def open_problems(origin: TraceOrigin, root: Path, key: str) -> SourceReading[str]:
    """Like `open_origin`, but for an origin of kind `problems`, which yields texts instead of traces."""
    return FileReading(origin, _find(origin, root, key), json_rows, _parse_problem)


class GeneratedReading:
    """A reading of generated traces."""

    def __init__(self, origin: TraceOrigin) -> None:
        self._origin = origin
        self._seen = _Seen()

    def __iter__(self) -> Iterator[Trace]:
        self._seen = _Seen()
        seed, size = self._origin.seed or 0, self._origin.size or 0
        if self._origin.kind == DRILLS:
            wrong = drills.WRONG if self._origin.wrong is None else self._origin.wrong
            return self._seen.of(drills.generate(seed, size, wrong))
        behind = self._origin.consequences
        return self._seen.of(generate(seed, size, self._origin.families, consequences=behind))

    @property
    def record(self) -> dict[str, Any]:
        families = self._origin.families
        return {
            "kind": self._origin.kind,
            "size": self._origin.size,
            "seed": self._origin.seed or 0,
            "families": None if families is None else list(families),
            **({"consequences": True} if self._origin.consequences else {}),
            **({"wrong": self._origin.wrong} if self._origin.wrong is not None else {}),
            "sha256": self._seen.sha256,
        }


class StoredReading:
    """A reading of the traces of a stored dataset with their gold labels."""

    def __init__(self, origin: TraceOrigin) -> None:
        self._name = origin.dataset or ""
        self._seen = _Seen()
        with open_store() as store:
            find_dataset(store, self._name)

    def __iter__(self) -> Iterator[Trace]:
        self._seen = _Seen()
        with open_store() as store:
            yield from self._seen.of(iterate_traces(store, find_dataset(store, self._name).id))

    @property
    def record(self) -> dict[str, Any]:
        traces, sha256 = self._seen.count, self._seen.sha256
        return {"kind": STORE, "dataset": self._name, "traces": traces, "sha256": sha256}


class RelabelledReading:
    """A reading of a stored dataset's traces that were labelled in a campaign, with the consensus as labels.

    Traces without any label, hidden gold items and traces of other datasets are left out. Annotations are ignored
    if the annotator had seen scores, marked equations, gold labels or other people's labels.
    """

    def __init__(self, origin: TraceOrigin, key: str) -> None:
        self._dataset = origin.dataset or ""
        self._seen, self._how = _Seen(), Counter[str]()
        with open_store() as store:
            self._campaign = _find_campaign(store, origin, key)

    def __iter__(self) -> Iterator[Trace]:
        self._seen, self._how = _Seen(), Counter[str]()
        with open_store() as store:
            yield from self._seen.of(self._labelled(store))
        if not self._seen.count:
            raise UserError(
                f"Nobody has labelled traces of {self._dataset!r} in the campaign {self._campaign.name!r}, or only"
                " people who had seen scores, marked equations, gold or others' labels.",
                "Leave the source out until there are labels.",
            )

    def _labelled(self, store: Store) -> Iterator[Trace]:
        for labelled in LabelledTraces(store, self._campaign):
            if labelled.trace.dataset == self._dataset and any(labelled.labels):
                self._how.update(labelled.how or ())
                yield labelled.relabelled()

    @property
    def record(self) -> dict[str, Any]:
        return {
            "kind": STORE,
            "dataset": self._dataset,
            RELABEL: {"campaign": self._campaign.name, "steps": dict(sorted(self._how.items()))},
            "traces": self._seen.count,
            "sha256": self._seen.sha256,
        }


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


class FileReading(Generic[T]):
    """A reading of files whose rows are parsed by `parse`. Each file comes with the name by which the record refers
    to it."""

    def __init__(
        self,
        origin: TraceOrigin,
        files: list[tuple[str, Path]],
        rows: Callable[[Iterable[bytes], str], Rows],
        parse: Callable[[Row, str], T],
    ) -> None:
        self._origin, self._files = origin, files
        self._rows, self._parse = rows, parse
        self._entries: list[dict[str, Any]] = []

    def __iter__(self) -> Iterator[T]:
        entries = self._entries = []
        for name, path in self._files:
            with open_input(path) as file:
                digest = hashlib.sha256()
                entry = {"path": name, "sha256": "", "rows": 0, "bad": []}
                entries.append(entry)
                yield from self._read(_hashed(file, digest), str(path), entry)
                entry["sha256"] = digest.hexdigest()

    def _read(self, lines: Iterable[bytes], path: str, entry: dict[str, Any]) -> Iterator[T]:
        refused = None
        for where, row in self._rows(lines, path):
            try:
                item = self._parse(row, where)
            except UserError as error:
                if not self._origin.skip_bad:
                    raise UserError(
                        error.message, f"{error.hint} Or leave out such rows with skip_bad: true.".strip()
                    ) from None
                refused = refused or error
                entry["bad"].append(where.removeprefix(path).strip())
                continue
            entry["rows"] += 1
            yield item
        if not entry["rows"]:
            raise refused or UserError(f"{path}: no row found, the file is empty.", "Check the path.")

    @property
    def record(self) -> dict[str, Any]:
        return {"kind": self._origin.kind, "path": portable_name(self._origin.path or ""), "files": self._entries}


def _parse(kind: FileKind, row: Row, where: str) -> Trace:
    trace = parse_row(kind, row, where)
    kind.check_labels(row, where)
    return trace


class _Seen:
    """Counts and hashes the traces that pass through `of`."""

    def __init__(self) -> None:
        self.count = 0
        self._hash = hashlib.sha256()

    def of(self, traces: Iterable[Trace]) -> Iterator[Trace]:
        for trace in traces:
            self.count += 1
            self._hash.update(trace.digest.encode())
            yield trace

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()


def _hashed(lines: Iterable[bytes], digest: "hashlib._Hash") -> Iterator[bytes]:
    for line in lines:
        digest.update(line)
        yield line


def _find(origin: TraceOrigin, root: Path, key: str) -> list[tuple[str, Path]]:
    """Return (name, path) for each file that matches the path of an origin. The name is used in the record."""
    try:
        return data_files(origin.path or "", root)
    except UserError as error:
        raise error.at(f"{key}.path") from None


def _parse_problem(row: Row, where: str) -> str:
    with located(where):
        return text(row, "problem" if "problem" in row else "question")
