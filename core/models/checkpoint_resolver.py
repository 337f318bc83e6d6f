"""Finding the parts of a checkpoint for the name of an evaluator.

A checkpoint that is not on this machine is downloaded. An adapter's weights are those of its base model as it
changes them, and config and tokenizer may come from another folder too.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.hubs.checkpoint_files import (
    ADAPTER,
    CARD,
    CONFIG,
    NAME_BASE,
    SLOW_TOKENIZERS,
    TOKENIZER,
    is_hub_id,
    read_adapter_file,
    read_config_file,
)
from stepsight.core.hubs.hub_cache import NEWEST, HubModel, find_fetched, is_from_hub, part_key
from stepsight.core.hubs.hub_download import fetch_if_missing, fetch_part_if_missing
from stepsight.core.hubs.hub_lookup import UnreachableError
from stepsight.core.hubs.public import with_known
from stepsight.core.models.adapter import Adapter
from stepsight.core.models.checkpoint import Checkpoint, read_card, repository
from stepsight.core.models.location import (
    EQUATIONS,
    bare_spec,
    fetched_folder,
    kept_folder,
    local_folder,
    shipped_evaluators,
    shipped_folder,
)
from stepsight.core.models.memory import check_memory, needed_memory
from stepsight.core.models.placement import (
    DTYPES,
    STORED,
    Placement,
    chosen_dtype,
    computed_dtype,
    expected_dtype,
)
from stepsight.core.models.weights import CheckpointWeights, has_safetensors
from stepsight.core.prompts.tokenizer_files import TokenizerFiles

BASE_HASH = "base_sha256"
"""The key of stepsight.json with the hash of the weights that an adapter was trained on."""


def evaluator_folder(spec: str | Path, place: Placement | None = None) -> Path:
    """Return the folder for a shipped evaluator's name, a path or a hub id, with or without a reading.

    For a hub id, the revision downloaded earlier is used, or else the newest revision is downloaded with everything
    it needs (see `core.hubs.hub_download`). Raises `UserError` if there is no such evaluator, or if it would have
    to be downloaded and does not fit at `place`.
    """
    spec = bare_spec(spec)
    folder = local_folder(spec)
    if folder is not None:
        return folder
    if is_hub_id(spec):
        return fetched_folder(spec) or _fetch_evaluator(spec, place)
    names = ", ".join([*shipped_evaluators(), EQUATIONS])
    raise UserError(
        f"there is no evaluator {spec!r}.", f"Give a folder, a model hub's OWNER/NAME, or one of: {names}."
    )


def model_folder(spec: str, revision: str | None = None, *, weights: bool = True) -> Path:
    """Return the folder of a hub model that is not an evaluator by itself, downloading the model if necessary.

    If `weights` is False, the weights are left out. `revision` is a branch or commit, or None for the newest.
    Raises `UserError` if the hub has no such model or refuses access, or if it cannot be reached and the model is
    not in its cache.
    """
    try:
        return fetch_part_if_missing(spec, revision, weights=weights).folder
    except UnreachableError as error:
        return _require_kept_folder(spec, error, revision, weights=weights)


def _fetch_evaluator(spec: str, place: Placement | None) -> Path:
    def check(parameters: int) -> None:
        if place is not None and place.on_processor:
            check_memory(spec, needed_memory(parameters, expected_dtype("", place)), whole=True)

    try:
        return fetch_if_missing(spec, check).folder
    except UnreachableError as error:
        return _require_kept_folder(spec, error)


def _require_kept_folder(spec: str, error: UserError, revision: str | None = None, *, weights: bool = True) -> Path:
    """Like `kept_folder`, but raise `UserError` if there is none. `error` says why the hub cannot be reached."""
    if (folder := kept_folder(spec, revision, weights=weights)) is not None:
        return folder
    raise UserError(
        f"there is no folder {spec!r}, and no model {spec!r} in the cache of the model hub: {error.message}",
        error.hint,
    )


def resolve_placement(place: Placement, checkpoint: Checkpoint) -> Placement:
    """Return the placement with the data type in which an evaluator will be computed.

    This is the requested type, or else the type named in its stepsight.json, or else its `computed_dtype`. Raises
    `UserError` if a part of the evaluator is missing.
    """
    if place.dtype != STORED:
        return place
    named = checkpoint.card.get("dtype")
    if named is not None and named not in DTYPES:
        raise UserError(
            f"{checkpoint.folder}/{CARD}: dtype is {named!r:.40}.", f"Give one of: {', '.join(DTYPES)}."
        )
    return replace(place, dtype=named or computed_dtype(stored_dtype(checkpoint), place))


def stored_dtype(checkpoint: Checkpoint) -> str:
    """Return the data type in which a checkpoint's weights are stored (`placement.chosen_dtype`)."""
    return chosen_dtype(checkpoint.config, checkpoint.weights.counts())


def open_checkpoint(folder: Path, fetched: Mapping[str, HubModel] | None = None) -> Checkpoint:
    """Open the checkpoint in a folder, with its parts elsewhere if the folder is incomplete.

    `fetched` maps a `part_key` to each model that was downloaded for this checkpoint. If it is None, these models
    are looked up. Raises `UserError` if a part is missing, damaged or does not fit.
    """
    return _open(folder, _find_fetched_parts(folder) if fetched is None else fetched)


def open_part(checkpoint: Checkpoint, key: str, what: str) -> Checkpoint:
    """Open another checkpoint that stepsight.json names under `key`.

    The value is a hub id, or a folder relative to the checkpoint's folder or to the current one. Raises `UserError`
    if the key is missing or the other checkpoint does not exist. The message calls it `what`.
    """
    folder = checkpoint.folder
    parts = _Parts(folder, checkpoint.card, _find_fetched_parts(folder))
    if key not in checkpoint.card:
        raise UserError(f"{folder}: {what} is not known.", f'Name it in {CARD}, such as {{"{key}": "OWNER/NAME"}}.')
    return open_checkpoint(parts.elsewhere(parts.text(key), key, what, weights=True), parts.fetched)


def _find_fetched_parts(folder: Path) -> Mapping[str, HubModel]:
    """Return the models that were downloaded together with the one in `folder`, by `part_key`, as far as known."""
    name = repository(folder)
    fetched = find_fetched(name) if is_hub_id(name) else None
    return fetched.parts if fetched is not None and fetched.folder.resolve() == folder.resolve() else {}


def _open(folder: Path, fetched: Mapping[str, HubModel], above: tuple[Path, ...] = ()) -> Checkpoint:
    """Open the checkpoint in a folder. `above` lists the adapters that have this folder as their base. It serves to
    detect circular references."""
    card = with_known(repository(folder), read_card(folder))
    parts = _Parts(folder, card, fetched, above)
    if parts.are_here:
        return Checkpoint(folder, read_config_file(folder), card)
    config, weights = parts.config, parts.weights
    rows = config.get("vocab_size")
    added = _added_tokens(folder, card)
    tokenizer = TokenizerFiles(parts.tokenizer, rows if isinstance(rows, int) else None, added)
    checkpoint = Checkpoint(folder, config, card, (weights, tokenizer))
    _check_added(checkpoint)
    return checkpoint


@dataclass(frozen=True)
class _Parts:
    """The locations of a checkpoint's parts: its own folder, a subfolder, the folder of its base model, or another
    place."""

    folder: Path
    card: Mapping[str, Any]
    fetched: Mapping[str, HubModel]
    above: tuple[Path, ...] = ()

    @cached_property
    def own(self) -> Path:
        """The folder that holds the weights: the subfolder that stepsight.json names if it exists, else the folder
        itself."""
        below = self._subfolder(self.text("subfolder")) if "subfolder" in self.card else None
        return self.folder if below is None else below

    def _subfolder(self, named: str) -> Path | None:
        """Return the folder of this name within this one, or None if there is none."""
        below = self.folder / named
        return below if os.path.isdir(below) and below.resolve().is_relative_to(self.folder.resolve()) else None

    @cached_property
    def are_here(self) -> bool:
        """True if the folder needs no part from elsewhere. A part that is missing and not named in stepsight.json
        is reported later, by the code that reads the part."""
        if self.own != self.folder or self.is_adapter or "added_tokens" in self.card:
            return False
        has_tokenizer = (self.folder / TOKENIZER).is_file() or not {"tokenizer", "base"} & set(self.card)
        return has_tokenizer and ((self.folder / CONFIG).is_file() or "base" not in self.card)

    @cached_property
    def is_adapter(self) -> bool:
        """True if the folder has an adapter but no safetensors. A folder with both is taken to hold the merged
        weights."""
        return (self.own / ADAPTER).is_file() and not has_safetensors(self.own)

    @cached_property
    def adapter(self) -> Adapter | None:
        return Adapter.open(self.own) if self.is_adapter else None

    @cached_property
    def weights(self) -> CheckpointWeights:
        """The weights in the folder, or those of the base model as the adapter changes them."""
        if self.adapter is None:
            return CheckpointWeights.of(self.own)
        assert self.base is not None
        return self.adapter.on(self.base.weights)

    @cached_property
    def base(self) -> Checkpoint | None:
        """The base model, or None if none is named. Raises `UserError` if an adapter names none, or if references
        are circular."""
        config = read_adapter_file(self.own) if self.is_adapter else {}
        named = self.text("base") if "base" in self.card else config.get("base_model_name_or_path")
        if not isinstance(named, str) or not named:
            if self.is_adapter:
                raise UserError(f"{self.own}/{ADAPTER}: base_model_name_or_path is missing.", NAME_BASE)
            return None
        revision = None if "base" in self.card else config.get("revision")
        folder = self.elsewhere(named, "base", "its base model", weights=self.is_adapter, revision=revision)
        above = (*self.above, self.folder.resolve())
        if folder.resolve() in above:
            raise UserError(f"{self.folder}: its base is itself, or an adapter of it.", NAME_BASE)
        return _open(folder, self.fetched, above)

    @cached_property
    def config(self) -> dict[str, Any]:
        """The folder's config.json, or else the base model's, with the changes that an adapter or resized
        embeddings require. Raises `UserError` if there is neither."""
        folder = next((folder for folder in (self.own, self.folder) if (folder / CONFIG).is_file()), None)
        if folder is None and self.base is None:
            raise UserError(f"{self.folder}: {CONFIG} is missing.", NAME_BASE)
        config = dict(self.base.config) if folder is None and self.base else read_config_file(folder or self.own)
        if self.adapter and str(self.adapter.config.get("task_type")) == "TOKEN_CLS":
            names = config.get("architectures") or ["ForCausalLM"]
            config["architectures"] = [str(name).replace("ForCausalLM", "ForTokenClassification") for name in names]
            rows = self.adapter.rows
            heads = [rows[name] for name in ("score.weight", "classifier.weight") if name in rows]
            config |= {"num_labels": heads[0]} if heads else {}
        if folder is None and "vocab_size" in config:
            config["vocab_size"] = self.weights.vocabulary_size or config["vocab_size"]
        return config

    @cached_property
    def tokenizer(self) -> Path:
        """The folder of the tokenizer. It is the first of these that has one: the folder itself, the tokenizer's
        repository named in stepsight.json, the base model's folder. If none has any, it is the folder itself."""
        names = (TOKENIZER, *SLOW_TOKENIZERS)
        for folder in self._tokenizer_folders():
            if any((folder / name).is_file() for name in names):
                return folder
        return self.folder

    def _tokenizer_folders(self) -> Iterator[Path]:
        yield from (self.own, self.folder)
        if "tokenizer" in self.card:
            yield self.elsewhere(self.text("tokenizer"), "tokenizer", "its tokenizer", weights=False)
        if self.base:
            yield self.base.tokenizer.folder

    def elsewhere(self, named: str, key: str, what: str, *, weights: bool, revision: object = None) -> Path:
        """Return the folder of a part that is not in this folder. `named` is a path or a hub id.

        The first match is used: a model downloaded for this checkpoint, a path relative to this folder or the
        current one, a shipped evaluator, a hub model. Raises `UserError`, calling the part `what`, if there is
        none.
        """
        part_revision = revision if isinstance(revision, str) and revision else NEWEST
        pinned = self.fetched.get(part_key(named, part_revision))
        if pinned is not None:
            return pinned.folder
        shipped = shipped_folder(named)
        # In a local adapter, a path is relative to its folder. Adapters from the hub cannot refer to others.
        own = self._subfolder(named) if is_from_hub(self.folder) else self.folder / named
        paths = [] if is_from_hub(self.folder) else [Path(named)]
        for folder in (own, *paths, shipped):
            # `Path.is_dir` would raise an error for a name that is too long.
            if folder is not None and os.path.isdir(folder):
                return folder
        hint = f'Name the folder or OWNER/NAME that has it in {CARD}, such as {{"{key}": "OWNER/NAME"}}.'
        if not is_hub_id(named):
            raise UserError(f"{self.folder}: {what}, {named!r}, cannot be found.", hint)
        try:
            return model_folder(named, part_revision, weights=weights)
        except UserError as error:
            raise UserError(f"{self.folder}: {what}, {named!r}, cannot be found: {error.message}", hint) from None

    def text(self, key: str) -> str:
        value = self.card[key]
        if not isinstance(value, str) or not value:
            raise UserError(f"{self.folder}/{CARD}: {key} is {value!r:.40}, expected a text.")
        return value


def _added_tokens(folder: Path, card: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the tokens in `added_tokens` of stepsight.json, which the authors' code adds to the tokenizer when it
    loads the model."""
    tokens = card.get("added_tokens", [])
    if not isinstance(tokens, list) or not all(isinstance(token, str) and token for token in tokens):
        raise UserError(f"{folder}/{CARD}: added_tokens is {tokens!r:.40}, expected a list of texts.")
    return tuple(tokens)


def _check_added(checkpoint: Checkpoint) -> None:
    """Raise `UserError` if an added token has no row in the weights."""
    size = checkpoint.weights.vocabulary_size if checkpoint.tokenizer.added else None
    for token in checkpoint.tokenizer.added:
        number = checkpoint.vocabulary.token_id(token)
        if size is not None and (number is None or number >= size):
            raise UserError(
                f"{checkpoint.folder}: token {token!r} has the id {number}, but the weights have {size} tokens.",
                NAME_BASE,
            )
