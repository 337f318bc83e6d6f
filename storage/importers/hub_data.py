"""A hub's dataset, given by `OWNER/NAME` and a revision, fetched by the hub's own client into its cache at one
commit."""

from pathlib import Path

from huggingface_hub import HfApi, hf_hub_download

from stepsight.core.errors import UserError
from stepsight.core.hubs.fetched import NEWEST, cache_of_hub, free_disk
from stepsight.core.hubs.remote import SECONDS, explained
from stepsight.core.sizes import sized
from stepsight.storage.importers.data_files import DataFile, DataFiles, choose_part

_REPOSITORY = "dataset"
# Kept free on the disk for what else is written.
_RESERVE = 200_000_000


def fetch_data(repo: str, revision: str = "", part: str = "") -> DataFiles:
    """The files of one part of a hub's dataset, called `OWNER/NAME@COMMIT` in the store. Files in the cache are not
    fetched again. Raises `UserError` if the hub lacks the dataset, revision or part, refuses access or cannot be
    reached, and if the disk is full."""
    with explained(repo, revision or NEWEST, _REPOSITORY):
        info = HfApi().dataset_info(repo, revision=revision or NEWEST, files_metadata=True, timeout=SECONDS)
        sizes = {one.rfilename: one.size or 0 for one in info.siblings or []}
        names = choose_part(sizes, repo, part)
        commit = info.sha or ""
        _check_room(repo, sum(sizes[name] for name in names))
        files = [DataFile(name, _download(repo, name, commit)) for name in names]
    return DataFiles(repo, files, f"{repo}@{commit}")


def _check_room(repo: str, needed: int) -> None:
    free = free_disk(cache_of_hub())
    if free is not None and free < needed + _RESERVE:
        raise UserError(
            f"{repo} takes {sized(needed)} on the disk, {sized(free)} are free in {cache_of_hub()}.",
            "Make room, or name a folder on another disk with HF_HUB_CACHE.",
        )


def _download(repo: str, name: str, commit: str) -> Path:
    try:
        return Path(hf_hub_download(repo, name, repo_type=_REPOSITORY, revision=commit, etag_timeout=SECONDS))
    except OSError as error:
        if error.errno is None:
            # Of the client, which says more by itself.
            raise
        raise UserError(
            f"{cache_of_hub()}: cannot be written ({error.strerror}).", "Name another folder with HF_HUB_CACHE."
        ) from None
