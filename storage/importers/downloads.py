"""Downloading public files once, verifying their hashes and caching the files."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
from filelock import FileLock, Timeout

from stepsight.core.errors import UserError
from stepsight.core.files.atomic import digest_of
from stepsight.core.net.download import Downloader, Progress, RemoteContent, partial_of, size_of
from stepsight.core.net.http import make_client, reason
from stepsight.core.paths import CACHE_VARIABLE, cache_folder
from stepsight.storage.importers.rows.kind import PublicFile

_SECONDS = 30.0
# The largest file of a benchmark, in bytes.
_MOST = 4_000_000_000
# Seconds between two reports while another process fetches the file.
_TICK = 0.5
_LOCK = ".lock"
_BY_HAND = "Check the network of the machine that runs StepSight, or fetch the file elsewhere and import it."


def _ignore(there: int, size: int | None) -> None:
    """Do nothing. Used when the caller wants no progress reports."""


def fetch(file: PublicFile, progress: Progress = _ignore) -> Path:
    """Return the path of a file in the cache, downloading the file if necessary.

    The cache never contains an incomplete file. An interrupted download is resumed by the next call. If a different
    process is downloading the same file, the call waits until that download ends. Raises `UserError` if the file's
    hash is unknown or does not match, if the server refuses or cannot be reached, or if the cache cannot be
    written.
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
        with _locked(path, progress):
            # Another process may have brought it meanwhile.
            if not _is_here(path, file.digest):
                with make_client(httpx2.Client, _SECONDS) as client:
                    content = RemoteContent(file.url, file.url, file.digest, most=_MOST)
                    Downloader(client, _refusal, _SECONDS).download(content, path, progress)
    except httpx2.HTTPError as error:
        host = urlsplit(file.url).netloc
        raise UserError(f"{file.name} cannot be fetched from {host} ({reason(error)}).", _BY_HAND) from None
    except OSError as error:
        raise UserError(
            f"{path}: cannot be written ({(error.strerror or str(error)).lower()}).",
            f"Make room there, or name another folder with {CACHE_VARIABLE}.",
        ) from None
    return path


def _is_here(path: Path, digest: str) -> bool:
    return path.is_file() and digest_of(path, digest) == digest


@contextmanager
def _locked(path: Path, progress: Progress) -> Iterator[None]:
    """Keep other processes from downloading the same file. If a different process is already downloading it, wait
    and report the progress of that download to `progress`."""
    lock = FileLock(path.with_name(_LOCK))
    while not lock.is_locked:
        try:
            lock.acquire(timeout=_TICK)
        except Timeout:
            progress(size_of(partial_of(path)), None)
    try:
        yield
    finally:
        lock.release()


def _refusal(response: httpx2.Response, content: RemoteContent) -> UserError:
    status = f"{response.status_code} {response.reason_phrase}".strip()
    return UserError(f"{content.name}: the server answers {status}.", _BY_HAND)
