"""Imports as jobs, each of a benchmark of the catalogue or of a file that a browser has sent.

Each file is stored completely or not at all, and a file that is already stored is skipped. An interrupted import
can therefore simply be repeated.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic.dataclasses import dataclass

from stepsight.core.judgment import Mode
from stepsight.core.validation import STRICT, Record, choice, validate
from stepsight.storage.database.jobs_schema import Job, Task
from stepsight.storage.database.store import NotFoundError, Store
from stepsight.storage.importers import find_kind
from stepsight.storage.importers.catalogue import Benchmark, PublicFile, fetch, find_benchmark, list_parts
from stepsight.storage.importers.column_mapping import ColumnMap
from stepsight.storage.importers.data_files import DataFiles
from stepsight.storage.importers.recognition import Holds
from stepsight.storage.jobs.jobs import start_request
from stepsight.storage.jobs.preview import bad_rows, read_upload, read_upload_rows
from stepsight.storage.jobs.uploads import (
    MOST_STORED,
    UploadSource,
    check_disk,
    get_upload,
    keep_upload,
    remove_upload,
)
from stepsight.storage.judgments.score_files import import_score_lines, import_scores
from stepsight.storage.labelling.files.import_labels import import_label_lines
from stepsight.storage.traces.bad_rows import LeftOutRows
from stepsight.storage.traces.imports import (
    ImportSummary,
    import_source,
    store_rows,
    waiting_rows,
)
from stepsight.storage.traces.queries import find_dataset, list_datasets


@dataclass(frozen=True, config=STRICT)
class FileImport(Record):
    """A request to import an uploaded file.

    `upload` is the id of the upload, and `holds` says what it contains. `dataset` is the dataset to add the
    traces to, or the one that the scores refer to. For traces, `kind` is the file kind, `columns` is set if the
    kind is `importers.column_mapping.NAME`, and `leave_out` allows leaving out bad rows. For scores, `evaluator`
    names the evaluator and `mode` is the mode in which it gave them. For labels, `campaign` is the campaign to
    put them into, `annotator` gave them if the file names nobody, and `user` is the person who adds them, whom
    the server sets. `sha256` is the hash of the content that the user previewed.
    """

    upload: int
    holds: Annotated[str, choice(tuple(Holds))]
    dataset: str
    kind: str = ""
    columns: ColumnMap | None = None
    leave_out: bool = False
    evaluator: str = ""
    mode: Annotated[str, choice((Mode.OFFLINE.value, Mode.ONLINE.value))] = Mode.OFFLINE.value
    sha256: str = ""
    campaign: str = ""
    annotator: str = ""
    user: int = 0


@dataclass(frozen=True, config=STRICT)
class BenchmarkImport(Record):
    """A request to import the benchmark of the catalogue whose dataset name is `benchmark`. `scores` says whether
    to import its published scores too."""

    benchmark: str
    scores: bool = True


def import_upload(store: Store, file_import: FileImport, user_id: int) -> Job:
    """Queue the import of an uploaded file. Raises `NotFoundError` if this user has no such upload."""
    upload = get_upload(store, file_import.upload, user_id)
    keep_upload(store, upload)
    what = file_import.dataset
    if file_import.holds == Holds.SCORES:
        what = f"scores of {file_import.evaluator} for {file_import.dataset}"
    elif file_import.holds == Holds.LABELS:
        what = f"labels of {file_import.campaign}"
    adder = user_id if file_import.holds == Holds.LABELS else 0
    request = asdict(replace(file_import, sha256=upload.sha256, user=adder))
    return start_request(store, Task.IMPORT, f"{upload.name} → {what}", request)


def import_benchmark(store: Store, benchmark_import: BenchmarkImport) -> Job:
    """Queue the import of a benchmark. Raises `UserError` if it is not in the catalogue."""
    benchmark = find_benchmark(benchmark_import.benchmark)
    scores = (
        f" with the scores of {len(benchmark.evaluators)} evaluators"
        if benchmark_import.scores and benchmark.scores
        else ""
    )
    return start_request(store, Task.IMPORT, f"{benchmark.title}{scores}", asdict(benchmark_import))


def read_request(request: Mapping[str, Any]) -> FileImport | BenchmarkImport:
    """Parse the request of a stored job. Raises `UserError` if it is not a valid import request."""
    kind: type[FileImport] | type[BenchmarkImport] = BenchmarkImport if "benchmark" in request else FileImport
    return validate(kind, dict(request), "the request of the job")


Progress = Callable[[int, int], None]
"""Called with the number of bytes processed and their total; an exception it raises ends the import."""


class Imported(NamedTuple):
    """The outcome of an import: a summary sentence, the dataset's id, and the number of rows left out."""

    summary: str
    dataset_id: int
    left_out: int = 0


def run_import(store: Store, request: Mapping[str, Any], progress: Progress) -> Imported:
    """Carry out the request of an import job. Raises `UserError` if the request is invalid or the import fails."""
    parsed = read_request(request)
    if isinstance(parsed, BenchmarkImport):
        return fetch_benchmark(store, find_benchmark(parsed.benchmark), progress, scores=parsed.scores)
    return _import_upload(store, parsed, progress)


def fetch_benchmark(store: Store, benchmark: Benchmark, progress: Progress, *, scores: bool = True) -> Imported:
    """Import a benchmark from the catalogue with its published scores, downloading files that are not cached. Bad
    rows, such as those of PRMBench, are left out, because the user cannot correct a published file."""
    files = _Files(benchmark, progress, scores=scores)
    path = files.fetch(benchmark.file)
    paths = {path.name: path}
    if benchmark.parts:
        parts = list_parts(benchmark, path.read_text(encoding="utf-8"))
        files.expect(parts, benchmark.size or 0)
        paths = {part.url: files.fetch(part) for part in parts}
    data = DataFiles(path.name, paths, sha256=benchmark.file.sha256 if benchmark.parts else None)
    bad, kind = LeftOutRows(path.name, path.name), data.kind(find_kind(benchmark.kind))
    summary = import_source(store, kind, data, benchmark.dataset, bad, files.check)
    sentences = [str(summary)]
    for score in benchmark.scores if scores else ():
        import_scores(store, benchmark.dataset, files.fetch(score.file), score.evaluator)
    if scores and benchmark.scores:
        sentences.append(f"Scores of {', '.join(benchmark.evaluators)}.")
    return Imported(" ".join(sentences), find_dataset(store, benchmark.dataset).id, summary.left_out)


class _Files:
    """Downloads the files of a benchmark one after the other and reports their combined progress."""

    def __init__(self, benchmark: Benchmark, progress: Progress, *, scores: bool) -> None:
        self._progress = progress
        self._sizes = {benchmark.file.name: benchmark.size or 0}
        if scores:
            self._sizes |= {score.file.name: score.size or 0 for score in benchmark.scores}
        self._before = 0

    def expect(self, files: Sequence[PublicFile], size: int) -> None:
        """Add files to the download, which has `size` bytes in total. Bytes not downloaded yet are divided equally
        among the files."""
        self._sizes |= {file.name: max(0, size - self._before) // len(files) for file in files}

    def check(self, *_: object) -> None:
        """Report the current progress again, which raises an exception if the import has to stop."""
        self._progress(self._before, sum(self._sizes.values()))

    def fetch(self, file: PublicFile) -> Path:
        def show(here: int, size: int | None) -> None:
            self._sizes[file.name] = size or max(here, self._sizes[file.name])
            self._progress(self._before + here, sum(self._sizes.values()))

        path = fetch(file, show)
        self._sizes[file.name] = path.stat().st_size
        self._before += self._sizes[file.name]
        self._progress(self._before, sum(self._sizes.values()))
        return path


def _import_upload(store: Store, file_import: FileImport, progress: Progress) -> Imported:
    try:
        upload = get_upload(store, file_import.upload)
    except NotFoundError:
        return _find_stored(store, file_import)
    if file_import.sha256 != upload.sha256:
        raise NotFoundError(f"{upload.name}: not the file to be added.", "Choose that file again.")
    source = UploadSource(upload)
    parts = _report_reading(source, upload.size, progress)
    # Until then, this process has not read any part of an untrusted file; it never reads files of traces.
    if file_import.holds == Holds.TRACES:
        done = _import_traces(store, source, parts, file_import, lambda: progress(upload.size, upload.size))
        remove_upload(store, upload.id)
        return Imported(str(done), find_dataset(store, file_import.dataset).id, done.left_out)
    read_upload(source, parts, asdict(file_import))
    if file_import.holds == Holds.LABELS:
        labels, dataset_id = import_label_lines(
            store,
            source,
            upload.name,
            file_import.user,
            file_import.campaign,
            file_import.dataset,
            file_import.annotator,
        )
        remove_upload(store, upload.id)
        return Imported(str(labels), dataset_id)
    scores = import_score_lines(
        store, file_import.dataset, source, upload.name, file_import.evaluator, Mode(file_import.mode)
    )
    remove_upload(store, upload.id)
    return Imported(str(scores), find_dataset(store, file_import.dataset).id)


def _import_traces(
    store: Store, source: UploadSource, parts: Iterable[bytes], file_import: FileImport, check: Callable[[], None]
) -> ImportSummary:
    """Store the rows that a child makes of an upload. If `check` raises an exception, nothing is stored."""
    bad = bad_rows(source.name, leave_out=file_import.leave_out)
    with waiting_rows(source.name, source.size, MOST_STORED) as waiting:
        content = read_upload_rows(source, parts, asdict(file_import), waiting, bad)
        check_disk(store, source.name, waiting.written)
        return store_rows(store, file_import.dataset, content, source, waiting, bad, lambda *_: check())


def _find_stored(store: Store, file_import: FileImport) -> Imported:
    """Return the outcome of an import that had already stored the file when its worker stopped. Raises
    `NotFoundError` if the dataset does not contain the file."""
    for dataset in list_datasets(store):
        if dataset.name == file_import.dataset and dataset.sha256 == file_import.sha256:
            return Imported(f"{dataset.name}: stored.", dataset.id, dataset.left_out)
    raise NotFoundError("The file to be added is no longer here.", "Choose it again.")


def _report_reading(source: UploadSource, size: int, progress: Progress) -> Iterable[bytes]:
    here = 0
    for part in source.parts():
        progress(here, size)
        here += len(part)
        yield part
    progress(here, size)
