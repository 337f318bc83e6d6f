"""Fetching an evaluator from a hub: at pinned commits, checked file by file, and going on where a transfer was
broken off.

The hub's own client begins a broken file anew with each process; so the bytes are written here, beside the place
that the client's cache has for them, until the file is whole. An evaluator comes with every repository that it
needs, as one transfer. Needs no PyTorch.
"""

import errno
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout
from huggingface_hub import hf_hub_download
from huggingface_hub.utils import httpx  # type: ignore[attr-defined]  # it lists what it has at run time only

from stepsight.core.errors import UserError
from stepsight.core.hubs.fetched import (
    NEWEST,
    Fetched,
    cache_of_hub,
    digest_of,
    find_fetched,
    find_part,
    free_disk,
    save_fetched,
    save_part,
    storage_folder,
)
from stepsight.core.hubs.remote import (
    SECONDS,
    Remote,
    RemoteFile,
    content_of,
    explained,
    look_up,
    look_up_part,
    size_of,
)
from stepsight.core.places import CACHE_VARIABLE, cache_folder
from stepsight.core.sizes import sized

Progress = Callable[[int, int], None]
"""Called with the bytes that are here and those that there are; what it raises ends the transfer."""

# Transfers in a row that brought nothing, and the seconds before the next one.
_PAUSES = (1, 2, 4, 8)
# Kept free on the disk for what else is written.
_RESERVE = 200_000_000


def check_disk(remote: Remote) -> None:
    """Raises `UserError` where the disk has no room for what is missing of all that it needs."""
    missing = remote.size - remote.here
    if not missing:
        return
    hub, ours = cache_of_hub(), cache_folder()
    _check_room(remote, missing, hub, "HF_HUB_CACHE")
    if remote.pickled:
        beside = missing if _disk_of(hub) == _disk_of(ours) else 0
        _check_room(remote, remote.pickled + beside, ours, CACHE_VARIABLE)


def fetch(remote: Remote, progress: Progress | None = None, *, wait: bool = False) -> Fetched:
    """Bring what is missing of an evaluator here, and of all that it needs, and note that it is whole.

    Where another process fetches some of it, that is waited for or refused. Raises `UserError` where it cannot be
    brought; what came before a transfer broke stays, and the next call goes on from there.
    """
    there = find_fetched(remote.repo)
    if there is not None and (there.revision, there.pins) == (remote.revision, remote.pins):
        return there
    _bring(remote, progress, wait=wait)
    fetched = _fetched(remote)
    save_fetched(fetched)
    return fetched


def obtain(repo: str, check: Callable[[Remote], None] | None = None) -> Fetched:
    """An evaluator that was fetched, else fetched now under a bar in the terminal; `check` may refuse what the hub
    has. Raises `UserError`."""
    there = find_fetched(repo)
    if there is not None:
        return there
    remote = look_up(repo)
    if check is not None:
        check(remote)
    with terminal_bar(remote) as progress:
        return fetch(remote, progress, wait=True)


def obtain_part(repo: str, revision: str | None = None, *, weights: bool = True) -> Fetched:
    """As `obtain`, a model that is no evaluator by itself, or only what describes it."""
    asked = revision or NEWEST
    there = find_part(repo, asked, weights=weights)
    if there is not None:
        return there
    remote = look_up_part(repo, asked, weights=weights)
    with terminal_bar(remote) as progress:
        _bring(remote, progress, wait=True)
    fetched = _fetched(remote)
    save_part(asked, fetched)
    return fetched


@contextmanager
def terminal_bar(remote: Remote) -> Iterator[Progress]:
    """What there is to bring, said on stderr, and in a terminal a bar of how far it is."""
    # Few processes fetch something.
    from tqdm import tqdm

    beside = ", ".join(sorted({part.repo for part in remote.parts.values()}))
    told = f"{remote.repo} at {remote.revision}{f', with {beside}' if beside else ''}"
    print(f"{told}: {sized(remote.size)}, {sized(remote.here)} of it here.", file=sys.stderr)
    shown = sys.stderr.isatty()
    with tqdm(total=remote.size, unit="B", unit_scale=True, disable=not shown, file=sys.stderr) as bar:

        def show(there: int, _: int) -> None:
            bar.update(there - bar.n)

        yield show


def _bring(remote: Remote, progress: Progress | None, *, wait: bool) -> None:
    """Transfer what is missing of a model and of its parts. Raises `UserError`."""
    check_disk(remote)
    repos = sorted({remote.repo, *(part.repo for part in remote.parts.values())})
    try:
        with ExitStack() as held:
            for repo in repos:
                held.enter_context(_lock(repo, wait=wait))
            _Transfer(remote, progress or _ignore).run()
    except OSError as error:
        raise _unwritable(remote, error) from None


@contextmanager
def _lock(repo: str, *, wait: bool) -> Iterator[None]:
    folder = storage_folder(repo)
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".stepsight.lock", timeout=-1 if wait else 0)
    try:
        lock.acquire()
    except Timeout:
        raise UserError(f"{repo} is being fetched already.", "Wait for that to end.") from None
    try:
        yield
    finally:
        lock.release()


def _fetched(remote: Remote) -> Fetched:
    parts = {key: _fetched(part) for key, part in remote.parts.items()}
    return Fetched(remote.repo, remote.revision, {file.name: file.size for file in remote.files}, parts=parts)


class _Transfer:
    """Brings the files of a model and of its parts, one after the other."""

    def __init__(self, remote: Remote, progress: Progress) -> None:
        self._progress = progress
        self._files, self._size = remote.all_files, remote.size
        self._before = 0

    def run(self) -> None:
        for file in self._files:
            with explained(file.repo, file.revision):
                if not file.is_here:
                    self._bring(file)
                # It knows the file by its name, asks the hub what it is now, and links what is here.
                hf_hub_download(file.repo, file.name, revision=file.revision, etag_timeout=SECONDS)
            self._before += file.size
            self._tell(0)

    def _tell(self, there: int) -> None:
        self._progress(self._before + there, self._size)

    def _bring(self, file: RemoteFile) -> None:
        file.partial.parent.mkdir(parents=True, exist_ok=True)
        if size_of(file.partial) > file.size:
            file.partial.unlink()
        self._receive_whole(file)
        if self._digest(file) != file.digest:
            file.partial.unlink()
            raise UserError(
                f"{file.repo}: {file.name} is not the file that the hub lists.",
                "It was damaged on its way and is not kept; try again.",
            )
        os.replace(file.partial, file.blob)

    def _receive_whole(self, file: RemoteFile) -> None:
        """Receive what is missing of a file, in several transfers where they break."""
        pauses = iter(_PAUSES)
        while (before := size_of(file.partial)) < file.size or not file.partial.exists():
            try:
                self._receive(file, before)
            except httpx.TransportError as error:
                self._break(file, before, error)
            if size_of(file.partial) > before:
                pauses = iter(_PAUSES)
                continue
            if size_of(file.partial) == file.size:
                return
            pause = next(pauses, None)
            if pause is None:
                raise _broken(file)
            self._wait(pause, size_of(file.partial))

    def _break(self, file: RemoteFile, before: int, error: Exception) -> None:
        """Say at once that there is no connection where there was none to begin with."""
        if isinstance(error, httpx.ConnectError) and size_of(file.partial) == before == 0 and not self._before:
            raise error

    def _receive(self, file: RemoteFile, start: int) -> None:
        with content_of(file, start) as (resumes, chunks):
            there = start if resumes else 0
            with open(file.partial, "ab" if resumes else "wb") as out:
                for chunk in chunks:
                    out.write(chunk)
                    there += len(chunk)
                    self._tell(min(there, file.size))

    def _wait(self, seconds: float, there: int) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._tell(there)
            time.sleep(0.1)

    def _digest(self, file: RemoteFile) -> str:
        return digest_of(file.partial, is_sha256=file.is_sha256, told=lambda: self._tell(file.size))


def _check_room(remote: Remote, needed: int, folder: Path, variable: str) -> None:
    free = free_disk(folder)
    if free is not None and free < needed + _RESERVE:
        raise UserError(
            f"{remote.repo} takes {sized(needed)} more on the disk, {sized(free)} are free in {folder}.",
            f"Make room, or name a folder on another disk with {variable}.",
        )


def _disk_of(folder: Path) -> int | None:
    """What tells the disk of a folder, which need not exist, from others."""
    for one in (folder, *folder.parents):
        with suppress(OSError):
            return one.stat().st_dev
    return None


def _broken(file: RemoteFile) -> UserError:
    there = size_of(file.partial)
    return UserError(
        f"{file.repo}: the connection broke at {sized(there)} of {sized(file.size)} of {file.name}.",
        "What has come is kept; try again to go on from there.",
    )


def _unwritable(remote: Remote, error: OSError) -> UserError:
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        folder = storage_folder(remote.repo)
        return UserError(
            f"{folder}: cannot be written ({error.strerror or error}).", "Name another folder with HF_HUB_CACHE."
        )
    # Or the disk would stay full, which stops everything else on this machine.
    for file in remote.all_files:
        with suppress(OSError):
            file.partial.unlink()
    return UserError(
        f"{remote.repo}: the disk is full; the file that was being written is removed again.",
        f"Make room for {sized(remote.size - remote.here)}, or name a folder on another disk with HF_HUB_CACHE.",
    )


def _ignore(there: int, whole: int) -> None:
    """Tell nobody how far it is."""
