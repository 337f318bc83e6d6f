"""Access to the model hub: the list of files in a repository at one commit, and their content.

This is the only module in `core.hubs` that imports the hub's own client, `huggingface_hub`, and it uses only the
client's public names. Does not need PyTorch.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

import httpx2
from huggingface_hub import constants, get_token, hf_raise_for_status
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError

from stepsight.core.errors import UserError
from stepsight.core.hubs.hub_cache import Kind, is_file_name, is_hash, storage_folder
from stepsight.core.net.download import Downloader, RemoteContent, partial_of, size_of
from stepsight.core.net.http import make_client, read_bounded, reason

# The longest silence of the hub, in seconds.
_SECONDS = 10
# The largest repository, and the longest answers of the hub in bytes.
_MOST_FILES, _LONGEST_LIST, _LONGEST_REFUSAL = 50_000, 20_000_000, 1 << 16
_MOST_REDIRECTS = 5


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


class _HubAnswer(BaseModel):
    """The part of a hub's answer that is read. Other keys are ignored."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class _Stored(_HubAnswer):
    sha256: str
    size: NonNegativeInt


class _Sibling(_HubAnswer):
    name: str = Field(alias="rfilename")
    size: NonNegativeInt | None = None
    blob: str | None = Field(alias="blobId", default=None)
    lfs: _Stored | None = None


class _Info(_HubAnswer):
    sha: str
    siblings: list[_Sibling] = Field(default_factory=list, max_length=_MOST_FILES)


def list_files(repo: str, revision: str, kind: Kind = "model") -> tuple[str, dict[str, RemoteFile]]:
    """Return the commit that a branch, tag or commit refers to, and the files at that commit by name. Use inside
    `explained`. Raises `UserError` if the hub's answer is not such a list, or if it is too long."""
    try:
        storage_folder(repo, kind)
    except ValueError as error:
        raise HFValidationError(str(error)) from None
    address = f"{constants.ENDPOINT}/api/{kind}s/{repo}/revision/{quote(revision, safe='')}?blobs=true"
    with _client() as client, _asked(client, "GET", address) as response:
        body = read_bounded(response, _LONGEST_LIST)
    if body is None:
        raise _odd(f"it lists the files of {repo} in over {_LONGEST_LIST:,} bytes")
    try:
        info = _Info.model_validate_json(body)
    except ValidationError as error:
        raise _odd(f"its list of the files of {repo} cannot be read ({error.errors()[0]['msg']:.200})") from None
    commit = _digest(info.sha)
    files = {}
    for one in info.siblings:
        if not is_file_name(one.name):
            raise _odd(f"{repo} has a file {one.name!r:.80}, which is no plain name")
        size, digest = (one.lfs.size, one.lfs.sha256) if one.lfs is not None else (one.size or 0, one.blob)
        files[one.name] = RemoteFile(repo, commit, one.name, size, _digest(digest), kind)
    return commit, files


def check_access(file: RemoteFile) -> None:
    """Check that the hub lets the user download a file. Use inside `explained`. Listing the files is not enough,
    because everybody can see the list of a gated model."""
    address = _url(file)
    with _client() as client:
        for _ in range(_MOST_REDIRECTS):
            with _asked(client, "HEAD", address, follow=False) as response:
                place = response.headers.get("location", "")
                if not response.is_redirect or urlsplit(place).netloc:
                    # Another host, to which the hub leads those whom it lets in, may refuse to be asked so.
                    return
                address = str(response.url.join(place))
    raise _odd(f"{file.name} of {file.repo} leads from one place to the next")


def read_small(file: RemoteFile, most: int) -> bytes | None:
    """Return the content of a file, or None if it exceeds `most` bytes. Use inside `explained`."""
    if file.size > most:
        return None
    with _client() as client, _asked(client, "GET", _url(file)) as response:
        return read_bounded(response, most)


@contextmanager
def hub_downloader() -> Iterator[Downloader]:
    """Yield a downloader for files of the hub. Use it inside `explained`."""
    with _client() as client:
        yield Downloader(client, _refusal, _SECONDS)


def content_of(file: RemoteFile) -> RemoteContent:
    # The hub redirects to a temporary address on another host, so every transfer starts at the hub; the client does
    # not send the token to the other host.
    return RemoteContent(_url(file), f"{file.repo}/{file.name}", file.digest, file.size, headers=_authorization())


def link_file(file: RemoteFile) -> Path:
    """Create the link under which the hub's client finds a downloaded file in its cache, if necessary, and return
    the link's path. Of the hub's answer, only the digest and the name, which were checked, become part of a
    path."""
    link = storage_folder(file.repo, file.kind) / "snapshots" / file.revision / file.name
    if link.exists() and link.samefile(file.blob):
        return link
    link.parent.mkdir(parents=True, exist_ok=True)
    made = link.with_name(f"{link.name}.{os.getpid()}.stepsight.link")
    with suppress(FileNotFoundError):
        made.unlink()
    try:
        made.symlink_to(os.path.relpath(file.blob, link.parent))
    except OSError:
        # Not every system has symbolic links.
        os.link(file.blob, made)
    os.replace(made, link)
    return link


def cached_snapshot(repo: str, revision: str | None = None) -> Path | None:
    """Return the folder of a model that the hub's own client has downloaded, or None if there is none."""
    # It takes longer to import than all other names of the client.
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(repo, revision=revision, local_files_only=True))
    except (OSError, ValueError):
        return None


@contextmanager
def explained(repo: str, revision: str, kind: Kind = "model") -> Iterator[None]:
    """Turn errors that the hub's client raises in this context into `UserError`, with messages about the
    repository."""
    named = "with --evaluator" if kind == "model" else "to stepsight import"
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
    except HfHubHTTPError as error:
        raise UserError(f"the model hub refuses {repo}: {reason(error):.200}", "Try again.") from None
    except (httpx2.HTTPError, OfflineModeIsEnabled) as error:
        machine = "the machine that runs StepSight"
        is_offline = isinstance(error, OfflineModeIsEnabled)
        way = "Start StepSight without that variable" if is_offline else f"Check the network of {machine}"
        raise UnreachableError(
            f"the model hub cannot be reached at {constants.ENDPOINT} ({reason(error):.200}).",
            f"{way} (or copy the {kind} to {machine} and name its folder {named}).",
        ) from None
    except (httpx2.InvalidURL, ValueError) as error:
        raise _odd(f"{reason(error):.200}") from None


def _client() -> httpx2.Client:
    # The hub's own client reads whatever an error answers, however long it is.
    if constants.HF_HUB_OFFLINE:
        raise OfflineModeIsEnabled("offline mode is enabled by the environment variable HF_HUB_OFFLINE")
    return make_client(httpx2.Client, _SECONDS)


@contextmanager
def _asked(client: httpx2.Client, method: str, address: str, *, follow: bool = True) -> Iterator[httpx2.Response]:
    """Ask the hub, and raise an error of its client if it refuses. If `follow` is True, redirects are followed."""
    with client.stream(
        method, address, headers=_authorization(), timeout=_SECONDS, follow_redirects=follow
    ) as response:
        if response.is_error:
            hf_raise_for_status(_bounded(response))
        yield response


def _bounded(response: httpx2.Response) -> httpx2.Response:
    """Return a refusal whose body is read only up to a limit, because the hub's client would read all of it."""
    headers = [(name, value) for name, value in response.headers.items() if name.lower().startswith("x-")]
    body = read_bounded(response, _LONGEST_REFUSAL) or b""
    return httpx2.Response(response.status_code, headers=headers, content=body, request=response.request)


def _odd(what: str) -> UserError:
    message = f"the model hub at {constants.ENDPOINT} answers oddly: {what}."
    return UserError(message, "Try again, or ask those who run it.")


def _url(file: RemoteFile) -> str:
    from huggingface_hub import hf_hub_url

    return hf_hub_url(file.repo, file.name, repo_type=file.kind, revision=file.revision)


def _authorization() -> dict[str, str]:
    token = None if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN else get_token()
    return {} if token is None else {"authorization": f"Bearer {token}"}


def _refusal(response: httpx2.Response, content: RemoteContent) -> Exception:
    try:
        hf_raise_for_status(_bounded(response))
    except HfHubHTTPError as error:
        return error
    return UserError(f"{content.name}: the model hub answers {response.status_code}.", "Try again.")


def _digest(text: object) -> str:
    """Return the hub's hash of a file or commit as text. Raises `UserError` if it does not look like a hash,
    because it becomes part of a local path."""
    if not is_hash(str(text)):
        raise UserError(f"the model hub at {constants.ENDPOINT} names a file by {text!r:.80}, which is not a hash.")
    return str(text)
