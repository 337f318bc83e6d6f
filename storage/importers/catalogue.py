"""The catalogue of public benchmarks and of the scores that authors of evaluators have published for them, and the
cached downloads of their files.

`assets/catalogue.json` describes each benchmark, its source and its licence. Files are identified by their hash.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
from filelock import FileLock, Timeout

from stepsight.core.errors import UserError
from stepsight.core.files.whole_files import digest_of, read_json
from stepsight.core.net.http import (
    BROKEN,
    FailedAttemptError,
    Retries,
    failed_attempt,
    make_client,
    read_pieces,
    reason,
)
from stepsight.core.paths import CACHE_VARIABLE, asset, cache_folder, format_bytes
from stepsight.storage.importers import find_kind


@dataclass(frozen=True)
class PublicFile:
    """A published benchmark file. `sha256` is the hash of its content, or None if unknown. In that case, the
    content is checked against `git_blob`, the file's id in a Git repository, if that is known."""

    name: str
    url: str
    sha256: str | None = None
    git_blob: str | None = None

    @property
    def digest(self) -> str | None:
        """The digest by which the content is checked, or None if no digest is known."""
        return self.sha256 or self.git_blob


@dataclass(frozen=True)
class ScoreFile:
    """Scores for a benchmark that the authors of an evaluator published. `size` is in bytes, or None if unknown."""

    evaluator: str
    file: PublicFile
    size: int | None


@dataclass(frozen=True)
class Benchmark:
    """A benchmark in the catalogue, described for users who consider fetching it.

    `dataset` is the name that the dataset gets on import, and `kind` is the kind of its file. `traces` and `size`
    (in bytes) are None if unknown. If `parts` is set, `file` is an index that only lists other files and their
    SHA-256. The traces are then in the listed files whose paths begin with one of the parts, in the order of the
    parts.
    """

    dataset: str
    kind: str
    file: PublicFile
    title: str
    about: str
    licence: str
    source: str
    scores: tuple[ScoreFile, ...]
    traces: int | None = None
    size: int | None = None
    parts: tuple[str, ...] = ()

    @property
    def can_be_fetched(self) -> bool:
        """True if a digest is known by which a downloaded file can be verified."""
        return self.file.digest is not None

    @property
    def evaluators(self) -> tuple[str, ...]:
        """The evaluators with published scores, without duplicates."""
        return tuple(dict.fromkeys(score.evaluator for score in self.scores))

    @property
    def whole_size(self) -> int:
        """The total size in bytes of the file and all score files. Unknown sizes count as 0."""
        return (self.size or 0) + sum(score.size or 0 for score in self.scores)


@cache
def benchmarks() -> tuple[Benchmark, ...]:
    """Return all benchmarks in display order."""
    return tuple(map(_benchmark, _content()["benchmarks"]))


@cache
def published_files(kind: str) -> tuple[PublicFile, ...]:
    """Return the published files of a kind whose addresses are known."""
    return tuple(PublicFile(**values) for values in _content()["files"].get(kind, ()))


def public_file(kind: str, name: str | None = None, sha256: str | None = None) -> PublicFile:
    """Return the published file of a kind with this name. `name` may be omitted if there is only one.

    `sha256` overrides the file's own hash. Raises `UserError`, with a message that lists the published files, if no
    published file has this name, and if there is no such kind.
    """
    kind = find_kind(kind).name
    files = published_files(kind)
    if not files:
        raise UserError(
            f"No public address of {kind} is known.", "Download the file yourself and import it by its path."
        )
    matches = [file for file in files if name in (None, file.name)]
    if len(matches) != 1:
        names = ", ".join(file.name for file in files)
        raise UserError(f"{kind} is published as {names}.", "Give one of these instead of the path.")
    return replace(matches[0], sha256=sha256) if sha256 else matches[0]


def find_benchmark(dataset: str) -> Benchmark:
    """Return the benchmark whose dataset has this name. Raises `UserError`, with a message that lists all
    benchmarks, if no benchmark does."""
    for benchmark in benchmarks():
        if benchmark.dataset == dataset:
            return benchmark
    names = ", ".join(other.dataset for other in benchmarks())
    raise UserError(f"There is no benchmark {dataset!r:.60} in the catalogue.", f"It has {names}.")


def find_file(sha256: str) -> tuple[Benchmark, ScoreFile | None] | None:
    """Return the benchmark and the score file with a given hash, or None if the hash is unknown. If the hash is
    that of the benchmark's own file, the score file is None."""
    return _files_by_hash().get(sha256)


def find_published(kind: str, name: str | None) -> Benchmark | None:
    """Return the benchmark to which a published file of a kind belongs, or None if the file is not in the
    catalogue. Raises `UserError` in the same cases as `public_file`."""
    url = public_file(kind, name).url
    return next((benchmark for benchmark in benchmarks() if benchmark.file.url == url), None)


def list_parts(benchmark: Benchmark, content: str) -> list[PublicFile]:
    """Return the files that contain the traces of a benchmark with `parts`. `content` is the content of the
    benchmark's index file. Raises `UserError` if no file in the index belongs to one of the parts."""
    root = benchmark.file.url.removesuffix(f"/{benchmark.file.name}")
    pairs = [line.split(maxsplit=1) for line in content.splitlines() if line.strip()]
    listed = {path.strip().removeprefix("./"): sha256 for sha256, path in pairs}
    files: list[PublicFile] = []
    for part in benchmark.parts:
        paths = sorted(path for path in listed if path.startswith(part))
        if not paths:
            raise UserError(f"{benchmark.file.name}: lists no file for {part}.", "Report it to StepSight.")
        files += [PublicFile(path.rsplit("/", 1)[-1], f"{root}/{path}", listed[path]) for path in paths]
    return files


@cache
def _content() -> dict[str, Any]:
    return read_json(asset("catalogue.json"))


@cache
def _files_by_hash() -> dict[str | None, tuple[Benchmark, ScoreFile | None]]:
    files: dict[str | None, tuple[Benchmark, ScoreFile | None]] = {}
    for benchmark in benchmarks():
        files[benchmark.file.sha256] = benchmark, None
        files |= {score.file.sha256: (benchmark, score) for score in benchmark.scores}
    files.pop(None, None)
    return files


def _benchmark(values: dict[str, Any]) -> Benchmark:
    root = values.get("scores_root", _content()["scores_root"])
    scores = []
    for score in values["scores"]:
        path = score["path"]
        digests = {name: score.get(name) for name in ("sha256", "git_blob")}
        file = PublicFile(path.rsplit("/", 1)[-1], f"{root}/{path}", **digests)
        scores.append(ScoreFile(score["evaluator"], file, score.get("size")))
    of_other_types = {
        "file": public_file(values["kind"], values["file"]),
        "scores": tuple(scores),
        "parts": tuple(values.get("parts", ())),
    }
    return Benchmark(**{key: value for key, value in values.items() if key != "scores_root"} | of_other_types)


Progress = Callable[[int, int | None], None]
"""Called with the number of bytes downloaded so far and the total, None if unknown, also while nothing arrives; an
exception it raises ends the download."""

_SECONDS = 30.0
_ATTEMPTS, _FIRST_PAUSE, _LONGEST_PAUSE, _PATIENCE = 5, 1.0, 8.0, 60.0
# The largest file of a benchmark, in bytes.
_MOST = 4_000_000_000
# Seconds between two reports while another process fetches the file, or while nothing arrives.
_TICK = 0.1
_LOCK = ".lock"
_BY_HAND = "Check the network of the machine that runs StepSight, or fetch the file elsewhere and import it."


def fetch(file: PublicFile, progress: Progress = lambda fetched, size: None) -> Path:
    """Return the path of a file in the cache, downloading the file if necessary.

    A file gets its name in the cache when its hash has been verified; an interrupted download starts over. If a
    different process is downloading the same file, the call waits until that download ends. Raises `UserError` if
    the file's hash is unknown or does not match, if the server refuses or cannot be reached, or if the cache cannot
    be written.
    """
    if file.digest is None:
        raise UserError(
            f"{file.url}: there is no known SHA-256 to check the file by.", "Give the one you expect with --sha256."
        )
    path = cache_folder() / "downloads" / file.digest / file.name
    try:
        if _is_here(path, file.digest):
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        with _lock_download(path, progress):
            # Another process may have downloaded it in the meantime.
            if not _is_here(path, file.digest):
                _download(file.url, file.digest, path, progress)
    except httpx2.HTTPError as error:
        host = urlsplit(file.url).netloc
        raise UserError(f"{file.name} cannot be fetched from {host} ({reason(error)}).", _BY_HAND) from None
    except OSError as error:
        raise UserError(
            f"{path}: cannot be written ({(error.strerror or str(error)).lower()}).",
            f"Free some space there, or set {CACHE_VARIABLE} to another folder.",
        ) from None
    return path


def _is_here(path: Path, digest: str) -> bool:
    return path.is_file() and digest_of(path, digest) == digest


@contextmanager
def _lock_download(path: Path, progress: Progress) -> Iterator[None]:
    """Keep other processes from downloading the same file. If a different process is already downloading it, wait
    and report the progress of that download to `progress`."""
    lock = FileLock(path.with_name(_LOCK))
    while not lock.is_locked:
        try:
            lock.acquire(timeout=_TICK)
        except Timeout:
            partial = _partial_path(path)
            progress(partial.stat().st_size if partial.is_file() else 0, None)
    try:
        yield
    finally:
        lock.release()


def _partial_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.stepsight.incomplete")


def _download(url: str, digest: str, path: Path, progress: Progress) -> None:
    """Download a file, starting again when the connection breaks. Raises `UserError` if it breaks too often, if the
    server refuses the request or if the digest differs, and `httpx2.ConnectError` if the server cannot be
    reached."""
    partial, retries = _partial_path(path), Retries(_ATTEMPTS, _FIRST_PAUSE, _LONGEST_PAUSE, _PATIENCE)

    def wait(seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            progress(0, None)
            time.sleep(_TICK)

    try:
        with make_client(httpx2.Client, _SECONDS) as client:
            size = retries.run(lambda: _receive(client, url, partial, progress), wait)
        actual = digest_of(partial, digest, lambda: progress(size, size))
        if actual != digest:
            kind = "SHA-256" if len(actual) == 64 else "the Git name"
            raise UserError(
                f"{url}: the content has {kind} {actual}, expected {digest}.",
                "It was changed or damaged in transit, and has been deleted. Fetch it again.",
            )
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _receive(client: httpx2.Client, url: str, partial: Path, progress: Progress) -> int:
    """Write the content at an address to a file, and return its size. Raises `FailedAttemptError` if repeating the
    request may help."""
    received = 0
    try:
        with client.stream("GET", url, follow_redirects=True) as response:
            if response.is_error:
                status = f"{response.status_code} {response.reason_phrase}".strip()
                raise failed_attempt(
                    response, UserError(f"{url}: the server answered with status {status}.", _BY_HAND)
                )
            length = None if "content-encoding" in response.headers else response.headers.get("content-length")
            size = min(_MOST, int(length)) if length is not None else None
            with open(partial, "wb") as out:
                for piece in read_pieces(response):
                    out.write(piece)
                    received += len(piece)
                    if received > (_MOST if size is None else size):
                        # This is a different file, so the rest is not needed.
                        return received
                    progress(received, size)
    except httpx2.ConnectError:
        raise
    except BROKEN:
        message = f"{url}: the connection broke at {format_bytes(received)}."
        raise FailedAttemptError(UserError(message, "Try again.")) from None
    return received
