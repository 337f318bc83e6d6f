"""Looking up an evaluator on a model hub: the files it needs at one commit, from its own and other repositories.

An adapter needs its base model, a log-ratio evaluator needs its reference model, and weights without a config or
tokenizer need a model that has these files. Only files needed for loading are listed: weights, config, tokenizer
and stepsight.json, never code.

Requests are sent by the hub's own client, `huggingface_hub`, within limits on the time of an answer. The hub that
HF_ENDPOINT names is trusted; what people upload to it is not. Does not need PyTorch.
"""

import math
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx2
import huggingface_hub
from huggingface_hub import constants
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from stepsight.core.errors import UserError
from stepsight.core.files.whole_files import parse_json
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
from stepsight.core.hubs.hub_cache import (
    NEWEST,
    HubFile,
    HubModel,
    Kind,
    is_file_name,
    is_hash,
    kept_card,
    part_key,
)
from stepsight.core.hubs.public import check_separator, with_known
from stepsight.core.net.http import make_client, reason

# The longest silence of the hub, in seconds.
_SECONDS = 10
# A whole answer may take this many seconds, plus one second for each of this many bytes.
_PATIENCE, _PACE = 30, 10_000
# The largest list of files in bytes, enough for about 100,000 files; it is parsed as a whole.
_MOST_LISTED = 20_000_000


class UnreachableError(UserError):
    """Raised when the model hub cannot be reached."""


class _Paced(httpx2.SyncByteStream):
    """The body of an answer, which ends with an error if it arrives too slowly to be waited for, or has more bytes
    than `most`."""

    def __init__(self, stream: httpx2.SyncByteStream, most: float) -> None:
        self._stream, self._most = stream, most

    def __iter__(self) -> Iterator[bytes]:
        start, received = time.monotonic(), 0
        for piece in self._stream:
            received += len(piece)
            yield piece
            if time.monotonic() - start > _PATIENCE + received / _PACE:
                raise httpx2.ReadTimeout("the answer comes too slowly")
            if received > self._most:
                raise ValueError(f"its list of files has more than {self._most:,} bytes")

    def close(self) -> None:
        self._stream.close()


def _refuse_offline(request: httpx2.Request) -> None:
    if constants.is_offline_mode():
        raise OfflineModeIsEnabled("offline mode is enabled by the environment variable HF_HUB_OFFLINE")


def _pace(response: httpx2.Response) -> None:
    if isinstance(response.stream, httpx2.SyncByteStream):
        is_list = response.request.url.path.startswith("/api/")
        response.stream = _Paced(response.stream, _MOST_LISTED if is_list else math.inf)


def _session() -> httpx2.Client:
    hooks = {"request": [_refuse_offline], "response": [_pace]}
    return make_client(httpx2.Client, _SECONDS, event_hooks=hooks, follow_redirects=True)


huggingface_hub.set_client_factory(_session)


def list_files(repo: str, revision: str, kind: Kind = "model") -> tuple[str, dict[str, HubFile]]:
    """Return the commit that a branch, tag or commit refers to, and the files at that commit by name. Use inside
    `explained`."""
    if not is_hub_id(repo):
        raise HFValidationError(f"{repo!r} is not the id of a repository")
    hub = huggingface_hub.HfApi()
    ask = hub.model_info if kind == "model" else hub.dataset_info
    info = ask(repo, revision=revision, files_metadata=True, timeout=_SECONDS)
    commit = str(info.sha)
    # The commit and the names of files become parts of paths.
    if not is_hash(commit):
        raise ValueError(f"its commit {commit!r:.80} is not a hash")
    files = [HubFile(repo, commit, file.rfilename, file.size or 0, kind) for file in info.siblings or []]
    for file in files:
        if not is_file_name(file.name):
            raise ValueError(f"its file name {file.name!r:.80} is not a plain name")
    return commit, {file.name: file for file in files}


def cached_snapshot(repo: str, revision: str | None = None) -> Path | None:
    """Return the folder of a model that the hub's own client has downloaded, or None if there is none."""
    try:
        return Path(huggingface_hub.snapshot_download(repo, revision=revision, local_files_only=True))
    except (OSError, ValueError):
        return None


@contextmanager
def explained(repo: str, revision: str, kind: Kind = "model") -> Iterator[None]:
    """Turn errors that the hub's client raises in this context into `UserError`, with messages about the
    repository."""
    try:
        yield
    except LocalEntryNotFoundError as error:
        # The client could neither download the file nor find it in the cache.
        raise _explanation(error.__cause__ or error, repo, revision, kind) from None
    except (HfHubHTTPError, httpx2.HTTPError, httpx2.InvalidURL, OfflineModeIsEnabled, ValueError) as error:
        raise _explanation(error, repo, revision, kind) from None
    except OSError as error:
        if error.errno is not None:
            raise
        # The client found that the size of the content differs from the one that the hub announced.
        raise _explanation(error, repo, revision, kind) from None


def _explanation(error: BaseException, repo: str, revision: str, kind: Kind) -> UserError:
    hub = constants.ENDPOINT
    match error:
        case GatedRepoError():
            page = f"{hub}/{repo}" if kind == "model" else f"{hub}/{kind}s/{repo}"
            return UserError(
                f"{repo} is gated: its owners share it only with people who have accepted their terms.",
                f"Accept them at {page}, and start StepSight with your token in HF_TOKEN.",
            )
        case RevisionNotFoundError():
            return UserError(f"{repo} has no revision {revision!r:.60}.", "Name a commit, a branch or a tag.")
        case RepositoryNotFoundError():
            return UserError(
                f"the model hub has no {kind} {repo!r:.100} to which you have access.",
                f"Check the name; for a private {kind}, start StepSight with your token in HF_TOKEN.",
            )
        case HFValidationError():
            return UserError(f"{repo!r:.100} is not the id of a {kind}.", "Give OWNER/NAME.")
        case HfHubHTTPError():
            return UserError(f"the model hub refuses {repo}: {reason(error):.200}", "Try again.")
        case httpx2.RemoteProtocolError() | httpx2.ReadError():
            return UnreachableError(
                f"{repo}: the connection to the model hub at {hub} broke ({reason(error):.200}).",
                "Try again; files that have arrived are kept.",
            )
        case httpx2.HTTPError() | OfflineModeIsEnabled():
            machine = "the machine that runs StepSight"
            is_offline = isinstance(error, OfflineModeIsEnabled)
            action = "Start StepSight without that variable" if is_offline else f"Check the network of {machine}"
            option = "with --evaluator" if kind == "model" else "to stepsight import"
            return UnreachableError(
                f"the model hub cannot be reached at {hub} ({reason(error):.200}).",
                f"{action} (or copy the {kind} to {machine} and name its folder {option}).",
            )
    message = f"the model hub at {hub} gave an unexpected answer: {reason(error):.200}."
    return UserError(message, "Try again, or ask its operators.")


def _url(file: HubFile) -> str:
    return huggingface_hub.hf_hub_url(file.repo, file.name, repo_type=file.kind, revision=file.revision)


# Mistral's repositories hold all weights a second time, under different names, in consolidated.safetensors.
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


# Another model that is needed: its id, its revision, and whether its weights are needed or only its other files.
_Need = tuple[str, str, bool]


def look_up(
    repo: str, revision: str = NEWEST, pins: Mapping[str, str] | None = None, card: Mapping[str, Any] | None = None
) -> HubModel:
    """Look up an evaluator on the hub, together with every other model it needs.

    `pins` gives the commits of these models, by `part_key`, if they were looked up before. `card` takes the place
    of the stepsight.json that the repository lacks; it defaults to the one kept by `hub_cache.keep_card`. Raises
    `UserError` if the hub has no such model or revision, refuses access, or cannot be reached, if the model has no
    weights in a supported format, if nothing says how its steps are read, or if `card` is given and the repository
    has one.
    """
    remote, needs = _look_up(repo, revision, weights=True, own=card or {}, evaluator=True)
    parts: dict[str, HubModel] = {}
    while needs:
        need, part_revision, weights = needs.pop()
        key = part_key(need, part_revision)
        if key in parts and (parts[key].own_size or not weights):
            continue
        if len(parts) >= _MOST_PARTS:
            raise UserError(f"{repo} needs more than {_MOST_PARTS} other models.", "Check its base model.")
        try:
            parts[key], others = _look_up(need, (pins or {}).get(key, part_revision), weights=weights)
        except UserError as error:
            raise type(error)(f"{repo} needs {need}: {error.message}", error.hint) from None
        needs += others
    return remote.model_copy(update={"parts": parts})


def look_up_part(repo: str, revision: str, *, weights: bool) -> HubModel:
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
) -> tuple[HubModel, list[_Need]]:
    """Look up a model, and return it with a list of the other models that it needs. These are not looked up yet."""
    with explained(repo, revision):
        commit, listed = list_files(repo, revision)

        def read(name: str) -> dict[str, Any]:
            return _read(listed[name]) if name in listed else {}

        if own and CARD in listed:
            raise UserError(f"{repo} has a {CARD} of its own.", "Copy the model into a folder and change it there.")
        card = with_known(repo, own or (read(CARD) if CARD in listed else kept_card(repo, commit)))
        below = _subfolder(repo, card, listed)
        files = _needed_files(repo, listed, below, weights=weights)
        if files:
            # Everybody can list the files of a gated model, but not download them.
            huggingface_hub.get_hf_file_metadata(_url(listed[files[0]]), timeout=_SECONDS)
        model = HubModel(repo=repo, revision=commit, files={name: listed[name].size for name in files})
        is_adapter = f"{below}{ADAPTER}" in listed and not {f"{below}{WEIGHTS}", f"{below}{INDEX}"} & set(listed)
        adapter = read(f"{below}{ADAPTER}") if is_adapter and weights else {}
        if evaluator and _classifies_tokens(card, adapter if is_adapter else read(f"{below}config.json")):
            check_separator(repo, card)
        has_tokenizer = any(f"{place}{name}" in listed for place in {below, ""}
                            for name in (TOKENIZER, *SLOW_TOKENIZERS))  # fmt: skip
    needs = list(_needed_models(repo, card, adapter, has_tokenizer=has_tokenizer)) if weights else []
    return model, needs


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


def _needed_files(repo: str, listed: Mapping[str, Any], below: str, *, weights: bool) -> list[str]:
    """Return the names of the files to download. `below` is the folder that holds the weights. Raises `UserError`
    if weights are wanted and there are none in a supported format."""

    def at(pattern: re.Pattern[str], place: str) -> list[str]:
        return [name for name in listed if name.startswith(place) and pattern.fullmatch(name.removeprefix(place))]

    described = sorted({name for place in {below, ""} for name in at(_OTHERS, place)})
    if not weights:
        return described
    weight_files = at(_SAFETENSORS, below) or at(_PICKLES, below)
    if not weight_files:
        raise UserError(f"the model {repo!r} has no weights in a supported format on the model hub.", UNPICKLE)
    return described + weight_files


def _needed_models(
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
            "Copy both models to this machine, and give its folder in the stepsight.json of the other one.",
        )
    return value


def _read(file: HubFile) -> dict[str, Any]:
    """Read a small JSON object from the hub. Raises `UserError` if the file is too large or contains anything else.
    Use inside `explained`."""
    value = None
    if file.size <= _MOST_BYTES:
        token = None if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN else huggingface_hub.get_token()
        headers = {"authorization": f"Bearer {token}"} if token else {}
        response = huggingface_hub.get_session().get(_url(file), headers=headers)
        huggingface_hub.hf_raise_for_status(response)
        with suppress(ValueError):
            value = parse_json(response.content)
    if not isinstance(value, dict):
        raise UserError(f"{file.repo}: {file.name} is not a JSON object.", "Ask its authors to correct it.")
    return value
