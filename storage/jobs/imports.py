"""Import jobs and their requests, each for a benchmark from the catalogue or a file uploaded from a browser."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Annotated, Any

from pydantic.dataclasses import dataclass

from stepsight.core.judgment import Mode
from stepsight.core.validation import STRICT, Record, choice, validate
from stepsight.storage.database.jobs_schema import Job, Task
from stepsight.storage.database.store import Store
from stepsight.storage.importers.catalogue import find_benchmark
from stepsight.storage.importers.column_mapping import ColumnMap
from stepsight.storage.importers.recognition import Holds
from stepsight.storage.jobs.jobs import start_request
from stepsight.storage.jobs.uploads import get_upload, keep_upload


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


def import_upload(store: Store, wanted: FileImport, user_id: int) -> Job:
    """Queue the import of an uploaded file. Raises `NotFoundError` if this user has no such upload."""
    upload = get_upload(store, wanted.upload, user_id)
    keep_upload(store, upload)
    what = wanted.dataset
    if wanted.holds == Holds.SCORES:
        what = f"scores of {wanted.evaluator} for {wanted.dataset}"
    elif wanted.holds == Holds.LABELS:
        what = f"labels of {wanted.campaign}"
    adder = user_id if wanted.holds == Holds.LABELS else 0
    request = asdict(replace(wanted, sha256=upload.sha256, user=adder))
    return start_request(store, Task.IMPORT, f"{upload.name} → {what}", request)


def import_benchmark(store: Store, wanted: BenchmarkImport) -> Job:
    """Queue the import of a benchmark. Raises `UserError` if it is not in the catalogue."""
    benchmark = find_benchmark(wanted.benchmark)
    scores = (
        f" with the scores of {len(benchmark.evaluators)} evaluators" if wanted.scores and benchmark.scores else ""
    )
    return start_request(store, Task.IMPORT, f"{benchmark.title}{scores}", asdict(wanted))


def read_request(request: Mapping[str, Any]) -> FileImport | BenchmarkImport:
    """Parse the request of a stored job. Raises `UserError` if it is not a valid import request."""
    kind: type[FileImport] | type[BenchmarkImport] = BenchmarkImport if "benchmark" in request else FileImport
    return validate(kind, dict(request), "the request of the job")
