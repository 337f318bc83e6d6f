"""Looking up an evaluator on a model hub: the files it needs at one commit, from its own and other repositories.

An adapter needs its base model, a log-ratio evaluator needs its reference model, and weights without a config or
tokenizer need a model that has these files. Only files needed for loading are listed: weights, config, tokenizer
and stepsight.json, never code. Does not need PyTorch.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.files.json_values import parse_json
from stepsight.core.hubs.checkpoint_files import (
    ADAPTER,
    ADAPTER_PICKLE,
    CARD,
    INDEX,
    SLOW_TOKENIZERS,
    TOKENIZER,
    UNPICKLE,
    WEIGHTS,
    is_hub_id,
)
from stepsight.core.hubs.client import RemoteFile, check_access, explained, list_files, read_small
from stepsight.core.hubs.hub_cache import NEWEST, kept_card, part_key
from stepsight.core.hubs.known_cards import check_separator, with_known

# Mistral's repositories have all weights once more, under names of their own, in consolidated.safetensors.
_SAFETENSORS = re.compile(r"(?!consolidated\b)[\w.-]+\.safetensors")
_PICKLES = re.compile(rf"pytorch_model[\w.-]*\.bin|{re.escape(ADAPTER_PICKLE)}")
_OTHERS = re.compile(
    r"[\w.-]+\.json|[\w.-]+\.jinja|tokenizer\.model|spiece\.model|vocab\.txt|merges\.txt|README\.md"
)
_FOLDER = re.compile(r"\w[\w.-]*(?:/\w[\w.-]*)*")
# The largest card or adapter's config in bytes, and the most repositories besides an evaluator's own.
_MOST_BYTES, _MOST_PARTS = 1_000_000, 8
# The format of token classifiers in `core.formats`, which needs PyTorch.
_TOKENS = "token-classification"


@dataclass(frozen=True)
class Remote:
    """A model on the hub at the commit `revision`, and the `files` to download. `parts` maps a `part_key` to each
    other model that it needs."""

    repo: str
    revision: str
    files: tuple[RemoteFile, ...]
    parts: Mapping[str, "Remote"] = field(default_factory=dict)

    @property
    def all_files(self) -> list[RemoteFile]:
        """The files of the model and of the models it needs, smallest first, so that a faulty model is noticed
        before its weights arrive."""
        files = {*self.files, *(file for part in self.parts.values() for file in part.files)}
        return sorted(files, key=lambda file: (file.size, file.repo, file.name))

    @property
    def size(self) -> int:
        """The total size in bytes of `all_files`."""
        return sum(file.size for file in self.all_files)

    @property
    def weights(self) -> int:
        """The size in bytes of all weights, including those of the models that this model needs."""
        return sum(file.size for file in self.all_files if not _OTHERS.fullmatch(Path(file.name).name))

    @property
    def parameters(self) -> int:
        """The approximate number of parameters, assuming that each takes two bytes, as in most models."""
        return self.weights // 2

    @property
    def here(self) -> int:
        """The number of bytes that have already been downloaded."""
        return sum(file.size for file in self.all_files if file.is_here)

    @property
    def pins(self) -> dict[str, str]:
        """The commits of the other models that this model needs, by `part_key`."""
        return {key: part.revision for key, part in self.parts.items()}


# Another model that is needed: its id, its revision, and whether its weights are needed or its other files alone.
_Need = tuple[str, str, bool]


def look_up(
    repo: str, revision: str = NEWEST, pins: Mapping[str, str] | None = None, card: Mapping[str, Any] | None = None
) -> Remote:
    """Look up an evaluator on the hub, together with every other model it needs.

    `pins` gives the commits of these models, by `part_key`, if they were looked up before. `card` takes the place
    of the stepsight.json that the repository lacks; it defaults to the one kept by `hub_cache.keep_card`. Raises
    `UserError` if the hub has no such model or revision, refuses access, or cannot be reached, if the model has no
    weights in a supported format, if nothing says how its steps are read, or if `card` is given and the repository
    has one.
    """
    remote, needs = _look_up(repo, revision, weights=True, own=card or {}, evaluator=True)
    parts: dict[str, Remote] = {}
    while needs:
        need, wanted, weights = needs.pop()
        key = part_key(need, wanted)
        if key in parts and (parts[key].weights or not weights):
            continue
        if len(parts) >= _MOST_PARTS:
            raise UserError(f"{repo} needs more than {_MOST_PARTS} other models.", "Check its base model.")
        try:
            parts[key], others = _look_up(need, (pins or {}).get(key, wanted), weights=weights)
        except UserError as error:
            raise type(error)(f"{repo} needs {need}: {error.message}", error.hint) from None
        needs += others
    return replace(remote, parts=parts)


def look_up_part(repo: str, revision: str, *, weights: bool) -> Remote:
    """Look up a model that an evaluator needs. If `weights` is False, list only its config, tokenizer and similar
    files.

    Raises `UserError` if the hub does not provide it.
    """
    return _look_up(repo, revision, weights=weights)[0]


def _look_up(
    repo: str,
    revision: str,
    *,
    weights: bool,
    own: Mapping[str, Any] = MappingProxyType({}),
    evaluator: bool = False,
) -> tuple[Remote, list[_Need]]:
    """Look up a model, and return it with a list of the other models that it needs. These are not looked up yet."""
    with explained(repo, revision):
        commit, listed = list_files(repo, revision)

        def read(name: str) -> dict[str, Any]:
            return _read(listed[name]) if name in listed else {}

        if own and CARD in listed:
            raise UserError(f"{repo} has a {CARD} of its own.", "Copy the model into a folder and change it there.")
        card = with_known(repo, own or (read(CARD) if CARD in listed else kept_card(repo, commit)))
        below = _subfolder(repo, card, listed)
        files = tuple(listed[name] for name in _wanted(repo, listed, below, weights=weights))
        if files:
            check_access(files[0])
        is_adapter = f"{below}{ADAPTER}" in listed and not {f"{below}{WEIGHTS}", f"{below}{INDEX}"} & set(listed)
        adapter = read(f"{below}{ADAPTER}") if is_adapter and weights else {}
        if evaluator and _classifies_tokens(card, adapter if is_adapter else read(f"{below}config.json")):
            check_separator(repo, card)
        has_tokenizer = any(f"{place}{name}" in listed for place in {below, ""}
                            for name in (TOKENIZER, *SLOW_TOKENIZERS))  # fmt: skip
    needs = list(_needs(repo, card, adapter, has_tokenizer=has_tokenizer)) if weights else []
    return Remote(repo, commit, files), needs


def _classifies_tokens(card: Mapping[str, Any], config: Mapping[str, Any]) -> bool:
    """True if a card, or the config of a model or an adapter, describes a token classifier that is not in
    StepSight's own format."""
    if "format" in card:
        return bool(card["format"] == _TOKENS)
    names = config.get("architectures")
    classes = names if isinstance(names, list) else []
    is_classifier = any(str(name).endswith("ForTokenClassification") for name in classes)
    return is_classifier or config.get("task_type") == "TOKEN_CLS"


def _subfolder(repo: str, card: Mapping[str, Any], listed: Mapping[str, Any]) -> str:
    """Return the repository folder that holds the weights, with a trailing slash, or "" for the top level."""
    folder = card.get("subfolder")
    if folder is None or not any(name.startswith(f"{folder}/") for name in listed):
        return ""
    if not isinstance(folder, str) or not _FOLDER.fullmatch(folder):
        raise UserError(f"{repo}: {CARD} names the subfolder {folder!r:.60}, which is not a plain name.")
    return f"{folder}/"


def _wanted(repo: str, listed: Mapping[str, Any], below: str, *, weights: bool) -> list[str]:
    """Return the names of the files to download. `below` is the folder that holds the weights. Raises `UserError`
    if weights are wanted and there are none in a supported format."""

    def at(pattern: re.Pattern[str], place: str) -> list[str]:
        return [name for name in listed if name.startswith(place) and pattern.fullmatch(name.removeprefix(place))]

    described = sorted({name for place in {below, ""} for name in at(_OTHERS, place)})
    if not weights:
        return described
    found = at(_SAFETENSORS, below) or at(_PICKLES, below)
    if not found:
        raise UserError(f"the model {repo!r} has no weights on the model hub that can be read.", UNPICKLE)
    return described + found


def _needs(
    repo: str, card: Mapping[str, Any], adapter: Mapping[str, Any], *, has_tokenizer: bool
) -> Iterator[_Need]:
    """Yield the other models that a checkpoint needs, following the rules of `core.models.checkpoint_resolver`."""

    def named(key: str, *, weights: bool) -> _Need:
        return _id(repo, card[key], f"{CARD} names as its {key}"), NEWEST, weights

    if "base" in card:
        yield named("base", weights=bool(adapter))
    elif adapter:
        base = _id(repo, adapter.get("base_model_name_or_path"), f"{ADAPTER} names as its base")
        revision = adapter.get("revision")
        yield base, revision if isinstance(revision, str) and revision else NEWEST, True
    if "tokenizer" in card and not has_tokenizer:
        yield named("tokenizer", weights=False)
    if "reference" in card:
        yield named("reference", weights=True)


def _id(repo: str, value: object, what: str) -> str:
    if not isinstance(value, str) or not is_hub_id(value):
        raise UserError(
            f"{repo}: {value!r:.100}, which {what}, is not a model on the hub.",
            "Copy both to this machine, and name the one in the stepsight.json of the other.",
        )
    return value


def _read(file: RemoteFile) -> dict[str, Any]:
    """Read a small JSON object from the hub. Raises `UserError` if the file is too large or contains anything else.
    Use inside `explained`."""
    try:
        value = parse_json(read_small(file, _MOST_BYTES) or b"")
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise UserError(f"{file.repo}: {file.name} is not a JSON object.", "Ask its authors to correct it.")
    return value
