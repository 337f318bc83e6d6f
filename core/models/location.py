"""The folders of evaluators: shipped ones by name, others by path, and a model hub's by an id such as
GAIR/ReasonEval-7B.

What is fetched from a hub is kept in the hub's own cache. Needs no PyTorch.
"""

import os
import re
from pathlib import Path

from huggingface_hub import snapshot_download
from huggingface_hub.errors import (
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
)

from stepsight.core.errors import UserError
from stepsight.core.files import asset
from stepsight.core.models.fetched import find_fetched

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
TOKENIZER = "tokenizer.json"
CARD = "stepsight.json"

UNPICKLE = (
    "If you trust who made it, load the model with Transformers once and write it with save_pretrained, which "
    "makes safetensors; then give that folder."
)
"""What to do with a checkpoint that others saved as pickle files."""

# Weights that are pickles, code, and copies in other formats are never fetched.
_FETCHED = ["*.safetensors", "*.json", "tokenizer.model", "spiece.model", "vocab.txt", "merges.txt"]
_IGNORED = ["*/*"]
_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


def shipped_evaluators() -> list[str]:
    """Names of the evaluators in the assets folder, bidirectional ones first."""
    return sorted(path.parent.name for path in asset("evaluators").glob(f"*/{CARD}"))


def evaluator_folder(spec: str | Path) -> Path:
    """The folder of a shipped evaluator's name, of a path, or of a hub's id: the revision that was fetched to stay
    (see `core.models.hub`), else the newest one, fetched where it is not there yet.

    Raises `UserError` where there is none.
    """
    folder = _local(spec)
    if folder is not None:
        return folder
    if is_hub_id(str(spec)):
        return _pinned(str(spec)) or download(str(spec))
    names = ", ".join(shipped_evaluators()) or "none"
    raise UserError(
        f"there is no evaluator {str(spec)!r}.", f"Give a folder, a model hub's OWNER/NAME, or one of: {names}."
    )


def can_load(spec: str | Path) -> bool:
    """Whether this machine has a folder of that name, path or id; its content is not looked at."""
    folder = _local(spec) or (cached(str(spec)) if is_hub_id(str(spec)) else None)
    return folder is not None and (folder / "config.json").is_file()


def has_weights(folder: Path) -> bool:
    """Whether a folder has safetensors; whether they are whole is not looked at."""
    return any(folder.glob("*.safetensors"))


def is_hub_id(spec: str) -> bool:
    """Whether it looks like `owner/name`."""
    return _ID.fullmatch(spec) is not None


def download(spec: str) -> Path:
    """The folder of a hub's model in the cache, fetched where it is not there or has changed.

    Raises `UserError` where the hub has no such model, refuses it, or cannot be reached.
    """
    try:
        folder = Path(snapshot_download(spec, allow_patterns=_FETCHED, ignore_patterns=_IGNORED))
    except RepositoryNotFoundError:
        raise UserError(
            f"there is no folder {spec!r}, and the model hub has no such model that it gives to you.",
            "Check the name; for a gated or private model, log in to the hub first.",
        ) from None
    except HFValidationError:
        raise UserError(
            f"there is no folder {spec!r}, and it is no model's id.", "Give a folder or OWNER/NAME."
        ) from None
    except LocalEntryNotFoundError:
        raise UserError(
            f"there is no folder {spec!r}, and no model {spec!r} in the cache of the model hub, which cannot be "
            "reached from here.",
            "Give a folder, or copy the model to this machine.",
        ) from None
    except (HfHubHTTPError, OSError) as error:
        message = " ".join(str(error).split())
        raise UserError(f"the model {spec!r} cannot be fetched: {message:.300}", "Try again.") from None
    if not has_weights(folder):
        raise UserError(f"the model {spec!r} has no safetensors on the model hub.", UNPICKLE)
    return folder


def cached(spec: str) -> Path | None:
    """The folder of a hub's model that was fetched before, without asking the hub; None where there is none."""
    if (folder := _pinned(spec)) is not None:
        return folder
    try:
        folder = Path(
            snapshot_download(spec, allow_patterns=_FETCHED, ignore_patterns=_IGNORED, local_files_only=True)
        )
    except (OSError, ValueError):
        return None
    return folder if has_weights(folder) else None


def _pinned(repo: str) -> Path | None:
    fetched = find_fetched(repo)
    return fetched.folder if fetched is not None else None


def _local(spec: str | Path) -> Path | None:
    folder = asset("evaluators", str(spec)) if str(spec) in shipped_evaluators() else Path(spec)
    return folder if os.path.isdir(folder) else None
