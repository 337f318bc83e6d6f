"""Downloads that resume after an interruption. A file gets its final name only when its hash has been verified."""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

from stepsight.core.errors import UserError
from stepsight.core.files.atomic import digest_of
from stepsight.core.net.http import BROKEN, FailedAttemptError, Retries, failed_attempt, read_pieces
from stepsight.core.paths import format_bytes

Progress = Callable[[int, int | None], None]
"""Called with the number of bytes here and their total, None if unknown, also while nothing arrives; an exception
it raises ends the download."""

_ATTEMPTS, _FIRST_PAUSE, _LONGEST_PAUSE, _PATIENCE = 5, 1.0, 8.0, 60.0
_TICK = 0.1
_PARTIAL_CONTENT, _RANGE_NOT_SATISFIABLE = 206, 416


@dataclass(frozen=True)
class RemoteContent:
    """A file to be downloaded from `url`.

    `name` is used in messages. `digest` is the hash that `digest_of` must return for the file, and `size` its size
    in bytes, or None if unknown; the file then has at most `most` bytes. `headers` are sent with the request.
    """

    url: str
    name: str
    digest: str
    size: int | None = None
    most: int = 1 << 40
    headers: Mapping[str, str] = field(default_factory=dict)


def partial_of(path: Path) -> Path:
    """Return the path at which a download to `path` stores the bytes received so far."""
    return path.with_name(f"{path.name}.stepsight.incomplete")


class Downloader:
    """A downloader that fetches files one after the other. If a server refuses a request, the error that `explain`
    builds is raised."""

    def __init__(
        self, client: httpx2.Client, explain: Callable[[httpx2.Response, RemoteContent], Exception], seconds: float
    ) -> None:
        """Create a downloader that times out when a server sends nothing for `seconds` seconds."""
        self._client, self._explain, self._seconds = client, explain, seconds
        self._has_answered = False

    def download(self, content: RemoteContent, path: Path, progress: Progress) -> None:
        """Download `content` to `path`. The folder of `path` must exist.

        Raises `UserError` if the connection breaks repeatedly (the next call then resumes), or if the digest
        differs (nothing is then kept). Raises `httpx2.ConnectError` immediately if the server cannot be reached and
        no server has answered this downloader before. Raises the error from `explain` if the server refuses the
        request, and `OSError` if the file cannot be written.
        """
        partial = partial_of(path)
        if content.size is not None and size_of(partial) > content.size:
            partial.unlink()
        if content.size is None or size_of(partial) < content.size or not partial.exists():
            self._receive_whole(content, partial, progress)
        there = size_of(partial)
        found = digest_of(partial, content.digest, lambda: progress(there, there))
        if found != content.digest:
            partial.unlink()
            kind = "SHA-256" if len(found) == 64 else "the Git name"
            raise UserError(
                f"{content.name}: the content has {kind} {found}, expected {content.digest}.",
                "The file was changed or damaged on its way; nothing of it was kept.",
            )
        os.replace(partial, path)

    def _receive_whole(self, content: RemoteContent, partial: Path, progress: Progress) -> None:
        retries = Retries(_ATTEMPTS, _FIRST_PAUSE, _LONGEST_PAUSE, _PATIENCE)
        most = size_of(partial)
        while True:
            try:
                return self._receive(content, partial, progress)
            except FailedAttemptError as failure:
                failed = failure
            except BROKEN as error:
                if isinstance(error, httpx2.ConnectError) and not self._has_answered:
                    raise
                failed = FailedAttemptError(_broken(content, size_of(partial)))
            there = size_of(partial)
            # Beyond all attempts before: a server may begin anew each time, and break off sooner or later.
            if there > most:
                most = there
                retries.progressed()
            else:
                until = time.monotonic() + retries.pause(failed)
                while time.monotonic() < until:
                    progress(there, content.size)
                    time.sleep(_TICK)

    def _receive(self, content: RemoteContent, partial: Path, progress: Progress) -> None:
        """Receive the bytes that the partial file lacks and append them. Raises one of the errors in `BROKEN`,
        `FailedAttemptError` if repeating the request may help, or else the error from `explain`."""
        there = size_of(partial)
        headers = {"accept-encoding": "identity", **content.headers}
        if there:
            headers["range"] = f"bytes={there}-"
        with self._client.stream(
            "GET", content.url, headers=headers, timeout=self._seconds, follow_redirects=True
        ) as response:
            self._has_answered = True
            if there and response.status_code == _RANGE_NOT_SATISFIABLE:
                # The bytes here are as many as the file has, or more.
                partial.unlink()
                raise FailedAttemptError(_broken(content, 0), 0.0, costs=0)
            if response.is_error:
                raise failed_attempt(response, self._explain(response, content))
            resumes = response.status_code == _PARTIAL_CONTENT
            there = there if resumes else 0
            size = content.size
            if size is None and "content-encoding" not in response.headers:
                length = response.headers.get("content-length")
                size = min(content.most, there + int(length)) if length is not None else None
            with open(partial, "ab" if resumes else "wb") as out:
                for piece in read_pieces(response):
                    out.write(piece)
                    there += len(piece)
                    if there > (content.most if size is None else size):
                        # It is another file, so the rest is not needed.
                        return
                    progress(there, size)
        if content.size is not None and there < content.size:
            raise httpx2.RemoteProtocolError("the answer is too short")


def size_of(path: Path) -> int:
    """Return the size of a file in bytes, or 0 if it does not exist."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _broken(content: RemoteContent, there: int) -> UserError:
    size = "" if content.size is None else f" of {format_bytes(content.size)}"
    return UserError(
        f"{content.name}: the connection broke at {format_bytes(there)}{size}.",
        "The bytes received so far are kept; try again to continue.",
    )
