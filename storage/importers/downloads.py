"""Fetching a public file once: checked by its hash, and kept in the cache."""

from pathlib import Path

import httpx2

from stepsight.core.errors import UserError
from stepsight.core.files.atomic import digest_of
from stepsight.core.net.download import Downloader, Progress, RemoteContent
from stepsight.core.net.http import client_options, reason
from stepsight.core.paths import CACHE_VARIABLE, cache_folder
from stepsight.storage.importers.kind import PublicFile

_SECONDS = 30.0
_BY_HAND = "Check the network, or fetch the file by hand and import it by its path."


def _ignore(there: int, size: int | None) -> None:
    """Tell nobody how far it is."""


def fetch(file: PublicFile, progress: Progress = _ignore) -> Path:
    """The path of the file in the cache, fetched if it is not there.

    It appears there whole or not at all; what came before a transfer was cut off is kept, and the next one goes on
    from it. Raises `UserError` if its hash is not known or is another, if the server cannot be reached or refuses,
    and if the cache cannot be written.
    """
    if file.digest is None:
        raise UserError(
            f"{file.url}: there is no known SHA-256 to check the file by.", "Give the one you expect with --sha256."
        )
    path = cache_folder() / "downloads" / file.digest / file.name
    try:
        if path.is_file() and digest_of(path, file.digest) == file.digest:
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        with httpx2.Client(**client_options(_SECONDS)) as client:
            content = RemoteContent(file.url, file.url, file.digest)
            Downloader(client, _refusal, _SECONDS).download(content, path, progress)
    except httpx2.HTTPError as error:
        raise UserError(f"{file.url}: cannot be fetched ({reason(error)}).", _BY_HAND) from None
    except OSError as error:
        raise UserError(
            f"{path}: cannot be written ({error.strerror or error}).", f"Name another folder with {CACHE_VARIABLE}."
        ) from None
    return path


def _refusal(response: httpx2.Response, content: RemoteContent) -> UserError:
    status = f"{response.status_code} {response.reason_phrase}".strip()
    return UserError(f"{content.name}: the server answers {status}.", _BY_HAND)
