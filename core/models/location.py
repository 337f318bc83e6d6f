"""The places of evaluators on this machine: shipped ones by name, others by path, and those in the cache of the
model hub by an id such as GAIR/ReasonEval-7B.

Nothing is fetched here and no file is opened: `core.models.checkpoint_resolver` does both. Needs no PyTorch.
"""

import os
from pathlib import Path

from stepsight.core.hubs.client import cached_snapshot
from stepsight.core.hubs.hub_cache import find_fetched
from stepsight.core.hubs.known_cards import known_card
from stepsight.core.hubs.layout import ADAPTER, ADAPTER_PICKLE, CARD, is_hub_id
from stepsight.core.inference_servers.address import is_address
from stepsight.core.paths import asset

EQUATIONS = "equations"
"""The evaluator that has no folder: it has no weights."""


def shipped_evaluators() -> list[str]:
    """Names of the evaluators in the assets folder, bidirectional ones first."""
    return sorted(path.parent.name for path in asset("evaluators").glob(f"*/{CARD}"))


def is_shipped(spec: str | Path) -> bool:
    """True if it names an evaluator that every installation has."""
    return str(spec) in (*shipped_evaluators(), EQUATIONS)


def can_load(spec: str | Path) -> bool:
    """True if this machine has a folder with this name, path or id, whose content is not checked, or the evaluator
    needs none, such as one behind a server."""
    if str(spec) == EQUATIONS or is_address(spec):
        return True
    folder = local_folder(spec) or (cached(str(spec)) if is_hub_id(str(spec)) else None)
    if folder is None:
        return False
    known = known_card(str(spec)).get("subfolder") is not None
    return known or any((folder / name).is_file() for name in ("config.json", ADAPTER))


def cached(spec: str) -> Path | None:
    """The folder of a hub's model fetched before, without asking the hub; None if there is none."""
    return fetched_folder(spec) or kept_folder(spec)


def fetched_folder(repo: str) -> Path | None:
    """The folder of a fetched evaluator, at its pinned commit; None if it was not fetched."""
    fetched = find_fetched(repo)
    return fetched.folder if fetched is not None else None


def kept_folder(spec: str, revision: str | None = None, *, weights: bool = True) -> Path | None:
    """The folder in which the hub's own client keeps a model; None if it has none or, with `weights`, one without
    weights. Completeness is not checked."""
    folder = cached_snapshot(spec, revision)
    if folder is None:
        return None
    below = known_card(spec).get("subfolder")
    folders = [folder, *([folder / below] if below else [])]
    return folder if not weights or any(map(_has_weights, folders)) else None


def shipped_folder(name: str) -> Path | None:
    """The folder of a shipped evaluator; None if there is none with this name."""
    return asset("evaluators", name) if name in shipped_evaluators() else None


def local_folder(spec: str | Path) -> Path | None:
    """The folder for a shipped evaluator's name or a path; None if there is none."""
    folder = shipped_folder(str(spec)) or Path(spec)
    return folder if os.path.isdir(folder) else None


def _has_weights(folder: Path) -> bool:
    return any(any(folder.glob(pattern)) for pattern in ("*.safetensors", "pytorch_model*.bin", ADAPTER_PICKLE))
