"""Access to the model hub: the files in a repository at one commit, their content, and the words for errors.

Requests are sent by the hub's own client, `huggingface_hub`, within limits on the time of an answer. The hub that
HF_ENDPOINT names is trusted; what people upload to it is not. Does not need PyTorch.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

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
from stepsight.core.hubs.checkpoint_files import is_hub_id
from stepsight.core.hubs.hub_cache import Kind, is_hash, size_of, storage_folder
from stepsight.core.net.http import make_client, reason

# The longest silence of the hub, in seconds.
_SECONDS = 10
# A whole answer may take so many seconds, and another one for every so many bytes of it.
_PATIENCE, _PACE = 30, 10_000


class UnreachableError(UserError):
    """Raised when the model hub cannot be reached."""


@dataclass(frozen=True)
class RemoteFile:
    """A file in a repository at the commit `revision`."""

    repo: str
    revision: str
    name: str
    size: int
    kind: Kind = "model"

    @property
    def path(self) -> Path:
        """The path under which the hub's client stores the file."""
        return storage_folder(self.repo, self.kind) / "snapshots" / self.revision / self.name

    @property
    def is_here(self) -> bool:
        return size_of(self.path) == self.size


class _Paced(httpx2.SyncByteStream):
    """The body of an answer, which ends with an error if it arrives too slowly to be waited for."""

    def __init__(self, stream: httpx2.SyncByteStream) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        start, received = time.monotonic(), 0
        for piece in self._stream:
            received += len(piece)
            yield piece
            if time.monotonic() - start > _PATIENCE + received / _PACE:
                raise httpx2.ReadTimeout("the answer comes too slowly")

    def close(self) -> None:
        self._stream.close()


def _refuse_offline(request: httpx2.Request) -> None:
    if constants.is_offline_mode():
        raise OfflineModeIsEnabled("offline mode is enabled by the environment variable HF_HUB_OFFLINE")


def _pace(response: httpx2.Response) -> None:
    if isinstance(response.stream, httpx2.SyncByteStream):
        response.stream = _Paced(response.stream)


def _session() -> httpx2.Client:
    hooks = {"request": [_refuse_offline], "response": [_pace]}
    return make_client(httpx2.Client, _SECONDS, event_hooks=hooks, follow_redirects=True)


huggingface_hub.set_client_factory(_session)


def list_files(repo: str, revision: str, kind: Kind = "model") -> tuple[str, dict[str, RemoteFile]]:
    """Return the commit that a branch, tag or commit refers to, and the files at that commit by name. Use inside
    `explained`."""
    if not is_hub_id(repo):
        raise HFValidationError(f"{repo!r} is no id of a repository")
    hub = huggingface_hub.HfApi()
    ask = hub.model_info if kind == "model" else hub.dataset_info
    info = ask(repo, revision=revision, files_metadata=True, timeout=_SECONDS)
    commit = str(info.sha)
    # It and the names of files become parts of paths.
    if not is_hash(commit):
        raise ValueError(f"it names a commit by {commit!r:.80}, which is not a hash")
    files = [RemoteFile(repo, commit, file.rfilename, file.size or 0, kind) for file in info.siblings or []]
    for name in (file.name for file in files):
        if not name.isprintable() or "\\" in name or not all(part.strip(". ") for part in name.split("/")):
            raise ValueError(f"it names a file by {name!r:.80}, which is no plain name")
    return commit, {file.name: file for file in files}


def check_access(file: RemoteFile) -> None:
    """Check that the hub lets the user download a file. Use inside `explained`. Listing the files is not enough,
    because everybody can see the list of a gated model."""
    huggingface_hub.get_hf_file_metadata(_url(file), timeout=_SECONDS)


def read_small(file: RemoteFile, most: int) -> bytes | None:
    """Return the content of a file, or None if it exceeds `most` bytes. Use inside `explained`."""
    if file.size > most:
        return None
    token = None if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN else huggingface_hub.get_token()
    headers = {"authorization": f"Bearer {token}"} if token else {}
    response = huggingface_hub.get_session().get(_url(file), headers=headers)
    huggingface_hub.hf_raise_for_status(response)
    return response.content


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
        # The client found that the content has another size than the hub named.
        raise _explanation(error, repo, revision, kind) from None


def _explanation(error: BaseException, repo: str, revision: str, kind: Kind) -> UserError:
    hub = constants.ENDPOINT
    match error:
        case GatedRepoError():
            page = f"{hub}/{repo}" if kind == "model" else f"{hub}/{kind}s/{repo}"
            return UserError(
                f"{repo} is gated: its owners give it to those who have accepted their terms.",
                f"Accept them at {page}, and start StepSight with a token of yours in HF_TOKEN.",
            )
        case RevisionNotFoundError():
            return UserError(f"{repo} has no revision {revision!r:.60}.", "Name a commit, a branch or a tag.")
        case RepositoryNotFoundError():
            return UserError(
                f"the model hub has no {kind} {repo!r:.100} to which you have access.",
                f"Check the name; for a private {kind}, start StepSight with a token of yours in HF_TOKEN.",
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
            way = "Start StepSight without that variable" if is_offline else f"Check the network of {machine}"
            option = "with --evaluator" if kind == "model" else "to stepsight import"
            return UnreachableError(
                f"the model hub cannot be reached at {hub} ({reason(error):.200}).",
                f"{way} (or copy the {kind} to {machine} and name its folder {option}).",
            )
    message = f"the model hub at {hub} answers oddly: {reason(error):.200}."
    return UserError(message, "Try again, or ask those who run it.")


def _url(file: RemoteFile) -> str:
    return huggingface_hub.hf_hub_url(file.repo, file.name, repo_type=file.kind, revision=file.revision)
