"""Finding evaluators on this machine, without PyTorch.

Shipped evaluators are found by name, evaluators in other folders by path, and cached models from a hub by an id
such as GAIR/ReasonEval-7B. Nothing is downloaded, and weights are not read; `core.models.checkpoint_resolver` does
both.
"""

import os
from functools import cache
from pathlib import Path

from stepsight.core.evaluator_summary import EvaluatorSummary, split_reading
from stepsight.core.files.whole_files import read_json
from stepsight.core.hubs.checkpoint_files import ADAPTER, ADAPTER_PICKLE, CARD, is_hub_id
from stepsight.core.hubs.hub_cache import find_fetched
from stepsight.core.hubs.hub_lookup import cached_snapshot
from stepsight.core.hubs.public import known_card
from stepsight.core.inference_servers.address import is_address
from stepsight.core.paths import asset
from stepsight.core.validation import validate

EQUATIONS = "equations"
"""The evaluator that has no folder: it has no weights."""


def shipped_evaluators() -> list[str]:
    """Return the names of the evaluators in the assets folder, in alphabetical order (which puts the bidirectional
    ones first)."""
    return sorted(path.parent.name for path in asset("evaluators").glob(f"*/{CARD}"))


@cache
def shipped_summaries() -> tuple[EvaluatorSummary, ...]:
    """Return the summaries of the shipped evaluators, in the order of `shipped_evaluators`. They were recorded when
    the evaluators were made."""
    recorded = read_json(asset("evaluators", "summaries.json"))
    return tuple(validate(EvaluatorSummary, recorded[name]) for name in shipped_evaluators())


def bare_spec(spec: str | Path) -> str:
    """Return an evaluator's name, path or hub id without the reading that may follow it."""
    return split_reading(str(spec))[0]


def is_shipped(spec: str | Path) -> bool:
    """True if `spec` names an evaluator that every installation has, with or without a reading."""
    return bare_spec(spec) in (*shipped_evaluators(), EQUATIONS)


def can_load(spec: str | Path) -> bool:
    """True if this machine has a folder for this name, path or hub id, or if the evaluator needs no folder.

    `equations` and evaluators behind a server need none. Only the presence of a config is checked.
    """
    spec = bare_spec(spec)
    if spec == EQUATIONS or is_address(spec):
        return True
    local = local_folder(spec)
    folder = local or (cached(spec) if is_hub_id(spec) else None)
    if folder is None:
        return False
    has_subfolder = known_card(local.name if local else spec).get("subfolder") is not None
    return has_subfolder or any((folder / name).is_file() for name in ("config.json", ADAPTER))


def cached(spec: str) -> Path | None:
    """Return the folder of a hub model that was downloaded earlier, or None if there is none. The hub is not
    contacted."""
    return fetched_folder(spec) or kept_folder(spec)


def fetched_folder(repo: str) -> Path | None:
    """Return the folder of an evaluator that StepSight downloaded, at its pinned commit, or None if it was not
    downloaded."""
    fetched = find_fetched(repo)
    return fetched.folder if fetched is not None else None


def kept_folder(spec: str, revision: str | None = None, *, weights: bool = True) -> Path | None:
    """Return the folder in which the hub's own client stores a model, or None if there is none.

    If `weights` is True, a folder without weights does not count. Completeness is not checked.
    """
    folder = cached_snapshot(spec, revision)
    if folder is None:
        return None
    below = known_card(spec).get("subfolder")
    folders = [folder, *([folder / below] if below else [])]
    patterns = ("*.safetensors", "pytorch_model*.bin", ADAPTER_PICKLE)
    has_weights = any(any(place.glob(pattern)) for place in folders for pattern in patterns)
    return folder if has_weights or not weights else None


def shipped_folder(name: str) -> Path | None:
    """Return the folder of the shipped evaluator called `name`, or None if there is none."""
    return asset("evaluators", name) if name in shipped_evaluators() else None


def local_folder(spec: str | Path) -> Path | None:
    """Return the folder of a shipped evaluator, given its name, or the folder at a path. Returns None if neither
    exists."""
    folder = shipped_folder(str(spec)) or Path(spec)
    return folder if os.path.isdir(folder) else None
