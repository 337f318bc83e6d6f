"""Evaluators that were fetched whole from a model hub: which revision is here, and what is known of it.

They lie in the hub's own cache, each in a folder `models--OWNER--NAME`. A `stepsight.json` there names the
revision; it is written once everything of that is here, so that a folder without one is not taken for an evaluator.
Needs no PyTorch.
"""

import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from huggingface_hub import constants
from pydantic import AfterValidator, ConfigDict, Field, NonNegativeInt, PositiveInt

from stepsight.core.description import Description
from stepsight.core.errors import UserError
from stepsight.core.files.atomic import digest_of
from stepsight.core.files.json_values import read_json, write_json
from stepsight.core.hubs.layout import is_hub_id
from stepsight.core.scores import Outputs
from stepsight.core.sizes import sized
from stepsight.core.validation import Model, choice, invalid, validate

_RECORD = "stepsight.json"
# Of models that are no evaluators by themselves, by what revision they were asked for.
_PARTS = "stepsight-parts.json"
_WEIGHTS = (".safetensors", ".bin")
NEWEST = "main"
"""The revision that is meant where none is named."""

_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_LONGEST_NAME = 500
# Kept free on the disk for what else is written.
_RESERVE = 200_000_000

Kind = Literal["model", "dataset"]
"""What a repository of a hub holds."""


@dataclass(frozen=True)
class Fetched:
    """A model of a hub at a commit, the `revision`: the `files` by name with their sizes in bytes, and what it was
    when it was loaded, by the type of weights that was asked for. `parts` are the other models that it is read
    with, such as the base of an adapter, by `part_key`."""

    repo: str
    revision: str
    files: Mapping[str, int]
    descriptions: Mapping[str, Description] = field(default_factory=dict)
    parts: Mapping[str, "Fetched"] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The model's own, without its owner's."""
        return self.repo.partition("/")[2]

    @property
    def folder(self) -> Path:
        return storage_folder(self.repo) / "snapshots" / self.revision

    @property
    def own_size(self) -> int:
        """The bytes of its own weights."""
        return sum(size for name, size in self.files.items() if name.endswith(_WEIGHTS))

    @property
    def size(self) -> int:
        """The bytes of all weights that it is read with."""
        return self.own_size + sum(part.own_size for part in self.parts.values())

    @property
    def pins(self) -> dict[str, str]:
        """The commits of its parts."""
        return {key: part.revision for key, part in self.parts.items()}

    @property
    def is_whole(self) -> bool:
        """Whether each of its files, and of its parts', is there as long as it should be."""
        own = all(_size(self.folder / name) == size for name, size in self.files.items())
        return own and all(part.is_whole for part in self.parts.values())

    def described(self, dtype: str, description: Description) -> "Fetched":
        """With what it is in that type of weights."""
        return replace(self, descriptions={**self.descriptions, dtype: description})


def cache_of_hub() -> Path:
    """The folder that the hub's client keeps models in."""
    return Path(constants.HF_HUB_CACHE).expanduser()


def free_disk(folder: Path | None = None) -> int | None:
    """The bytes that are free in a folder, which need not exist, else there; None where that cannot be told."""
    folder = folder or cache_of_hub()
    for one in (folder, *folder.parents):
        with suppress(OSError):
            return shutil.disk_usage(one).free
    return None


def check_room(what: str, needed: int, folder: Path, variable: str) -> None:
    """Raises `UserError` if a folder's disk has no room for `needed` bytes; `variable` names another folder."""
    free = free_disk(folder)
    if free is not None and free < needed + _RESERVE:
        raise UserError(
            f"{what} takes {sized(needed)} more on the disk, {sized(free)} are free in {folder}.",
            f"Make room, or name a folder on another disk with {variable}.",
        )


def storage_folder(repo: str, kind: Kind = "model") -> Path:
    """Where everything of a repository is, as the hub's client documents its cache. Raises `ValueError` if that is
    no id of one."""
    if not is_hub_id(repo) or "--" in repo:
        raise ValueError(f"{repo!r} is no id of a repository")
    return cache_of_hub() / f"{kind}s--{repo.replace('/', '--')}"


def part_key(repo: str, revision: str) -> str:
    """What another model is known by to the one that needs it, at the `revision` that it is asked for."""
    return f"{repo}@{revision}"


def save_fetched(fetched: Fetched) -> None:
    """Note that a revision is here. Raises `UserError` where that cannot be written."""
    descriptions = {dtype: one.as_json() for dtype, one in fetched.descriptions.items()}
    write_json(storage_folder(fetched.repo) / _RECORD, _as_json(fetched) | {"descriptions": descriptions})


def save_part(asked: str, fetched: Fetched) -> None:
    """Note that a model that is no evaluator by itself is here, as the revision that was asked for. Raises
    `UserError` where that cannot be written."""
    path = storage_folder(fetched.repo) / _PARTS
    write_json(path, _read_object(path) | {asked: _as_json(fetched)})


def find_part(repo: str, asked: str, *, weights: bool = True) -> Fetched | None:
    """What is here of a model as the revision that was asked for, by itself or as an evaluator; None where it is
    not, or not whole, or without the `weights` that are wanted."""
    try:
        fetched = _from_json(_read_object(storage_folder(repo) / _PARTS).get(asked))
    except ValueError:
        return None
    if fetched is not None and fetched.repo == repo and fetched.is_whole and (fetched.own_size or not weights):
        return fetched
    evaluator = find_fetched(repo)
    return evaluator if evaluator is not None and asked in (NEWEST, evaluator.revision) else None


def find_fetched(repo: str) -> Fetched | None:
    """What is here of that model; None where it is not, or not whole, or where that is no id."""
    try:
        fetched = _read(storage_folder(repo) / _RECORD)
    except ValueError:
        return None
    return fetched if fetched is not None and fetched.repo == repo and fetched.is_whole else None


def list_fetched() -> list[Fetched]:
    """All that are here whole, by their ids."""
    found = [_read(path) for path in cache_of_hub().glob(f"models--*/{_RECORD}")]
    return sorted((one for one in found if one is not None and one.is_whole), key=lambda one: one.repo)


def check_files(fetched: Fetched) -> None:
    """Raises `UserError` where a file of it or of its parts is no longer what was fetched, by the hash that it lies
    under."""
    for part in fetched.parts.values():
        check_files(part)
    for name in fetched.files:
        path = (fetched.folder / name).resolve()
        # A card of ours lies beside the links.
        if is_hash(path.name) and digest_of(path, path.name) != path.name:
            raise UserError(
                f"{fetched.repo} has changed since it was fetched: {name} is not the file that the hub had.",
                f"Remove {storage_folder(fetched.repo)} and fetch it again.",
            )


def is_hash(text: str) -> bool:
    """Whether it can be what a hub calls a file or a commit by."""
    return _HASH.fullmatch(text) is not None


def _check_repo(repo: str) -> str:
    try:
        storage_folder(repo)
    except ValueError:
        raise invalid("no name of a model.") from None
    return repo


def _check_file(name: str) -> str:
    if len(name) > _LONGEST_NAME or not name.isprintable() or ".." in name.split("/") or name.startswith("/"):
        raise invalid("no file of a model.")
    return name


def _as_json(fetched: Fetched) -> dict[str, Any]:
    values: dict[str, Any] = {
        "repo": fetched.repo,
        "revision": fetched.revision,
        "files": dict(fetched.files),
    }
    return values | {"parts": {key: _as_json(part) for key, part in fetched.parts.items()}}


class _Description(Model):
    """A `Description` as it is written."""

    name: str
    fingerprint: str
    format: str
    attention: str
    dtype: str
    outputs: Annotated[str, choice(tuple(Outputs))]
    parameters: NonNegativeInt
    context: PositiveInt | None
    thresholds: dict[Literal["validity", "redundancy"], Annotated[float, Field(ge=0, le=1)]]
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0


class _Record(Model):
    """What `_as_json` writes; the repository of a model and of its parts names folders."""

    model_config = Model.model_config | ConfigDict(extra="ignore")

    repo: Annotated[str, AfterValidator(_check_repo)]
    revision: Annotated[str, Field(pattern=f"^(?:{_HASH.pattern})$")]
    files: dict[Annotated[str, AfterValidator(_check_file)], NonNegativeInt]
    parts: "dict[str, _Record]" = Field(default_factory=dict)
    descriptions: dict[str, _Description] = Field(default_factory=dict)

    def fetched(self) -> Fetched:
        described = {dtype: Description.from_json(one.model_dump()) for dtype, one in self.descriptions.items()}
        parts = {key: part.fetched() for key, part in self.parts.items()}
        return Fetched(self.repo, self.revision, self.files, described, parts)


def _from_json(values: Any) -> Fetched | None:
    """What `_as_json` wrote; None where that makes no sense, which is mended by fetching again."""
    try:
        return validate(_Record, values).fetched()
    except UserError:
        return None


def _read(path: Path) -> Fetched | None:
    return _from_json(_read_object(path))


def _read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file, empty where there is none."""
    try:
        return read_json(path)
    except UserError:
        return {}


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
