"""Fetching a public file once: checked by its hash, and kept in the cache."""

import hashlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any

from stepsight.core.errors import UserError
from stepsight.core.places import CACHE_VARIABLE, cache_folder

_CHUNK = 1 << 16
_SECONDS = 30
_BY_HAND = "Check the network, or fetch the file by hand and import it by its path."
# Called with the bytes there are and the size of the file, None where the server does not tell.
Progress = Callable[[int, int | None], None]


@dataclass(frozen=True)
class PublicFile:
    """A file that a benchmark is published as. `sha256` is of its content, None where we have not seen it; then
    `git_blob`, if it lies in a Git repository, is the name of its content there, by which it is checked as well."""

    name: str
    url: str
    sha256: str | None = None
    git_blob: str | None = None

    @property
    def digest(self) -> str | None:
        """What its content is checked by; None where nothing is known of it."""
        return self.sha256 or self.git_blob


def fetch(file: PublicFile, progress: Progress | None = None) -> Path:
    """The path of the file in the cache, fetched where it is not there.

    It appears there whole or not at all; what came before a transfer was cut off is kept, and the next one goes on
    from it. Raises `UserError` where the hash is not known or is another, where the server cannot be reached or
    refuses, and where the cache cannot be written.
    """
    if file.digest is None:
        raise UserError(
            f"{file.url}: there is no known SHA-256 to check the file by.", "Give the one you expect with --sha256."
        )
    path = cache_folder() / "downloads" / file.digest / file.name
    try:
        if path.is_file() and _digest(file, path) == file.digest:
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.partial")
        _transfer(file, partial, progress)
        _check(file, partial)
        os.replace(partial, path)
    except OSError as error:
        raise UserError(
            f"{path}: cannot be written ({error.strerror or error}).", f"Name another folder with {CACHE_VARIABLE}."
        ) from None
    return path


def _transfer(file: PublicFile, partial: Path, progress: Progress | None) -> None:
    """Write what the server sends to `partial`, after what is there already."""
    there = partial.stat().st_size if partial.is_file() else 0
    with _open(file, there) as response:
        resumes = response.status == HTTPStatus.PARTIAL_CONTENT
        there = there if resumes else 0
        length = response.headers.get("Content-Length")
        size = there + int(length) if length is not None else None
        with open(partial, "ab" if resumes else "wb") as out:
            for chunk in _chunks(response, file):
                out.write(chunk)
                there += len(chunk)
                if progress:
                    progress(there, size)
    if size is not None and there < size:
        raise _cut_off(file)


def _open(file: PublicFile, start: int) -> Any:
    """The response with the file from its byte `start` on; from the first where the server does not do parts."""
    request = urllib.request.Request(file.url, headers={"User-Agent": "stepsight"})
    if start:
        request.add_header("Range", f"bytes={start}-")
    try:
        return urllib.request.urlopen(request, timeout=_SECONDS)
    except urllib.error.HTTPError as error:
        error.close()
        if start and error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            # What is there already is as long as the file, or longer.
            return _open(file, 0)
        raise UserError(f"{file.url}: the server answers {error.code} {error.reason}.", _BY_HAND) from None
    except (OSError, http.client.HTTPException) as error:
        raise _unreachable(file, error) from None


def _chunks(response: IO[bytes], file: PublicFile) -> Iterator[bytes]:
    try:
        while chunk := response.read(_CHUNK):
            yield chunk
    except http.client.IncompleteRead as error:
        yield error.partial
        raise _cut_off(file) from None
    except (OSError, http.client.HTTPException) as error:
        raise _unreachable(file, error) from None


def _cut_off(file: PublicFile) -> UserError:
    return UserError(f"{file.url}: the transfer was cut off.", "Run it again; it goes on where it stopped.")


def _unreachable(file: PublicFile, error: Exception) -> UserError:
    reason = getattr(error, "reason", None) or error
    return UserError(f"{file.url}: cannot be fetched ({reason}).", _BY_HAND)


def _check(file: PublicFile, partial: Path) -> None:
    """Raise `UserError`, keeping nothing, where the content is another."""
    digest = _digest(file, partial)
    if digest == file.digest:
        return
    with suppress(OSError):
        partial.unlink()
    raise UserError(
        f"{file.url}: the content has {'SHA-256' if file.sha256 else 'the Git name'} {digest},"
        f" expected {file.digest}.",
        "The file was changed or damaged on its way; nothing of it was kept.",
    )


def _digest(file: PublicFile, path: Path) -> str:
    """Of what is at `path`, in the way that the file is checked."""
    with open(path, "rb") as content:
        if file.sha256:
            return hashlib.file_digest(content, "sha256").hexdigest()
        # As Git names what it keeps: SHA-1 of the kind, the size and the content.
        digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
        while chunk := content.read(_CHUNK):
            digest.update(chunk)
        return digest.hexdigest()
