"""Evaluators that were downloaded completely from a model hub, with their revisions and descriptions.

They are stored in the hub client's cache, each in a folder `models--OWNER--NAME`. A `stepsight.json` in that folder
records the revision. It is written when all files have arrived, so a folder without it does not count as an
evaluator. Does not need PyTorch.
"""

import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from huggingface_hub import constants
from pydantic import AfterValidator, ConfigDict, Field

from stepsight.core.errors import UserError
from stepsight.core.evaluator_summary import EvaluatorSummary
from stepsight.core.files.whole_files import digest_of, read_json, write_json
from stepsight.core.hubs.checkpoint_files import CARD, is_hub_id
from stepsight.core.paths import CACHE_VARIABLE, cache_folder, format_bytes
from stepsight.core.validation import Model, invalid, validate

_RECORD = "stepsight.json"
# The record of models that are not themselves evaluators, by requested revision.
_PARTS = "stepsight-parts.json"
_WEIGHTS = (".safetensors", ".bin")
NEWEST = "main"
"""The default revision."""
HUB_VARIABLE = "HF_HUB_CACHE"
"""The environment variable with the folder of the hub client's cache."""

_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_LONGEST_NAME = 500
# Bytes kept free on the disk for other files.
_RESERVE = 200_000_000

Kind = Literal["model", "dataset"]
"""The kind of a hub's repository."""


def is_hash(text: str) -> bool:
    """True if the text has the form of a hub's hash of a file or commit."""
    return _HASH.fullmatch(text) is not None


def is_file_name(name: str) -> bool:
    """True if a name in a repository names a file below the folder of the repository, on every system."""
    is_plain = len(name) <= _LONGEST_NAME and name.isprintable() and "\\" not in name
    return is_plain and all(part.strip(". ") for part in name.split("/"))


def _is_stored(repo: str) -> bool:
    """True if a text is the id of a repository from which the name of its folder in the cache is made."""
    return is_hub_id(repo) and "--" not in repo


def _check_repo(repo: str) -> str:
    if not _is_stored(repo):
        raise invalid("not the name of a model.")
    return repo


def _check_file(name: str) -> str:
    if not is_file_name(name):
        raise invalid("not a file of a model.")
    return name


# A damaged record may hold a number far larger than any float.
_Count = Annotated[int, Field(ge=0, lt=2**63)]


class FetchedWeights(Model):
    """The weights of a model and of the models that it needs: how many there are, and the type in which they are
    stored. If `is_chosen` is True, the model's stepsight.json names this type, for every device."""

    count: _Count
    dtype: str
    is_chosen: bool = False


@dataclass(frozen=True)
class HubFile:
    """A file in a repository at the commit `revision`."""

    repo: str
    revision: str
    name: str
    size: int
    kind: Kind = "model"

    @property
    def path(self) -> Path:
        """The path under which the hub's client stores the file."""
        return storage_folder(self.repo, self.kind) / "snapshots" / self.revision / self.name

    @property
    def is_here(self) -> bool:
        """True if the file is present at full length."""
        return size_of(self.path) == self.size


class HubModel(Model):
    """A model of a hub at the commit `revision`, as the hub describes it, and as its record does once it has been
    downloaded.

    `files` maps the names of the files that are needed to their sizes in bytes. `parts` maps a `part_key` to each
    other model that it needs, such as the base of an adapter. `descriptions` maps weight types to the summary
    recorded when the model was opened with that type, and `weights` describes the weights found then, or is None if
    it has not been opened. `failure` is the reason why it could not be opened, or "". Ids and names are validated,
    because paths are built from them.
    """

    model_config = Model.model_config | ConfigDict(extra="ignore")

    repo: Annotated[str, AfterValidator(_check_repo)]
    revision: Annotated[str, Field(pattern=f"^(?:{_HASH.pattern})$")]
    files: dict[Annotated[str, AfterValidator(_check_file)], _Count] = Field(default_factory=dict)
    descriptions: dict[str, EvaluatorSummary] = Field(default_factory=dict)
    parts: "dict[str, HubModel]" = Field(default_factory=dict)
    weights: FetchedWeights | None = None
    failure: str = ""

    @property
    def name(self) -> str:
        """The name of the model without its owner."""
        return self.repo.partition("/")[2]

    @property
    def folder(self) -> Path:
        return storage_folder(self.repo) / "snapshots" / self.revision

    @property
    def all_files(self) -> list[HubFile]:
        """The files of the model and of the models it needs, smallest first, so that a faulty model is noticed
        before its weights arrive."""
        models = (self, *self.parts.values())
        files = {
            HubFile(model.repo, model.revision, name, size)
            for model in models
            for name, size in model.files.items()
        }
        return sorted(files, key=lambda file: (file.size, file.repo, file.name))

    @property
    def total(self) -> int:
        """The size in bytes of `all_files`."""
        return sum(file.size for file in self.all_files)

    @property
    def here(self) -> int:
        """The number of bytes of `all_files` that have been downloaded."""
        return sum(file.size for file in self.all_files if file.is_here)

    @property
    def own_size(self) -> int:
        """The size of the model's own weights in bytes."""
        return sum(size for name, size in self.files.items() if name.endswith(_WEIGHTS))

    @property
    def size(self) -> int:
        """The size in bytes of all weights, including those of the models that this model needs."""
        return sum(file.size for file in self.all_files if file.name.endswith(_WEIGHTS))

    @property
    def parameters(self) -> int:
        """The approximate number of parameters, assuming that each takes two bytes, as in most models."""
        return self.size // 2

    @property
    def pins(self) -> dict[str, str]:
        """The commits of the other models that this model needs, by `part_key`."""
        return {key: part.revision for key, part in self.parts.items()}

    @property
    def is_whole(self) -> bool:
        """True if all files of the model and of the models it needs are present at full length."""
        return all(file.is_here for file in self.all_files)

    def described(self, dtype: str, description: EvaluatorSummary) -> "HubModel":
        """Return a copy in which `description` is the summary for the weight type `dtype`."""
        return self.model_copy(update={"descriptions": {**self.descriptions, dtype: description}, "failure": ""})


def cache_of_hub() -> Path:
    """Return the folder in which the hub's client stores models."""
    # Done as in the client, which also works for users without a home folder.
    return Path(os.path.expanduser(constants.HF_HUB_CACHE))


def is_from_hub(folder: Path) -> bool:
    """True if a folder is in the hub client's cache, so that its content comes from strangers."""
    return folder.resolve().is_relative_to(cache_of_hub().resolve())


def caches() -> dict[str, str]:
    """Return the folders in which this process stores models, for `use_caches` in a child."""
    return {"hub": str(cache_of_hub()), "own": str(cache_folder())}


def use_caches(folders: Mapping[str, str]) -> None:
    """Make this process store models in the folders of its parent."""
    constants.HF_HUB_CACHE = folders["hub"]
    os.environ[CACHE_VARIABLE] = folders["own"]


def free_disk() -> int | None:
    """Return the number of free bytes on the disk that holds the hub client's cache, or None if unknown. The cache
    need not exist yet."""
    folder = cache_of_hub()
    for ancestor in (folder, *folder.parents):
        with suppress(OSError):
            return shutil.disk_usage(ancestor).free
    return None


def check_room(what: str, needed: int) -> None:
    """Raise `UserError` if the disk that holds the hub client's cache has no room for `needed` bytes. `what` names
    the download in the message."""
    free = free_disk()
    if needed and free is not None and free < needed + _RESERVE:
        raise UserError(
            f"{what} needs {format_bytes(needed)} of disk space, but only {format_bytes(free)} are free in "
            f"{cache_of_hub()}.",
            f"Free some space, or set {HUB_VARIABLE} to a folder on another disk.",
        )


def storage_folder(repo: str, kind: Kind = "model") -> Path:
    """Return the folder of a repository in the hub client's cache, following the cache's documented layout. Raises
    `ValueError` if the id is invalid."""
    if not _is_stored(repo):
        raise ValueError(f"{repo!r} is not the id of a repository")
    return cache_of_hub() / f"{kind}s--{repo.replace('/', '--')}"


def part_key(repo: str, revision: str) -> str:
    """Return the key under which an evaluator records that it needs the model `repo` at `revision`."""
    return f"{repo}@{revision}"


def save_fetched(fetched: HubModel) -> None:
    """Record that an evaluator has been downloaded. Raises `UserError` if the record cannot be written."""
    write_json(storage_folder(fetched.repo) / _RECORD, fetched.model_dump(mode="json"))


def read_card_file(path: Path) -> dict[str, Any]:
    """Read a stepsight.json that is meant for a model of a hub. Raises `UserError` if it is not a JSON object or
    has no keys."""
    card = read_json(path)
    if not card:
        raise UserError(f"{path}: it is empty.", 'Write, for example, {"template": {"separator": "\\n"}}.')
    return card


def keep_card(fetched: HubModel, card: Mapping[str, Any]) -> HubModel:
    """Write `card` as the stepsight.json that an evaluator's repository lacks, beside its files, and discard what
    was recorded without it. Raises `UserError` if it cannot be written."""
    write_json(fetched.folder / CARD, dict(card))
    fetched = fetched.model_copy(update={"descriptions": {}, "weights": None, "failure": ""})
    save_fetched(fetched)
    return fetched


def kept_card(repo: str, revision: str) -> dict[str, Any]:
    """Return the card that `keep_card` wrote for a repository at a commit, or an empty dict."""
    return _read_object(storage_folder(repo) / "snapshots" / revision / CARD)


def save_part(requested: str, fetched: HubModel) -> None:
    """Record that a model other than an evaluator has been downloaded, in response to a request for the revision
    `requested`.

    Raises `UserError` if the record cannot be written.
    """
    path = storage_folder(fetched.repo) / _PARTS
    write_json(path, _read_object(path) | {requested: fetched.model_dump(mode="json")})


def find_part(repo: str, requested: str, *, weights: bool = True) -> HubModel | None:
    """Return the model downloaded for the revision `requested` or, failing that, the evaluator downloaded at this
    revision. Returns None if neither download is complete. If `weights` is True, a model downloaded without
    weights is ignored."""
    try:
        fetched = _read_whole(_read_object(storage_folder(repo) / _PARTS).get(requested), repo)
    except ValueError:
        return None
    if fetched is not None and (fetched.own_size or not weights):
        return fetched
    evaluator = find_fetched(repo)
    return evaluator if evaluator is not None and requested in (NEWEST, evaluator.revision) else None


def find_fetched(repo: str) -> HubModel | None:
    """Return the downloaded evaluator with this id, or None if it is missing or incomplete or the id is invalid."""
    try:
        return _read_whole(_read_object(storage_folder(repo) / _RECORD), repo)
    except ValueError:
        return None


def list_fetched() -> list[HubModel]:
    """Return all completely downloaded evaluators, sorted by id."""
    records = (_read_whole(_read_object(path)) for path in cache_of_hub().glob(f"models--*/{_RECORD}"))
    return sorted(filter(None, records), key=lambda fetched: fetched.repo)


def check_files(fetched: HubModel, *, weights: bool = True) -> None:
    """Raise `UserError` if a file of a model, or of a model that it needs, no longer matches the hash under which
    it is stored. If `weights` is False, weight files are skipped, because hashing them takes long."""
    for part in fetched.parts.values():
        check_files(part, weights=weights)
    for name in fetched.files:
        if (weights or not name.endswith(_WEIGHTS)) and not is_sound(fetched.folder / name):
            raise UserError(
                f"{fetched.repo} has changed since it was fetched: {name} is not the file that the hub had.",
                f"Remove {storage_folder(fetched.repo)} and fetch it again.",
            )


def is_sound(path: Path) -> bool:
    """True if a file in the hub client's cache matches the hash under which its content is stored. A file that is
    not a link to such content, like a card written by StepSight, is sound."""
    digest = Path(os.readlink(path)).name if path.is_symlink() else ""
    return not is_hash(digest) or digest_of(path, digest) == digest


def size_of(path: Path) -> int | None:
    """Return the size of a file in bytes, or None if it does not exist."""
    try:
        return path.stat().st_size
    except OSError:
        return None


def _read_whole(values: Any, repo: str | None = None) -> HubModel | None:
    """Read a record. Returns None if it is unusable, of a repository other than `repo` or of an incomplete model,
    so that the model is downloaded again."""
    try:
        fetched = validate(HubModel, values)
    except UserError:
        return None
    return fetched if fetched.is_whole and repo in (None, fetched.repo) else None


def _read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file, or an empty dict if the file cannot be read."""
    try:
        return read_json(path)
    except UserError:
        return {}
