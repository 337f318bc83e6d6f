"""Fetching a model from a hub, by the hub's own client: at one commit, checked file by file, and going on where a
transfer was broken off.

The client itself begins a broken file anew with each process; so the bytes are written here, beside the place that
the client's cache has for them, until the file is whole. Only what an evaluator is read from is fetched: weights,
config, tokenizer and card, never code. Needs no PyTorch.
"""

import errno
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from huggingface_hub import HfApi, constants, get_hf_file_metadata, hf_hub_download, hf_hub_url
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils import (  # type: ignore[attr-defined]  # it lists what it has at run time only
    build_hf_headers,
    hf_raise_for_status,
    http_stream_backoff,
    httpx,
)

from stepsight.core.errors import UserError
from stepsight.core.files import write_json
from stepsight.core.models.fetched import (
    Fetched,
    cache_of_hub,
    digest_of,
    find_fetched,
    free_disk,
    is_hash,
    save_fetched,
    storage_folder,
)
from stepsight.core.models.location import ADAPTER, CARD, UNPICKLE
from stepsight.core.models.repositories import known_card
from stepsight.core.sizes import sized

Progress = Callable[[int, int], None]
"""Called with the bytes that are here and those that there are; what it raises ends the transfer."""

NEWEST = "main"

_WEIGHTS = re.compile(r"[\w.-]+\.safetensors")
_PICKLES = re.compile(r"pytorch_model[\w.-]*\.bin")
_OTHERS = re.compile(
    r"[\w.-]+\.json|[\w.-]+\.jinja|tokenizer\.model|spiece\.model|vocab\.txt|merges\.txt|README\.md"
)
_SECONDS = 10
# Transfers in a row that brought nothing, and the seconds before the next one.
_PAUSES = (1, 2, 4, 8)
_CHUNK = 1 << 20
# Kept free on the disk for what else is written.
_RESERVE = 200_000_000


@dataclass(frozen=True)
class RemoteFile:
    """A file of a model: `digest` is the SHA-256 of its content where `is_sha256`, else what Git calls that."""

    name: str
    size: int
    digest: str
    is_sha256: bool


@dataclass(frozen=True)
class Remote:
    """A model on the hub at a commit, the `revision`, and those of its files that are fetched."""

    repo: str
    revision: str
    files: tuple[RemoteFile, ...]

    @property
    def size(self) -> int:
        """All bytes."""
        return sum(file.size for file in self.files)

    @property
    def weights(self) -> int:
        """The bytes of its weights."""
        return sum(file.size for file in self.files if not _OTHERS.fullmatch(file.name))

    @property
    def here(self) -> int:
        """The bytes that came before."""
        return sum(_here(self, file) for file in self.files)


def look_up(repo: str, revision: str = NEWEST) -> Remote:
    """What the hub has of a model, asked now.

    Raises `UserError` where it has no such model or revision, does not give it to us, or cannot be reached, and
    where the model has no weights that we read.
    """
    with _explained(repo, revision):
        info = HfApi().model_info(repo, revision=revision, files_metadata=True, timeout=_SECONDS)
        files = _wanted(repo, info.siblings or [])
        commit = _digest(info.sha)
        # A gated model shows its list of files to everybody.
        url = hf_hub_url(repo, files[0].name, revision=commit)
        get_hf_file_metadata(url, timeout=_SECONDS)
    return Remote(repo, commit, files)


def check_disk(remote: Remote) -> None:
    """Raises `UserError` where the disk has no room for what is missing."""
    missing = remote.size - remote.here
    free = free_disk()
    if free is not None and missing and free < missing + _RESERVE:
        raise UserError(
            f"{remote.repo} takes {sized(missing)} more on the disk, {sized(free)} are free in {cache_of_hub()}.",
            "Make room, or name a folder on another disk with HF_HUB_CACHE.",
        )


def fetch(remote: Remote, progress: Progress | None = None, card: dict[str, Any] | None = None) -> Fetched:
    """Bring what is missing of a model here, and note that it is whole.

    `card` is written as its stepsight.json where its authors made none. Raises `UserError` where it cannot be
    brought; what came before a transfer broke stays, and the next call goes on from there.
    """
    there = find_fetched(remote.repo)
    if there is not None and there.revision == remote.revision:
        return there
    check_disk(remote)
    folder = storage_folder(remote.repo)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".stepsight.lock", timeout=0), _explained(remote.repo, remote.revision):
            _Transfer(remote, progress or _ignore).run()
    except Timeout:
        raise UserError(f"{remote.repo} is being fetched already.", "Wait for that to end.") from None
    except OSError as error:
        raise _unwritable(remote, error) from None
    fetched = Fetched(remote.repo, remote.revision, {file.name: file.size for file in remote.files})
    if card and CARD not in fetched.files:
        write_json(fetched.folder / CARD, card)
    save_fetched(fetched)
    return fetched


class _Transfer:
    """Brings the files of a model, one after the other."""

    def __init__(self, remote: Remote, progress: Progress) -> None:
        self._remote, self._progress = remote, progress
        self._before = 0

    def run(self) -> None:
        for file in self._remote.files:
            blob = _blob(self._remote, file)
            if not _is_here(blob, file):
                self._bring(file)
            # It knows the file by its name, asks the hub what it is now, and links what is here.
            hf_hub_download(self._remote.repo, file.name, revision=self._remote.revision, etag_timeout=_SECONDS)
            self._before += file.size
            self._tell(0)

    def _tell(self, there: int) -> None:
        self._progress(self._before + there, self._remote.size)

    def _bring(self, file: RemoteFile) -> None:
        partial = _partial(self._remote, file)
        partial.parent.mkdir(parents=True, exist_ok=True)
        if _size(partial) > file.size:
            partial.unlink()
        self._receive_whole(file, partial)
        if self._digest(file, partial) != file.digest:
            partial.unlink()
            raise UserError(
                f"{self._remote.repo}: {file.name} is not the file that the hub lists.",
                "It was damaged on its way and is not kept; try again.",
            )
        os.replace(partial, _blob(self._remote, file))

    def _receive_whole(self, file: RemoteFile, partial: Path) -> None:
        """Receive what is missing of a file, in several transfers where they break."""
        pauses = iter(_PAUSES)
        while (before := _size(partial)) < file.size or not partial.exists():
            try:
                self._receive(file, partial, before)
            except httpx.TransportError as error:
                self._break(partial, before, file, error)
            if _size(partial) > before:
                pauses = iter(_PAUSES)
                continue
            if _size(partial) == file.size:
                return
            pause = next(pauses, None)
            if pause is None:
                raise _broken(self._remote, file, _size(partial))
            self._wait(pause, _size(partial))

    def _break(self, partial: Path, before: int, file: RemoteFile, error: Exception) -> None:
        """Say at once that there is no connection where there was none to begin with."""
        if isinstance(error, httpx.ConnectError) and _size(partial) == before == 0 and not self._before:
            raise error

    def _receive(self, file: RemoteFile, partial: Path, start: int) -> None:
        headers = build_hf_headers() | {"accept-encoding": "identity"}
        if start:
            headers["range"] = f"bytes={start}-"
        # Each time from the hub, since the address that it leads to holds for a while only.
        url = hf_hub_url(self._remote.repo, file.name, revision=self._remote.revision)
        request = http_stream_backoff(
            "GET", url, headers=headers, timeout=_SECONDS, max_retries=0, follow_redirects=True
        )
        with request as response:
            hf_raise_for_status(response)
            resumes = response.status_code == 206
            there = start if resumes else 0
            with open(partial, "ab" if resumes else "wb") as out:
                for chunk in response.iter_bytes():
                    out.write(chunk)
                    there += len(chunk)
                    self._tell(min(there, file.size))

    def _wait(self, seconds: float, there: int) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._tell(there)
            time.sleep(0.1)

    def _digest(self, file: RemoteFile, partial: Path) -> str:
        return digest_of(partial, is_sha256=file.is_sha256, told=lambda: self._tell(file.size))


def _wanted(repo: str, siblings: list[Any]) -> tuple[RemoteFile, ...]:
    """The files that are read, the small ones first: what is wrong with a model shows before its weights come."""
    names = [one.rfilename for one in siblings]
    if ADAPTER in names or known_card(repo).keys() & {"base", "reference", "subfolder"}:
        raise UserError(
            f"{repo} needs another model beside it, or has its weights in a folder, which is not fetched so.",
            f"Give it as --evaluator {repo}, which brings all of it.",
        )
    patterns = [_OTHERS]
    if any(_WEIGHTS.fullmatch(name) for name in names):
        patterns.append(_WEIGHTS)
    elif any(_PICKLES.fullmatch(name) for name in names):
        patterns.append(_PICKLES)
    else:
        raise UserError(f"the model {repo!r} has no weights on the model hub that can be read.", UNPICKLE)
    chosen = [one for one in siblings if any(pattern.fullmatch(one.rfilename) for pattern in patterns)]
    return tuple(sorted(map(_file, chosen), key=lambda file: (file.size, file.name)))


def _file(sibling: Any) -> RemoteFile:
    if sibling.lfs is not None:
        return RemoteFile(sibling.rfilename, int(sibling.lfs["size"]), _digest(sibling.lfs["sha256"]), True)
    return RemoteFile(sibling.rfilename, int(sibling.size or 0), _digest(sibling.blob_id), False)


def _digest(text: object) -> str:
    """What the hub calls a file or a commit by, which becomes a part of a path here."""
    if not is_hash(str(text)):
        raise UserError(f"the model hub at {constants.ENDPOINT} names a file by {text!r:.80}, which is no hash.")
    return str(text)


@contextmanager
def _explained(repo: str, revision: str) -> Iterator[None]:
    """Turn what the client raises into a `UserError`."""
    try:
        yield
    except GatedRepoError:
        raise UserError(
            f"{repo} is gated: its owners give it to those who have accepted their terms.",
            f"Accept them at {constants.ENDPOINT}/{repo}, and start StepSight with a token of yours in HF_TOKEN.",
        ) from None
    except RevisionNotFoundError:
        raise UserError(f"{repo} has no revision {revision!r:.60}.", "Name a commit, a branch or a tag.") from None
    except RepositoryNotFoundError:
        raise UserError(
            f"the model hub has no model {repo!r:.100} that it gives to you.",
            "Check the name; for a private model, start StepSight with a token of yours in HF_TOKEN.",
        ) from None
    except HFValidationError:
        raise UserError(f"{repo!r:.100} is no model's id.", "Give OWNER/NAME.") from None
    except (httpx.TransportError, OfflineModeIsEnabled, LocalEntryNotFoundError) as error:
        raise UserError(
            f"the model hub cannot be reached at {constants.ENDPOINT} ({_reason(error)}).",
            "Check the network, or copy the model to this machine and give its folder with --evaluator.",
        ) from None
    except HfHubHTTPError as error:
        raise UserError(f"the model hub refuses {repo}: {_reason(error)}", "Try again.") from None


def _broken(remote: Remote, file: RemoteFile, there: int) -> UserError:
    return UserError(
        f"{remote.repo}: the connection broke at {sized(there)} of {sized(file.size)} of {file.name}.",
        "What has come is kept; try again to go on from there.",
    )


def _unwritable(remote: Remote, error: OSError) -> UserError:
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        folder = storage_folder(remote.repo)
        return UserError(
            f"{folder}: cannot be written ({error.strerror or error}).", "Name another folder with HF_HUB_CACHE."
        )
    # Or the disk would stay full, which stops everything else on this machine.
    for file in remote.files:
        with suppress(OSError):
            _partial(remote, file).unlink()
    return UserError(
        f"{remote.repo}: the disk is full; the file that was being written is removed again.",
        f"Make room for {sized(remote.size - remote.here)}, or name a folder on another disk with HF_HUB_CACHE.",
    )


def _reason(error: Exception) -> str:
    return f"{' '.join(str(error).split()):.200}" or type(error).__name__


def _blob(remote: Remote, file: RemoteFile) -> Path:
    return storage_folder(remote.repo) / "blobs" / file.digest


def _partial(remote: Remote, file: RemoteFile) -> Path:
    return storage_folder(remote.repo) / "blobs" / f"{file.digest}.stepsight.incomplete"


def _here(remote: Remote, file: RemoteFile) -> int:
    whole = _is_here(_blob(remote, file), file)
    return file.size if whole else min(file.size, _size(_partial(remote, file)))


def _is_here(blob: Path, file: RemoteFile) -> bool:
    return blob.is_file() and _size(blob) == file.size


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _ignore(there: int, whole: int) -> None:
    """Tell nobody how far it is."""
