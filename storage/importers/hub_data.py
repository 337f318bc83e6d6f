"""A dataset of a hub, by `OWNER/NAME` and a revision: fetched into the cache of the hub's client, at one commit."""

from stepsight.core.errors import UserError
from stepsight.core.hubs.client import explained, hub_downloader, list_files
from stepsight.core.hubs.fetched import NEWEST, cache_of_hub, check_room
from stepsight.core.hubs.fetching import fetch_file
from stepsight.storage.importers.data_files import DataFile, DataFiles, choose_part

_CACHE_OF_HUB = "HF_HUB_CACHE"


def fetch_data(repo: str, revision: str = "", part: str = "") -> DataFiles:
    """The files of one part of a hub's dataset, called `OWNER/NAME@COMMIT` in the store. What is in the cache is
    not fetched again. Raises `UserError` where the hub has no such dataset, revision or part, does not give it to
    us or cannot be reached, and where the disk has no room for it."""
    with explained(repo, revision or NEWEST, "dataset"):
        commit, listed = list_files(repo, revision or NEWEST, "dataset")
    names = choose_part({name: file.size for name, file in listed.items()}, repo, part)
    wanted = [listed[name] for name in names]
    check_room(repo, sum(file.size - file.here for file in wanted), cache_of_hub(), _CACHE_OF_HUB)
    downloader = hub_downloader()
    try:
        files = [DataFile(file.name, fetch_file(file, downloader)) for file in wanted]
    except OSError as error:
        raise UserError(
            f"{cache_of_hub()}: cannot be written ({error.strerror}).",
            f"Name another folder with {_CACHE_OF_HUB}.",
        ) from None
    return DataFiles(repo, files, f"{repo}@{commit}")
