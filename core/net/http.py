"""HTTP for all parts of StepSight: connections, retries and bodies of limited size.

Responses are untrusted. Their size is limited after decompression, and text from them is shortened before it is
shown.
"""

import os
import random
import socket
import ssl
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from math import isfinite
from time import sleep, time
from typing import Any, TypeVar

import httpx2

from stepsight.core.errors import UserError
from stepsight.core.files.whole_files import parse_json

ClientKind = TypeVar("ClientKind", httpx2.Client, httpx2.AsyncClient)
Answer = TypeVar("Answer")

BROKEN = (httpx2.TransportError, httpx2.DecodingError)
"""Raised if a connection fails or delivers damaged data."""

_CONNECTING = 10.0
_HEADERS = {"user-agent": "stepsight", "accept-encoding": "identity"}
# Statuses of a busy server, and of one in trouble: RFC 9110, RFC 6585 for 429, and Anthropic's 529.
_BUSY, _TROUBLED = {429, 503, 529}, {408, 500, 502, 504}
# Requests to a server on this machine are sent directly, whatever proxy the environment specifies.
_DIRECT = {f"all://{host}": None for host in ("localhost", "127.0.0.1", "[::1]")}
_LONGEST_RETRY_AFTER = 6000.0
_LONGEST_ERROR = 1 << 16
# The largest number of bytes unpacked at once. No compression is requested, but some proxies compress anyway.
_PIECE = 1 << 20
_COMPRESSIONS = ("gzip", "x-gzip", "deflate")


class FailedAttemptError(Exception):
    """Raised when a request failed but may succeed if it is repeated.

    `error` is the exception to raise when no attempts are left. `after` is the number of seconds that the server
    asks to wait, or None if it does not say. `costs` is the number of attempts that this failure uses up; it is 0
    if the server is merely busy.
    """

    def __init__(self, error: Exception, after: float | None = None, *, costs: int = 1) -> None:
        super().__init__(str(error))
        self.error, self.after, self.costs = error, after, costs


@dataclass
class Retries:
    """The retry policy for a request that makes no progress.

    The request may fail `attempts` times. Pauses start at `first` seconds and double up to `longest` seconds,
    unless the server asks for a certain pause. Waiting for a busy server takes at most `patience` seconds in total.
    """

    attempts: int
    first: float
    longest: float
    patience: float

    def __post_init__(self) -> None:
        self.progressed()

    def progressed(self) -> None:
        """Forget all failures so far, because the request has made progress."""
        self._failures, self._pauses, self._waited = 0, 0, 0.0

    def run(self, attempt: Callable[[], Answer], wait: Callable[[float], None] = sleep) -> Answer:
        """Return the result of `attempt`, repeating it while it raises `FailedAttemptError` and attempts are left.
        `wait` spends the seconds between two attempts."""
        while True:
            try:
                return attempt()
            except FailedAttemptError as failure:
                seconds = self.pause(failure)
            wait(seconds)

    def pause(self, failure: FailedAttemptError) -> float:
        """Count a failure and return the number of seconds to wait before the next attempt. Raises the failure's
        error if no attempts are left or a busy server has used up the patience."""
        # The pause is random, since clients that were turned away together should not all come back together.
        if failure.after is None:
            seconds = min(self.longest, self.first * 2.0 ** min(self._pauses, 20)) * random.uniform(1, 1.25)
        else:
            seconds = failure.after + random.uniform(0, self.first)
        self._failures += failure.costs
        self._pauses += 1
        if not failure.costs:
            self._waited += seconds
        if self._failures >= self.attempts or self._waited > self.patience:
            raise failure.error from None
        return seconds


def bearer(key: str, hint: str) -> dict[str, str]:
    """Return the authorization header for an API key, or no header if the key is empty.

    Raises `UserError` with the given `hint` if the key contains invalid characters. The message does not repeat the
    key.
    """
    key = key.strip()
    if not (key.isascii() and key.isprintable()):
        raise UserError("the API key contains invalid characters.", hint)
    return {"authorization": f"Bearer {key}"} if key else {}


def make_client(
    kind: type[ClientKind], seconds: float, headers: Mapping[str, str] | None = None, **options: Any
) -> ClientKind:
    """Create a client of class `kind` that times out when a server sends nothing for `seconds` seconds.

    It uses the proxies named in the environment, except for requests to this machine. Raises `UserError` if a proxy
    cannot be used.
    """
    timeout = httpx2.Timeout(seconds, connect=_CONNECTING, pool=None)
    try:
        return kind(timeout=timeout, headers={**_HEADERS, **(headers or {})}, mounts=_DIRECT, **options)
    except (ImportError, ValueError, httpx2.InvalidURL) as error:
        raise UserError(
            f"the proxy named in the environment cannot be used ({reason(error):.200}).",
            "Set HTTP_PROXY, HTTPS_PROXY and ALL_PROXY to http:// or https:// addresses, or unset them.",
        ) from None


def failed_attempt(response: httpx2.Response, error: Exception) -> Exception:
    """Return the exception to raise for an error response: `error` itself, or a `FailedAttemptError` that contains
    it if repeating the request may help."""
    status = response.status_code
    if status in _BUSY:
        after = _retry_after(response.headers.get("retry-after"))
        return FailedAttemptError(error, after, costs=int(status != 429 and after is None))
    return FailedAttemptError(error) if status in _TROUBLED else error


def reason(error: BaseException) -> str:
    """Return the cause of an error on one line. For a failed connection it is a phrase in plain words, otherwise
    the error's message, or the name of its class if the message is empty."""
    cause: BaseException | None = error
    while cause is not None:
        if words := _cause(cause):
            return words
        cause = cause.__cause__ or cause.__context__
    return " ".join(str(error).split()) or type(error).__name__


def _cause(error: BaseException) -> str:
    """Name the cause of a failed connection, or return "" for any other error. The messages of these errors are
    error numbers, or come from C functions."""
    match error:
        case httpx2.ProxyError():
            return f"the proxy refuses: {error}" if str(error) else "the proxy refuses"
        case socket.gaierror():
            return "the host's name cannot be resolved"
        case ssl.SSLCertVerificationError():
            return f"the certificate cannot be verified: {error.verify_message}"
        case ssl.SSLError():
            return f"no encrypted connection: {(error.reason or 'unknown reason').lower().replace('_', ' ')}"
        case TimeoutError():
            return "no answer in time"
        case OSError(errno=int(number)) if number > 0:
            return os.strerror(number).lower()
    return ""


def error_text(body: bytes) -> str:
    """Return the message in the body of an error response. If the body has none of the usual formats, its first
    characters are returned."""
    body = body[:_LONGEST_ERROR]
    with suppress(ValueError):
        if message := _message(parse_json(body)):
            return message
    return body.decode("utf-8", "replace")


def read_pieces(response: httpx2.Response) -> Iterator[bytes]:
    """Yield the body of a response in pieces of limited size, unpacked. May raise the errors in `BROKEN`, for
    example if the body is packed by anything but gzip or deflate, or more than once."""
    unpack = _unpacker(response)
    for raw in response.iter_raw():
        yield from unpack(raw)


def _unpacker(response: httpx2.Response) -> Callable[[bytes], Iterator[bytes]]:
    """Return the function that unpacks the next bytes of a body, in pieces."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding in ("identity", ""):
        return lambda raw: iter((raw,))
    if encoding not in _COMPRESSIONS:
        raise httpx2.DecodingError(f"the answer is compressed by {encoding:.40}")
    # This value tells zlib to accept a gzip header as well as its own.
    stream = zlib.decompressobj(zlib.MAX_WBITS | 32)

    def unpack(raw: bytes) -> Iterator[bytes]:
        is_more = True
        while is_more:
            try:
                piece = stream.decompress(raw, _PIECE)
            except zlib.error as error:
                raise httpx2.DecodingError(f"the answer is damaged ({error})") from None
            raw = stream.unconsumed_tail
            # After a full piece, some output may remain although all input has been consumed.
            is_more = bool(raw) or len(piece) == _PIECE
            yield piece

    return unpack


def read_bounded(response: httpx2.Response, most: int) -> bytes | None:
    """Return the body of a response, or None if it has more than `most` bytes. May raise the errors in `BROKEN`."""
    body = bytearray()
    for piece in read_pieces(response):
        body += piece
        if len(body) > most:
            return None
    return bytes(body)


async def read_bounded_async(response: httpx2.Response, most: int) -> bytes | None:
    """Like `read_bounded`, but for an asynchronous client."""
    body, unpack = bytearray(), _unpacker(response)
    async for raw in response.aiter_raw():
        for piece in unpack(raw):
            body += piece
            if len(body) > most:
                return None
    return bytes(body)


def read_lines(response: httpx2.Response, longest: int) -> Iterator[bytes]:
    """Yield the lines of a body as they arrive, without line endings.

    Raises one of the errors in `BROKEN` if the connection breaks, a line has more than `longest` bytes, or the last
    line is incomplete.
    """
    parts: list[bytes] = []
    size = 0
    for chunk in read_pieces(response):
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            yield b"".join((*parts, end))
            parts, size = [], 0
        parts.append(rest)
        size += len(rest)
        if size > longest:
            raise httpx2.RemoteProtocolError(f"a line has more than {longest:,} bytes")
    if size:
        raise httpx2.RemoteProtocolError("the answer ends in the middle of a line")


def _message(value: object) -> str:
    for key in ("error", "message", "detail"):
        if isinstance(value, dict) and key in value:
            return _message(value[key])
    return value if isinstance(value, str) else ""


def _retry_after(text: str | None) -> float | None:
    """Return the seconds given by a Retry-After header as a number or a date, or None if it cannot be parsed."""
    try:
        seconds = float(text or "")
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text or "").timestamp() - time()
        except (TypeError, ValueError, OverflowError):
            return None
    return min(max(0.0, seconds), _LONGEST_RETRY_AFTER) if isfinite(seconds) else None
