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
from stepsight.core.models.repositories import known_card

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
TOKENIZER = "tokenizer.json"
CARD = "stepsight.json"
EQUATIONS = "equations"
"""The evaluator that has no folder: it has no weights."""
ADAPTER = "adapter_config.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"
ADAPTER_PICKLE = "adapter_model.bin"

UNPICKLE = (
    "If you trust who made it, load the model with Transformers once and write it with save_pretrained, which "
    "makes safetensors; then give that folder."
)
"""What to do with a checkpoint that others saved as pickle files."""

# Code and copies in other formats are never fetched; pickle files where there is nothing else.
_DESCRIBED = ["*.json", "*.jinja", "tokenizer.model", "spiece.model", "vocab.txt", "merges.txt"]
_FETCHED = ["*.safetensors", *_DESCRIBED]
_PICKLES = ["pytorch_model*.bin", ADAPTER_PICKLE]
_AT_ROOT = ["config.json", TOKENIZER, "tokenizer_config.json", "special_tokens_map.json", CARD]
_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


def shipped_evaluators() -> list[str]:
    """Names of the evaluators in the assets folder, bidirectional ones first."""
    return sorted(path.parent.name for path in asset("evaluators").glob(f"*/{CARD}"))


def is_shipped(spec: str | Path) -> bool:
    """Whether it names an evaluator that every installation has."""
    return str(spec) in (*shipped_evaluators(), EQUATIONS)


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
    names = ", ".join([*shipped_evaluators(), EQUATIONS])
    raise UserError(
        f"there is no evaluator {str(spec)!r}.", f"Give a folder, a model hub's OWNER/NAME, or one of: {names}."
    )


def can_load(spec: str | Path) -> bool:
    """Whether this machine has a folder of that name, path or id, whose content is not looked at, or needs none."""
    if str(spec) == EQUATIONS:
        return True
    folder = _local(spec) or (cached(str(spec)) if is_hub_id(str(spec)) else None)
    if folder is None:
        return False
    known = known_card(str(spec)).get("subfolder") is not None
    return known or any((folder / name).is_file() for name in ("config.json", ADAPTER))


def has_weights(folder: Path) -> bool:
    """Whether a folder has weights; whether they are whole is not looked at."""
    return any(any(folder.glob(pattern)) for pattern in ("*.safetensors", *_PICKLES))


def is_hub_id(spec: str) -> bool:
    """Whether it looks like `owner/name`."""
    return _ID.fullmatch(spec) is not None


def download(spec: str, revision: str | None = None, weights: bool = True) -> Path:
    """The folder of a hub's model in the cache, fetched where it is not there or has changed.

    `revision` is a branch or commit, None the newest. Without `weights` only what describes the model is fetched.
    Raises `UserError` where the hub has no such model, refuses it, or cannot be reached.
    """
    try:
        folder = _snapshot(spec, _FETCHED if weights else _DESCRIBED, revision)
        if weights and not _has_weights(folder, spec):
            folder = _snapshot(spec, [*_FETCHED, *_PICKLES], revision)
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
    if weights and not _has_weights(folder, spec):
        raise UserError(f"the model {spec!r} has no weights on the model hub that can be read.", UNPICKLE)
    return folder


def cached(spec: str) -> Path | None:
    """The folder of a hub's model that was fetched before, without asking the hub; None where there is none."""
    if (folder := _pinned(spec)) is not None:
        return folder
    try:
        folder = _snapshot(spec, _FETCHED, local_files_only=True)
    except (OSError, ValueError):
        return None
    return folder if _has_weights(folder, spec) else None


def _snapshot(
    spec: str, patterns: list[str], revision: str | None = None, *, local_files_only: bool = False
) -> Path:
    """The folder of a model's files of these names, and of those below the folder that it is known to have them
    in."""
    below = known_card(spec).get("subfolder")
    ignored = ["*/*"]
    if below is not None:
        # A star stands for folders too.
        beside = [name for name in (*_AT_ROOT, *patterns) if "*" not in name]
        patterns, ignored = [*beside, *(f"{below}/{pattern}" for pattern in patterns)], [f"{below}/*/*"]
    return Path(
        snapshot_download(
            spec,
            revision=revision,
            allow_patterns=patterns,
            ignore_patterns=ignored,
            local_files_only=local_files_only,
        )
    )


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
