"""Downloading public files once, verifying their hashes and caching the files."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
from filelock import FileLock, Timeout

from stepsight.core.errors import UserError
from stepsight.core.files.whole_files import digest_of
from stepsight.core.net.http import (
    BROKEN,
    FailedAttemptError,
    Retries,
    failed_attempt,
    make_client,
    read_pieces,
    reason,
)
from stepsight.core.paths import CACHE_VARIABLE, cache_folder, format_bytes
from stepsight.storage.importers.catalogue import PublicFile

Progress = Callable[[int, int | None], None]
"""Called with the number of bytes here and their total, None if unknown, also while nothing arrives; an exception
it raises ends the download."""

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

    A file gets its name in the cache when its hash has been verified; a download that breaks begins again. If a
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
        with _locked(path, progress):
            # Another process may have brought it meanwhile.
            if not _is_here(path, file.digest):
                _download(file.url, file.digest, path, progress)
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
            partial = _partial(path)
            progress(partial.stat().st_size if partial.is_file() else 0, None)
    try:
        yield
    finally:
        lock.release()


def _partial(path: Path) -> Path:
    return path.with_name(f"{path.name}.stepsight.incomplete")


def _download(url: str, digest: str, path: Path, progress: Progress) -> None:
    """Download a file, starting again when the connection breaks. Raises `UserError` if it breaks too often, if the
    server refuses the request or if the digest differs, and `httpx2.ConnectError` if the server cannot be
    reached."""
    partial, retries = _partial(path), Retries(_ATTEMPTS, _FIRST_PAUSE, _LONGEST_PAUSE, _PATIENCE)

    def wait(seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
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
                "The file was changed or damaged on its way; nothing of it was kept.",
            )
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _receive(client: httpx2.Client, url: str, partial: Path, progress: Progress) -> int:
    """Write the content behind an address to a file, and return its size. Raises `FailedAttemptError` if repeating
    the request may help."""
    received = 0
    try:
        with client.stream("GET", url, follow_redirects=True) as response:
            if response.is_error:
                status = f"{response.status_code} {response.reason_phrase}".strip()
                raise failed_attempt(response, UserError(f"{url}: the server answers {status}.", _BY_HAND))
            length = None if "content-encoding" in response.headers else response.headers.get("content-length")
            size = min(_MOST, int(length)) if length is not None else None
            with open(partial, "wb") as out:
                for piece in read_pieces(response):
                    out.write(piece)
                    received += len(piece)
                    if received > (_MOST if size is None else size):
                        # It is another file, so the rest is not needed.
                        return received
                    progress(received, size)
    except httpx2.ConnectError:
        raise
    except BROKEN:
        message = f"{url}: the connection broke at {format_bytes(received)}."
        raise FailedAttemptError(UserError(message, "Try again.")) from None
    return received
