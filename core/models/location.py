"""The folders of evaluators: shipped ones by name, others by path, and a model hub's by an id such as
GAIR/ReasonEval-7B.

What is fetched from a hub is kept in the hub's own cache. Needs no PyTorch.
"""

import os
from pathlib import Path

from huggingface_hub import snapshot_download

from stepsight.core.errors import UserError
from stepsight.core.hubs.fetched import find_fetched
from stepsight.core.hubs.layout import ADAPTER, ADAPTER_PICKLE, CARD, is_hub_id
from stepsight.core.hubs.repositories import known_card
from stepsight.core.models.placement import Placement
from stepsight.core.places import asset
from stepsight.core.servers.address import is_address

EQUATIONS = "equations"
"""The evaluator that has no folder: it has no weights."""


def shipped_evaluators() -> list[str]:
    """Names of the evaluators in the assets folder, bidirectional ones first."""
    return sorted(path.parent.name for path in asset("evaluators").glob(f"*/{CARD}"))


def is_shipped(spec: str | Path) -> bool:
    """Whether it names an evaluator that every installation has."""
    return str(spec) in (*shipped_evaluators(), EQUATIONS)


def evaluator_folder(spec: str | Path, place: Placement | None = None) -> Path:
    """The folder of a shipped evaluator's name, of a path, or of a hub's id: the revision that was fetched, else
    the newest one, fetched now with all that it needs (see `core.hubs.fetching`).

    Raises `UserError` where there is none, and where it would have to be fetched and does not fit at `place`.
    """
    folder = _local(spec)
    if folder is not None:
        return folder
    if is_hub_id(str(spec)):
        return _pinned(str(spec)) or _evaluator_of_hub(str(spec), place)
    names = ", ".join([*shipped_evaluators(), EQUATIONS])
    raise UserError(
        f"there is no evaluator {str(spec)!r}.", f"Give a folder, a model hub's OWNER/NAME, or one of: {names}."
    )


def can_load(spec: str | Path) -> bool:
    """Whether this machine has a folder of that name, path or id, whose content is not looked at, or needs none, as
    what runs behind a server does."""
    if str(spec) == EQUATIONS or is_address(spec):
        return True
    folder = _local(spec) or (cached(str(spec)) if is_hub_id(str(spec)) else None)
    if folder is None:
        return False
    known = known_card(str(spec)).get("subfolder") is not None
    return known or any((folder / name).is_file() for name in ("config.json", ADAPTER))


def has_weights(folder: Path) -> bool:
    """Whether a folder has weights; whether they are whole is not looked at."""
    return any(any(folder.glob(pattern)) for pattern in ("*.safetensors", "pytorch_model*.bin", ADAPTER_PICKLE))


def model_folder(spec: str, revision: str | None = None, *, weights: bool = True) -> Path:
    """The folder of a hub's model that is no evaluator by itself, or only of what describes it: fetched where it is
    not there yet, at a branch or commit, None the newest.

    Raises `UserError` where the hub has no such model, refuses it, or cannot be reached.
    """
    # What is here needs nothing of it.
    from stepsight.core.hubs.fetching import obtain_part
    from stepsight.core.hubs.remote import UnreachableError

    try:
        return obtain_part(spec, revision, weights=weights).folder
    except UnreachableError as error:
        folder = _kept(spec, revision)
        if folder is None or (weights and not _has_weights(folder, spec)):
            raise _unreachable(spec, error) from None
        return folder


def _evaluator_of_hub(spec: str, place: Placement | None) -> Path:
    # What is here needs nothing of it.
    from stepsight.core.hubs.fetching import obtain
    from stepsight.core.hubs.remote import Remote, UnreachableError
    from stepsight.core.models.dtypes import expected_dtype
    from stepsight.core.models.memory import check_memory, needed_memory

    def check(remote: Remote) -> None:
        if place is not None and place.on_processor:
            check_memory(spec, needed_memory(remote.parameters, expected_dtype("", place)), whole=True)

    try:
        return obtain(spec, check).folder
    except UnreachableError as error:
        folder = cached(spec)
        if folder is None:
            raise _unreachable(spec, error) from None
        return folder


def _unreachable(spec: str, error: UserError) -> UserError:
    return UserError(
        f"there is no folder {spec!r}, and no model {spec!r} in the cache of the model hub: {error.message}",
        error.hint,
    )


def cached(spec: str) -> Path | None:
    """The folder of a hub's model that was fetched before, without asking the hub; None where there is none."""
    if (folder := _pinned(spec)) is not None:
        return folder
    folder = _kept(spec)
    return folder if folder is not None and _has_weights(folder, spec) else None


def _kept(spec: str, revision: str | None = None) -> Path | None:
    """What the hub's own client has of a model; None where it has nothing."""
    try:
        return Path(snapshot_download(spec, revision=revision, local_files_only=True))
    except (OSError, ValueError):
        return None


def _has_weights(folder: Path, spec: str) -> bool:
    below = known_card(spec).get("subfolder")
    return has_weights(folder) or (below is not None and has_weights(folder / below))


def _pinned(repo: str) -> Path | None:
    fetched = find_fetched(repo)
    return fetched.folder if fetched is not None else None


def shipped_folder(name: str) -> Path | None:
    """The folder of a shipped evaluator, None where there is none of that name."""
    return asset("evaluators", name) if name in shipped_evaluators() else None


def _local(spec: str | Path) -> Path | None:
    folder = shipped_folder(str(spec)) or Path(spec)
    return folder if os.path.isdir(folder) else None
