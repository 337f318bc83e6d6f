"""Downloading an evaluator, and every other repository it needs, from a hub at pinned commits in one transfer.

The hub's own client restarts an interrupted file from the beginning. We therefore use our own downloader to put the
content into the client's cache. Does not need PyTorch.
"""

import errno
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

from filelock import FileLock, Timeout
from tqdm import tqdm

from stepsight.core.errors import UserError
from stepsight.core.hubs.client import RemoteFile, content_of, explained, hub_downloader, link_file, list_files
from stepsight.core.hubs.hub_cache import (
    NEWEST,
    Fetched,
    Kind,
    cache_of_hub,
    check_room,
    find_fetched,
    find_part,
    save_fetched,
    save_part,
    storage_folder,
)
from stepsight.core.hubs.hub_lookup import Remote, look_up, look_up_part
from stepsight.core.net.download import Downloader
from stepsight.core.net.download import Progress as FileProgress
from stepsight.core.paths import CACHE_VARIABLE, cache_folder, format_bytes

Progress = Callable[[int, int], None]
"""Called with the number of bytes here and their total; an exception it raises ends the transfer."""

_CACHE_OF_HUB = "HF_HUB_CACHE"


def _ignore(there: int, whole: int | None) -> None:
    """Do nothing: the progress callback of a download without a progress bar."""


def check_disk(remote: Remote) -> None:
    """Raise `UserError` if the disk has no room for the files still to be downloaded or for the conversion of
    pickled weights."""
    missing = remote.size - remote.here
    if not missing:
        return
    hub, ours = cache_of_hub(), cache_folder()
    check_room(remote.repo, missing, hub, _CACHE_OF_HUB)
    if remote.pickled:
        beside = missing if _disk_of(hub) == _disk_of(ours) else 0
        check_room(remote.repo, remote.pickled + beside, ours, CACHE_VARIABLE)


def fetch(remote: Remote, progress: Progress | None = None, *, wait: bool = False) -> Fetched:
    """Download the missing files of an evaluator and of the models it needs, and record that the evaluator is
    complete.

    If another process is already downloading one of these models, wait for it if `wait` is True and raise
    `UserError` otherwise. Also raises `UserError` if the download fails. Bytes that arrived before an interruption
    are kept, and the next call continues from there.
    """
    there = find_fetched(remote.repo)
    if there is not None and (there.revision, there.pins) == (remote.revision, remote.pins):
        return there
    _bring(remote, progress, wait=wait)
    fetched = _fetched(remote)
    save_fetched(fetched)
    return fetched


def fetch_if_missing(repo: str, check: Callable[[int], None] | None = None) -> Fetched:
    """Return a downloaded evaluator. If it is missing, download it first, with a progress bar in the terminal.

    `check` is called with its number of parameters before the download, and may raise an error to refuse it.
    Raises `UserError` if it does or if the download fails.
    """
    there = find_fetched(repo)
    if there is not None:
        return there
    remote = look_up(repo)
    if check is not None:
        check(remote.parameters)
    with terminal_bar(remote) as progress:
        return fetch(remote, progress, wait=True)


def fetch_part_if_missing(repo: str, revision: str | None = None, *, weights: bool = True) -> Fetched:
    """Like `fetch_if_missing`, but for a model that is not an evaluator by itself. If `weights` is False, only the
    config, tokenizer and similar files are downloaded. `revision` defaults to the newest."""
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


def fetch_dataset(
    repo: str, revision: str, choose: Callable[[Iterable[str]], Iterable[str]]
) -> tuple[str, dict[str, Path]]:
    """Download files of a dataset on the hub. Returns the commit, and the path of each file by name.

    `choose` receives all file names and returns those to download. An empty `revision` means the newest one. Files
    in the cache are not downloaded again. Raises `UserError` if the download fails.
    """
    revision = revision or NEWEST
    with explained(repo, revision, "dataset"):
        commit, listed = list_files(repo, revision, "dataset")
    wanted = [listed[name] for name in choose(listed)]
    check_room(repo, sum(file.size - file.here for file in wanted), cache_of_hub(), _CACHE_OF_HUB)
    try:
        with _lock(repo, "dataset", wait=True), hub_downloader() as downloader:
            return commit, {file.name: _fetch_file(file, downloader, _ignore) for file in wanted}
    except OSError as error:
        raise _unwritable(repo, wanted, error) from None


@contextmanager
def terminal_bar(remote: Remote) -> Iterator[Progress]:
    """Announce the transfer on stderr and, if that is a terminal, show a progress bar. Yields the function that
    updates it."""
    beside = ", ".join(sorted({part.repo for part in remote.parts.values()}))
    told = f"{remote.repo} at {remote.revision}{f', with {beside}' if beside else ''}"
    print(f"{told}: {format_bytes(remote.size)}, {format_bytes(remote.here)} of it here.", file=sys.stderr)
    shown = sys.stderr.isatty()
    with tqdm(total=remote.size, unit="B", unit_scale=True, disable=not shown, file=sys.stderr) as bar:

        def show(there: int, _: int) -> None:
            bar.update(there - bar.n)

        yield show


def _bring(remote: Remote, progress: Progress | None, *, wait: bool) -> None:
    """Download the missing files of a model and of the models it needs. Raises `UserError` if that fails."""
    check_disk(remote)
    repos = sorted({remote.repo, *(part.repo for part in remote.parts.values())})
    try:
        with ExitStack() as held:
            for repo in repos:
                held.enter_context(_lock(repo, wait=wait))
            _transfer(remote, progress or _ignore)
    except OSError as error:
        raise _unwritable(remote.repo, remote.all_files, error) from None


@contextmanager
def _lock(repo: str, kind: Kind = "model", *, wait: bool) -> Iterator[None]:
    folder = storage_folder(repo, kind)
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


def _transfer(remote: Remote, progress: Progress) -> None:
    """Download the files of a model and of the models it needs, one after the other."""
    before, size = 0, remote.size
    with hub_downloader() as downloader:
        for file in remote.all_files:
            _fetch_file(file, downloader, partial(_tell, progress, size, before))
            before += file.size
            progress(before, size)


def _tell(progress: Progress, size: int, before: int, there: int, _: int | None) -> None:
    progress(before + there, size)


def _fetch_file(file: RemoteFile, downloader: Downloader, progress: FileProgress) -> Path:
    """Download one file into the hub client's cache, unless it is already there, and return its path. Raises
    `UserError` if the download fails, and `OSError` if the file cannot be written."""
    with explained(file.repo, file.revision, file.kind):
        if not file.is_here:
            file.blob.parent.mkdir(parents=True, exist_ok=True)
            downloader.download(content_of(file), file.blob, progress)
        return link_file(file)


def _disk_of(folder: Path) -> int | None:
    """Return the device number of the disk that holds a folder, or None if unknown. The folder need not exist."""
    for one in (folder, *folder.parents):
        with suppress(OSError):
            return one.stat().st_dev
    return None


def _unwritable(repo: str, files: Sequence[RemoteFile], error: OSError) -> UserError:
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return UserError(
            f"{cache_of_hub()}: cannot be written ({error.strerror or error}).",
            f"Name another folder with {_CACHE_OF_HUB}.",
        )
    # Or the disk would stay full, which stops everything else on this machine.
    for file in files:
        with suppress(OSError):
            file.partial.unlink()
    missing = format_bytes(sum(file.size - file.here for file in files))
    return UserError(
        f"{repo}: the disk is full; the file that was being written is removed again.",
        f"Make room for {missing}, or name a folder on another disk with {_CACHE_OF_HUB}.",
    )
