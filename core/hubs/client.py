"""Access to the model hub: the list of files in a repository at one commit, and their content.

This is the only module in `core.hubs` that imports the hub's own client, `huggingface_hub`, and it uses only the
client's public names. Does not need PyTorch.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
from huggingface_hub import (
    HfApi,
    constants,
    get_hf_file_metadata,
    get_session,
    get_token,
    hf_hub_download,
    hf_hub_url,
    hf_raise_for_status,
    snapshot_download,
)
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
from stepsight.core.hubs.hub_cache import Kind, is_hash, storage_folder
from stepsight.core.net.download import Downloader, RemoteContent, partial_of, size_of
from stepsight.core.net.http import proxy_error, read_bounded, reason

# The longest silence of the hub, in seconds.
_SECONDS = 10


class UnreachableError(UserError):
    """Raised when the model hub cannot be reached."""


@dataclass(frozen=True)
class RemoteFile:
    """A file in a repository at the commit `revision`. `digest` is the SHA-256 of its content if the hub stores
    that content separately, and otherwise its Git hash."""

    repo: str
    revision: str
    name: str
    size: int
    digest: str
    kind: Kind = "model"

    @property
    def blob(self) -> Path:
        """The path of the file's content in the hub client's cache."""
        return storage_folder(self.repo, self.kind) / "blobs" / self.digest

    @property
    def partial(self) -> Path:
        """The path of the file's content while the download is incomplete."""
        return partial_of(self.blob)

    @property
    def is_here(self) -> bool:
        return self.blob.is_file() and size_of(self.blob) == self.size

    @property
    def here(self) -> int:
        """The number of bytes of the file that have already been downloaded."""
        return self.size if self.is_here else min(self.size, size_of(self.partial))


def list_files(repo: str, revision: str, kind: Kind = "model") -> tuple[str, dict[str, RemoteFile]]:
    """Return the commit that a branch, tag or commit refers to, and the files at that commit by name. Use inside
    `explained`."""
    ask = HfApi().model_info if kind == "model" else HfApi().dataset_info
    info = ask(repo, revision=revision, files_metadata=True, timeout=_SECONDS)
    commit = _digest(info.sha)
    files = {}
    for one in info.siblings or []:
        size, digest = (one.lfs["size"], one.lfs["sha256"]) if one.lfs is not None else (one.size, one.blob_id)
        files[one.rfilename] = RemoteFile(repo, commit, one.rfilename, int(size or 0), _digest(digest), kind)
    return commit, files


def check_access(file: RemoteFile) -> None:
    """Check that the hub lets the user download a file. Use inside `explained`. Listing the files is not enough,
    because everybody can see the list of a gated model."""
    get_hf_file_metadata(_url(file), timeout=_SECONDS)


def read_small(file: RemoteFile, most: int) -> bytes | None:
    """Return the content of a file, or None if it exceeds `most` bytes. Use inside `explained`."""
    if file.size > most:
        return None
    headers = {"accept-encoding": "identity", **_authorization()}
    with get_session().stream("GET", _url(file), headers=headers, timeout=_SECONDS) as response:
        hf_raise_for_status(response)
        return read_bounded(response, most)


def hub_downloader() -> Downloader:
    """Return a downloader that uses the hub client's session. Use the downloader inside `explained`."""
    return Downloader(get_session(), _refusal, _SECONDS)


def content_of(file: RemoteFile) -> RemoteContent:
    # The hub redirects to a temporary address on another host, so every transfer starts at the hub; the client does
    # not send the token to the other host.
    return RemoteContent(_url(file), f"{file.repo}/{file.name}", file.digest, file.size, _authorization())


def link_file(file: RemoteFile) -> Path:
    """Create the link under which the hub's client finds a downloaded file in its cache, if necessary, and return
    the link's path. Use inside `explained`."""
    return Path(
        hf_hub_download(file.repo, file.name, repo_type=file.kind, revision=file.revision, etag_timeout=_SECONDS)
    )


def cached_snapshot(repo: str, revision: str | None = None) -> Path | None:
    """Return the folder of a model that the hub's own client has downloaded, or None if there is none."""
    try:
        return Path(snapshot_download(repo, revision=revision, local_files_only=True))
    except (OSError, ValueError):
        return None


@contextmanager
def explained(repo: str, revision: str, kind: Kind = "model") -> Iterator[None]:
    """Turn errors that the hub's client raises in this context into `UserError`, with messages about the
    repository."""
    given = "with --evaluator" if kind == "model" else "in place of its id"
    page = f"{constants.ENDPOINT}/{repo}" if kind == "model" else f"{constants.ENDPOINT}/{kind}s/{repo}"
    try:
        yield
    except GatedRepoError:
        raise UserError(
            f"{repo} is gated: its owners give it to those who have accepted their terms.",
            f"Accept them at {page}, and start StepSight with a token of yours in HF_TOKEN.",
        ) from None
    except RevisionNotFoundError:
        raise UserError(f"{repo} has no revision {revision!r:.60}.", "Name a commit, a branch or a tag.") from None
    except RepositoryNotFoundError:
        raise UserError(
            f"the model hub has no {kind} {repo!r:.100} to which you have access.",
            f"Check the name; for a private {kind}, start StepSight with a token of yours in HF_TOKEN.",
        ) from None
    except HFValidationError:
        raise UserError(f"{repo!r:.100} is not the id of a {kind}.", "Give OWNER/NAME.") from None
    except ImportError as error:
        raise proxy_error(error) from None
    except HfHubHTTPError as error:
        raise UserError(f"the model hub refuses {repo}: {reason(error):.200}", "Try again.") from None
    except (httpx2.HTTPError, OfflineModeIsEnabled, LocalEntryNotFoundError) as error:
        raise UnreachableError(
            f"the model hub cannot be reached at {constants.ENDPOINT} ({reason(error):.200}).",
            f"Check the network, or copy the {kind} to this machine and give its folder {given}.",
        ) from None


def _url(file: RemoteFile) -> str:
    return hf_hub_url(file.repo, file.name, repo_type=file.kind, revision=file.revision)


def _authorization() -> dict[str, str]:
    token = None if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN else get_token()
    return {} if token is None else {"authorization": f"Bearer {token}"}


def _refusal(response: httpx2.Response, content: RemoteContent) -> Exception:
    try:
        hf_raise_for_status(response)
    except HfHubHTTPError as error:
        return error
    return UserError(f"{content.name}: the model hub answers {response.status_code}.", "Try again.")


def _digest(text: object) -> str:
    """Return the hub's hash of a file or commit as text. Raises `UserError` if it does not look like a hash,
    because it becomes part of a local path."""
    if not is_hash(str(text)):
        raise UserError(f"the model hub at {constants.ENDPOINT} names a file by {text!r:.80}, which is not a hash.")
    return str(text)
