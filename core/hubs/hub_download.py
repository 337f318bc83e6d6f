"""Downloading an evaluator, and every other repository it needs, from a hub at pinned commits.

The hub's own client puts the files into its cache, one after the other, the smallest first. It restarts the file in
which an earlier transfer was interrupted. Does not need PyTorch.
"""

import errno
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import huggingface_hub
from filelock import FileLock, Timeout
from tqdm import tqdm

from stepsight.core.errors import UserError
from stepsight.core.hubs.hub_cache import (
    HUB_VARIABLE,
    NEWEST,
    HubFile,
    HubModel,
    Kind,
    cache_of_hub,
    check_room,
    find_fetched,
    find_part,
    is_sound,
    save_fetched,
    save_part,
    storage_folder,
)
from stepsight.core.hubs.hub_lookup import explained, list_files, look_up, look_up_part
from stepsight.core.paths import format_bytes

Progress = Callable[[int, int], None]
"""Called with the number of bytes downloaded so far and their total; an exception it raises ends the transfer."""


def check_disk(remote: HubModel) -> None:
    """Raise `UserError` if the disk has no room for the files still to be downloaded."""
    check_room(remote.repo, remote.total - remote.here)


def fetch(remote: HubModel, progress: Progress | None = None, *, wait: bool = False) -> HubModel:
    """Download the missing files of an evaluator and of the models it needs, and record that the evaluator is
    complete.

    If another process is already downloading one of these models, wait for it if `wait` is True and raise
    `UserError` otherwise. Also raises `UserError` if the download fails. Files that arrived before an interruption
    are kept.
    """
    present = find_fetched(remote.repo)
    if present is not None and (present.revision, present.pins) == (remote.revision, remote.pins):
        return present
    _transfer(remote, progress, wait=wait)
    save_fetched(remote)
    return remote


def fetch_if_missing(repo: str, check: Callable[[int], None] | None = None) -> HubModel:
    """Return a downloaded evaluator. If it is missing, download it first, with a progress bar in the terminal.

    `check` is called with its number of parameters before the download, and may raise an error to refuse it.
    Raises `UserError` if it does or if the download fails.
    """
    present = find_fetched(repo)
    if present is not None:
        return present
    remote = look_up(repo)
    if check is not None:
        check(remote.parameters)
    with terminal_bar(remote) as progress:
        return fetch(remote, progress, wait=True)


def fetch_part_if_missing(repo: str, revision: str | None = None, *, weights: bool = True) -> HubModel:
    """Like `fetch_if_missing`, but for a model that is not an evaluator by itself. If `weights` is False, only the
    config, tokenizer and similar files are downloaded. `revision` defaults to the newest."""
    revision = revision or NEWEST
    present = find_part(repo, revision, weights=weights)
    if present is not None:
        return present
    remote = look_up_part(repo, revision, weights=weights)
    with terminal_bar(remote) as progress:
        _transfer(remote, progress, wait=True)
    save_part(revision, remote)
    return remote


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
    files = [listed[name] for name in choose(listed)]
    check_room(repo, sum(file.size for file in files if not file.is_here))
    with _lock_repository(repo, "dataset", wait=True):
        for file in files:
            _download(file)
    return commit, {file.name: file.path for file in files}


@contextmanager
def terminal_bar(remote: HubModel) -> Iterator[Progress]:
    """Announce the transfer on stderr and, if that is a terminal, show a progress bar. Yields the function that
    updates it."""
    others = ", ".join(sorted({part.repo for part in remote.parts.values()}))
    title = f"{remote.repo} at {remote.revision}{f', with {others}' if others else ''}"
    print(f"{title}: {format_bytes(remote.total)}, {format_bytes(remote.here)} already fetched.", file=sys.stderr)
    is_shown = sys.stderr.isatty()
    with tqdm(total=remote.total, unit="B", unit_scale=True, disable=not is_shown, file=sys.stderr) as bar:

        def show(received: int, _: int) -> None:
            bar.update(received - bar.n)

        yield show


def _transfer(remote: HubModel, progress: Progress | None, *, wait: bool) -> None:
    """Download the missing files of a model and of the models it needs. Raises `UserError` if that fails."""
    check_disk(remote)
    repos = sorted({remote.repo, *(part.repo for part in remote.parts.values())})
    received, size = 0, remote.total

    def advance(count: int) -> None:
        nonlocal received
        received += count
        if progress is not None:
            progress(received, size)

    with ExitStack() as locks:
        for repo in repos:
            locks.enter_context(_lock_repository(repo, wait=wait))
        for file in remote.all_files:
            before = received
            _download(file, advance)
            advance(before + file.size - received)


@contextmanager
def _lock_repository(repo: str, kind: Kind = "model", *, wait: bool) -> Iterator[None]:
    """Keep other processes from downloading a repository, and explain why the cache cannot be written."""
    folder = storage_folder(repo, kind)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".stepsight.lock", timeout=-1 if wait else 0):
            yield
    except Timeout:
        raise UserError(f"{repo} is already being fetched.", "Wait until that is done.") from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise UserError(
                f"{repo}: the disk is full; the incomplete file has been removed.",
                f"Free some space, or set {HUB_VARIABLE} to a folder on another disk.",
            ) from None
        raise UserError(
            f"{cache_of_hub()}: cannot be written ({error.strerror or error}).",
            f"Set {HUB_VARIABLE} to another folder.",
        ) from None


def _download(file: HubFile, advance: Callable[[int], None] | None = None) -> None:
    """Download a file into the hub client's cache, unless it is already there. `advance` is called with the number
    of bytes that arrived since the last call. Raises `UserError` if the download fails, and `OSError` if the file
    cannot be written."""
    if file.is_here:
        return

    class ByteCount(tqdm):  # type: ignore[type-arg]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options | {"disable": True})

        def update(self, n: float | None = 1) -> None:
            if advance is not None:
                advance(int(n or 0))

    with explained(file.repo, file.revision, file.kind):
        huggingface_hub.hf_hub_download(
            file.repo,
            file.name,
            repo_type=file.kind,
            revision=file.revision,
            cache_dir=cache_of_hub(),
            # A file of a different size was truncated by something else.
            force_download=file.path.exists(),
            tqdm_class=ByteCount,
        )
    if not file.is_here or not is_sound(file.path):
        file.path.resolve().unlink()
        file.path.unlink(missing_ok=True)
        raise UserError(
            f"{file.repo}/{file.name}: its content does not match the hash on the model hub.",
            "It was changed or damaged in transit, and has been deleted. Fetch it again.",
        )
