"""Finding the complete checkpoint for the name of an evaluator.

A checkpoint that is not on this machine is downloaded. It is assembled if its weights are pickled, if it is an
adapter to a base model, or if its tokenizer is in another repository.

A checkpoint is assembled once, as a folder in Hugging Face layout below `assembled` in the cache. The folder
contains links to the files that can be used unchanged, and the other files in converted form. Code that reads
checkpoints sees only such folders. An adapter is merged into the layers when they are loaded, so that no merged
copy is stored.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from filelock import FileLock

from stepsight.core.errors import UserError
from stepsight.core.files.child import Answerer, Child, ChildError, is_child
from stepsight.core.files.json_values import read_json
from stepsight.core.hubs.checkpoint_files import (
    ADAPTER,
    CARD,
    CONFIG,
    INDEX,
    SLOW_TOKENIZERS,
    TOKENIZER,
    WEIGHTS,
    is_hub_id,
    read_adapter_file,
    read_config_file,
)
from stepsight.core.hubs.client import UnreachableError
from stepsight.core.hubs.hub_cache import (
    NEWEST,
    Fetched,
    caches,
    find_fetched,
    is_from_hub,
    part_key,
    use_caches,
)
from stepsight.core.hubs.hub_download import fetch_if_missing, fetch_part_if_missing
from stepsight.core.hubs.known_cards import with_known
from stepsight.core.models.adapter import Adapter
from stepsight.core.models.assembly import STAMP, Ingredients, assemble
from stepsight.core.models.checkpoint import (
    Checkpoint,
    model_name,
    read_card,
    repository,
    tensor_files,
    weights_sha256,
)
from stepsight.core.models.location import (
    EQUATIONS,
    bare_spec,
    fetched_folder,
    kept_folder,
    local_folder,
    shipped_evaluators,
    shipped_folder,
)
from stepsight.core.models.memory import check_memory, needed_memory, opening_bounds
from stepsight.core.models.pickles import pickle_files
from stepsight.core.models.placement import (
    DTYPES,
    STORED,
    Placement,
    computed_dtype,
    expected_dtype,
    stored_dtype,
)
from stepsight.core.paths import CACHE_VARIABLE, cache_folder
from stepsight.core.prompts.tokenizer_files import needs_conversion

BASE_HASH = "base_sha256"
"""The key of stepsight.json with the hash of the weights that an adapter was trained on."""
# Incremented when the content of assembled folders changes.
_VERSION = 2
_DESCRIBING = (
    TOKENIZER, "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "chat_template.jinja",
    "chat_template.json",
)  # fmt: skip


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
        folder = kept_folder(spec, revision, weights=weights)
        if folder is None:
            raise _unreachable(spec, error) from None
        return folder


def _fetch_evaluator(spec: str, place: Placement | None) -> Path:
    def check(parameters: int) -> None:
        if place is not None and place.on_processor:
            check_memory(spec, needed_memory(parameters, expected_dtype("", place)), whole=True)

    try:
        return fetch_if_missing(spec, check).folder
    except UnreachableError as error:
        folder = kept_folder(spec)
        if folder is None:
            raise _unreachable(spec, error) from None
        return folder


def _unreachable(spec: str, error: UserError) -> UserError:
    return UserError(
        f"there is no folder {spec!r}, and no model {spec!r} in the cache of the model hub: {error.message}",
        error.hint,
    )


def resolve_placement(place: Placement, folder: Path) -> Placement:
    """Return the placement with the data type in which the evaluator in `folder` will be computed.

    This is the requested type, or else the type named in the folder's stepsight.json, or else its `computed_dtype`.
    Raises `UserError` if a part of the evaluator is missing.
    """
    return replace(place, dtype=_own_dtype(folder, place)) if place.dtype == STORED else place


def _own_dtype(folder: Path, place: Placement) -> str:
    checkpoint = open_checkpoint(folder)
    named = checkpoint.card.get("dtype")
    if named is None:
        return computed_dtype(stored_dtype(checkpoint.folder), place)
    if named not in DTYPES:
        raise UserError(f"{folder}/{CARD}: dtype is {named!r:.40}.", f"Give one of: {', '.join(DTYPES)}.")
    return str(named)


def open_checkpoint(folder: Path, fetched: Mapping[str, Fetched] | None = None) -> Checkpoint:
    """Open the checkpoint in a folder, assembling it in the cache if the folder is incomplete.

    `fetched` maps a `part_key` to each model that was downloaded for this checkpoint. If it is None, these models
    are looked up. Raises `UserError` if a part is missing, damaged or does not fit, or if the cache has no room.
    """
    card = with_known(repository(folder), read_card(folder))
    whole = _whole(folder, card, _fetched_for(folder) if fetched is None else fetched)
    config = read_config_file(whole)
    return Checkpoint(whole, config, card, None if whole == folder else folder)


def open_part(checkpoint: Checkpoint, key: str, what: str) -> Checkpoint:
    """Open another checkpoint that stepsight.json names under `key`.

    The value is a hub id, or a folder relative to the checkpoint's folder or to the current one. Raises `UserError`
    if the key is missing or the other checkpoint does not exist. The message calls it `what`.
    """
    folder = checkpoint.source or checkpoint.folder
    parts = _Parts(folder, checkpoint.card, _fetched_for(folder))
    if key not in checkpoint.card:
        raise UserError(f"{folder}: {what} is not known.", f'Name it in {CARD}, such as {{"{key}": "OWNER/NAME"}}.')
    return open_checkpoint(parts.elsewhere(parts.text(key), key, what, weights=True), parts.fetched)


def _fetched_for(folder: Path) -> Mapping[str, Fetched]:
    """Return the models that were downloaded together with the one in `folder`, by `part_key`, as far as known."""
    name = repository(folder)
    fetched = find_fetched(name) if is_hub_id(name) else None
    return fetched.parts if fetched is not None and fetched.folder.resolve() == folder.resolve() else {}


def _whole(
    folder: Path, card: Mapping[str, Any], fetched: Mapping[str, Fetched], above: tuple[Path, ...] = ()
) -> Path:
    """Return the folder itself if it is complete, or else the folder assembled from it and its parts elsewhere.
    `above` lists the adapters that have this folder as their base. It serves to detect circular references."""
    parts = _Parts(folder, card, fetched, above)
    if parts.are_whole:
        return folder
    target = cache_folder() / "assembled" / f"{model_name(folder)}-{_digest(str(folder.resolve()))[:12]}"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if is_from_hub(folder) and not is_child():
            if not _is_current(target, parts.stamp):
                _assemble_in_child(parts)
            return target
        with FileLock(f"{target}.lock"):
            stamp = parts.stamp
            if not _is_current(target, stamp):
                parts.check_base()
                assemble(parts.ingredients, target, stamp)
    except OSError as error:
        raise UserError(
            f"{target}: cannot be written ({error.strerror or error}).",
            f"Name another folder with {CACHE_VARIABLE}.",
        ) from None
    return target


def _assemble_in_child(parts: "_Parts") -> None:
    size = sum(path.stat().st_size for path in parts.files)
    try:
        with Child(make_assembler, opening_bounds(size)) as child:
            pins = {key: [part.repo, part.revision] for key, part in parts.fetched.items()}
            child.ask({"folder": str(parts.folder), "pins": pins, "caches": caches()})
    except ChildError as error:
        raise UserError(f"{parts.folder}: its parts cannot be put together: {error}.", "Copy it again.") from None


def make_assembler() -> Answerer:
    """Return the function by which a child assembles checkpoints."""

    def assemble(asked: Any, content: Iterator[bytes]) -> None:
        use_caches(asked["caches"])
        pins = {key: Fetched(repo=repo, revision=revision) for key, (repo, revision) in asked["pins"].items()}
        open_checkpoint(Path(asked["folder"]), pins)

    return assemble


@dataclass(frozen=True)
class _Parts:
    """The locations of a checkpoint's parts: its own folder, a subfolder, the folder of its base model, or another
    place."""

    folder: Path
    card: Mapping[str, Any]
    fetched: Mapping[str, Fetched]
    above: tuple[Path, ...] = ()

    @cached_property
    def own(self) -> Path:
        """The folder that holds the weights: the subfolder that stepsight.json names if it exists, else the folder
        itself."""
        below = self._within(self.text("subfolder")) if "subfolder" in self.card else None
        return self.folder if below is None else below

    def _within(self, named: str) -> Path | None:
        """Return the folder of this name within this one, or None if there is none."""
        below = self.folder / named
        return below if below.is_dir() and below.resolve().is_relative_to(self.folder.resolve()) else None

    @cached_property
    def are_whole(self) -> bool:
        """True if the folder needs no part from elsewhere and no conversion. A part that is missing and not named
        in stepsight.json is reported later, by the code that reads the part."""
        if self.own != self.folder or self.is_adapter or self.pickles:
            return False
        named = {"tokenizer", "base"} & set(self.card)
        has_tokenizer = (self.folder / TOKENIZER).is_file() or not (named or needs_conversion(self.folder))
        return has_tokenizer and ((self.folder / CONFIG).is_file() or "base" not in self.card)

    @cached_property
    def _has_safetensors(self) -> bool:
        return any((self.own / name).is_file() for name in (WEIGHTS, INDEX))

    @cached_property
    def is_adapter(self) -> bool:
        """True if the folder has an adapter but no safetensors. A folder with both is taken to hold the merged
        weights."""
        return (self.own / ADAPTER).is_file() and not self._has_safetensors

    @cached_property
    def adapter(self) -> Adapter | None:
        return Adapter.open(self.own) if self.is_adapter else None

    @cached_property
    def pickles(self) -> list[Path]:
        """The pickle files that hold the weights, or an empty list if there are safetensors."""
        return [] if self._has_safetensors or self.is_adapter else pickle_files(self.own)

    @cached_property
    def base(self) -> Path | None:
        """The complete folder of the base model, or None if no base model is named. Raises `UserError` if an
        adapter names none, or if references are circular."""
        config = read_adapter_file(self.own) if self.is_adapter else {}
        named = self.text("base") if "base" in self.card else config.get("base_model_name_or_path")
        if not isinstance(named, str) or not named:
            if self.is_adapter:
                raise UserError(
                    f"{self.own}/{ADAPTER}: base_model_name_or_path is missing.", _name_base("OWNER/NAME")
                )
            return None
        revision = None if "base" in self.card else config.get("revision")
        folder = self.elsewhere(named, "base", "its base model", weights=self.is_adapter, revision=revision)
        above = (*self.above, self.folder.resolve())
        if folder.resolve() in above:
            raise UserError(f"{self.folder}: its base is itself, or an adapter of it.", _name_base("OWNER/NAME"))
        if not self.is_adapter:
            return folder
        return _whole(folder, with_known(repository(folder), read_card(folder)), self.fetched, above)

    def check_base(self) -> None:
        """Raise `UserError` if the weights of the base model do not have the hash given in stepsight.json."""
        expected = self.card.get(BASE_HASH)
        if expected is None or self.base is None or weights_sha256(self.base) == expected:
            return
        raise UserError(
            f"{self.folder}: {self.base} is not the base that it was trained on, the weights differ.",
            _name_base("OWNER/NAME"),
        )

    @cached_property
    def config(self) -> Path:
        """The path of the folder's config.json, or else of the base model's. Raises `UserError` if there is
        neither."""
        folders = [self.own, self.folder, *([self.base] if self.base else [])]
        path = next((folder / CONFIG for folder in folders if (folder / CONFIG).is_file()), None)
        if path is None:
            raise UserError(f"{self.folder}: {CONFIG} is missing.", _name_base("OWNER/NAME"))
        return path

    @cached_property
    def tokenizer(self) -> list[Path]:
        """The tokenizer files. The first of these folders that has any is used: the folder itself, the tokenizer's
        repository named in stepsight.json, the base model's folder. Empty if none has any."""
        for folder in self._tokenizer_folders():
            if (folder / TOKENIZER).is_file() or any((folder / name).is_file() for name in SLOW_TOKENIZERS):
                return [folder / name for name in (*_DESCRIBING, *SLOW_TOKENIZERS) if (folder / name).is_file()]
        return []

    def _tokenizer_folders(self) -> Iterator[Path]:
        yield from (self.own, self.folder)
        if "tokenizer" in self.card:
            yield self.elsewhere(self.text("tokenizer"), "tokenizer", "its tokenizer", weights=False)
        if self.base:
            yield self.base

    @cached_property
    def safetensors(self) -> list[Path]:
        """The safetensors files to link to: the base model's if the folder is an adapter, otherwise the folder's
        own. Empty if the weights are pickled."""
        if self.pickles:
            return []
        folder = self.base if self.is_adapter else self.own
        assert folder is not None
        return sorted(set(tensor_files(folder).values()))

    @cached_property
    def files(self) -> list[Path]:
        """The files of all parts."""
        written = [path for path in self.own.glob("adapter_*") if path.is_file()] if self.is_adapter else []
        return [self.config, *self.tokenizer, *self.pickles, *self.safetensors, *written]

    @cached_property
    def stamp(self) -> dict[str, Any]:
        """A description of all parts. An assembled folder with a different description is outdated."""
        return {
            "version": _VERSION,
            "files": [[str(one.resolve()), one.stat().st_size, one.stat().st_mtime_ns] for one in self.files],
            "added_tokens": self.added_tokens,
            "base": self.card.get(BASE_HASH),
        }

    @property
    def ingredients(self) -> Ingredients:
        """The parts of the assembled folder."""
        own = self.config.parent in (self.own, self.folder)
        return Ingredients(
            self.folder, self.config, self.tokenizer, self.safetensors, self.pickles, self.added_tokens,
            self.adapter, self.base, has_own_config=own,
        )  # fmt: skip

    @property
    def added_tokens(self) -> list[str]:
        """The tokens in `added_tokens` of stepsight.json, which the authors' code adds to the tokenizer when it
        loads the model."""
        tokens = self.card.get("added_tokens", [])
        if not isinstance(tokens, list) or not all(isinstance(token, str) and token for token in tokens):
            raise UserError(f"{self.folder}/{CARD}: added_tokens is {tokens!r:.40}, expected a list of texts.")
        return tokens

    def elsewhere(self, named: str, key: str, what: str, *, weights: bool, revision: object = None) -> Path:
        """Return the folder of a part that is not in this folder. `named` is a path or a hub id.

        The first match is used: a model downloaded for this checkpoint, a path relative to this folder or the
        current one, a shipped evaluator, a hub model. Raises `UserError`, calling the part `what`, if there is
        none.
        """
        asked = revision if isinstance(revision, str) and revision else NEWEST
        pinned = self.fetched.get(part_key(named, asked))
        if pinned is not None:
            return pinned.folder
        shipped = shipped_folder(named)
        # A path that an adapter of ours has is one from its own folder. Strangers know no other folders here.
        own = self._within(named) if is_from_hub(self.folder) else self.folder / named
        paths = [] if is_from_hub(self.folder) else [Path(named)]
        for folder in (own, *paths, shipped):
            if folder is not None and folder.is_dir():
                return folder
        hint = f'Name the folder or OWNER/NAME that has it in {CARD}, such as {{"{key}": "OWNER/NAME"}}.'
        if not is_hub_id(named):
            raise UserError(f"{self.folder}: {what}, {named!r:.120}, is not there.", hint)
        try:
            return model_folder(named, asked, weights=weights)
        except UserError as error:
            raise UserError(f"{self.folder}: {what}, {named!r}, is not there: {error.message}", hint) from None

    def text(self, key: str) -> str:
        value = self.card[key]
        if not isinstance(value, str) or not value:
            raise UserError(f"{self.folder}/{CARD}: {key} is {value!r:.40}, expected a text.")
        return value


def _is_current(target: Path, stamp: Mapping[str, Any]) -> bool:
    """True if the folder was assembled from the parts described by `stamp` and none of its links is broken."""
    if not (target / STAMP).is_file() or any(not path.exists() for path in target.rglob("*")):
        return False
    try:
        return read_json(target / STAMP) == stamp
    except UserError:
        return False


def _name_base(example: str) -> str:
    return f'Name the folder or OWNER/NAME of its base in {CARD}, such as {{"base": "{example}"}}.'


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
