"""Evaluators on a model hub, by an id such as GAIR/ReasonEval-7B, kept in the hub's own cache."""

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
from stepsight.core.models.checkpoint import UNPICKLE, has_weights

# Weights that are pickles, code, and copies in other formats are never fetched.
_FILES = ["*.safetensors", "*.json", "tokenizer.model", "spiece.model", "vocab.txt", "merges.txt"]
_NOT = ["*/*"]
_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


def is_hub_id(spec: str) -> bool:
    """Whether it looks like `owner/name`."""
    return _ID.fullmatch(spec) is not None


def download(spec: str) -> Path:
    """The folder of a model in the cache, fetched where it is not there or has changed.

    Raises `UserError` saying what was tried where the hub does not know it, does not give it, or is out of reach.
    """
    try:
        folder = Path(snapshot_download(spec, allow_patterns=_FILES, ignore_patterns=_NOT))
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
        told = " ".join(str(error).split())
        raise UserError(f"the model {spec!r} cannot be fetched: {told:.300}", "Try again.") from None
    if not has_weights(folder):
        raise UserError(f"the model {spec!r} has no safetensors on the model hub.", UNPICKLE)
    return folder


def cached(spec: str) -> Path | None:
    """The folder of a model that was fetched before, without asking the hub; None where there is none."""
    try:
        folder = Path(snapshot_download(spec, allow_patterns=_FILES, ignore_patterns=_NOT, local_files_only=True))
    except (OSError, ValueError):
        return None
    return folder if has_weights(folder) else None
