"""Requests to the server of an evaluator, sent concurrently within limits and retried when that may help.

    with closing(Server("http://localhost:8000/v1")) as server:
        async def ask(trace): return await server.post("chat/completions", {...})
        for trace, answer in filter(None, server.stream(traces, ask)): ...

An API key is read from the environment variable `STEPSIGHT_API_KEY` when a `Server` is created. It is sent only to
that server, never follows a redirect, and appears in no message.

A server's answers are untrusted. They are limited in size and depth, and shortened in messages.
"""

import asyncio
import json
import os
import re
import threading
import weakref
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future, wait
from typing import Any, TypeVar

import httpx2

from stepsight.core.errors import UserError
from stepsight.core.files.whole_files import parse_json
from stepsight.core.inference_servers.address import KEY
from stepsight.core.net.http import (
    BROKEN,
    FailedAttemptError,
    Retries,
    bearer,
    error_text,
    failed_attempt,
    make_client,
    read_bounded_async,
    reason,
)

AT_ONCE = 32
"""The default number of simultaneous requests."""

SECONDS = 300.0
"""The number of seconds for which a server may stay silent; a long generation takes minutes."""

LARGEST = 1 << 24
"""The largest answer in bytes."""

# Items in progress per simultaneous request, so that later items proceed while a request is repeated.
_WINDOW = 4
# The number of attempts. If a server fails one request in three, one in half a million fails this often in a row. A
# broken or refused connection counts as more than one attempt, and a timeout, after minutes, as even more.
_ATTEMPTS, _GONE, _SILENT = 12, 2, 6
# In seconds: the first and the longest pause before a repetition, and the longest wait for a busy server.
_FIRST_PAUSE, _LONGEST_PAUSE, _PATIENCE = 0.25, 8.0, 600.0
# A whole answer may take this many times as long as a timeout; otherwise one that trickles in would never end.
_WHOLE = 2
_QUOTED = 200
# Seconds between checks whether an answer has arrived.
_LOOKS = 0.1

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class ServerError(UserError):
    """Raised when a server cannot be reached or gives an unexpected answer. `status` is the HTTP status of the
    answer, or None if there was no answer."""

    def __init__(self, message: str, hint: str = "", status: int | None = None) -> None:
        super().__init__(message, hint)
        self.status = status


async def gather(coroutines: Iterable[Coroutine[Any, Any, Answer]]) -> list[Answer]:
    """Run several coroutines that query the server concurrently, and return their results. If any of them raises,
    the others are cancelled."""
    tasks = [asyncio.ensure_future(work) for work in coroutines]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()


class Server:
    """A server with the routes of OpenAI's API below `url`. Several threads can use it at once.

    Requests run in a separate thread with an event loop. `get` and `post` may be awaited only in that loop, that
    is, in coroutines passed to `stream` or `run`.
    """

    def __init__(
        self, url: str, *, at_once: int = AT_ONCE, seconds: float = SECONDS, attempts: int = _ATTEMPTS
    ) -> None:
        """Set up a server that receives at most `at_once` requests at a time, each with a timeout of `seconds`.

        A request that the server answers with an error is sent at most `attempts` times in total. Some failures are
        not retried at all. Raises `UserError` if the API key in the environment is invalid.
        """
        self.url = url.rstrip("/")
        self.at_once = at_once
        self._root = re.sub(r"/v\d+$", "", self.url)
        self._key = os.environ.get(KEY, "").strip()
        self._headers = bearer(self._key, f"It comes from the environment's {KEY}; set that again.")
        self._attempts = attempts
        self._seconds = seconds
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: httpx2.AsyncClient | None = None
        self._places: asyncio.Semaphore | None = None
        self._end: weakref.finalize[..., Server] | None = None

    def stream(
        self, items: Iterable[Item], ask: Callable[[Item], Coroutine[Any, Any, Answer]]
    ) -> Iterator[tuple[Item, Answer] | None]:
        """Yield each item with its answer, in order, and None from time to time while waiting for an answer. `ask`
        sends the requests for one item.

        Items are read ahead, up to a few times the number of simultaneous requests. If `ask` raises an error for an
        item, the error is raised after all answers received so far have been yielded, including those of later
        items. If iterating over `items` raises `UserError`, it is raised after the answers to all earlier items. If
        the work ends with an error, or the caller stops iterating, the requests in flight are cancelled, so that
        the server can stop working on them.
        """
        pending: deque[tuple[Item, Future[Answer]]] = deque()
        rest, failed = iter(items), None
        try:
            while True:
                try:
                    item = next(rest)
                except StopIteration:
                    break
                except UserError as error:
                    failed = error
                    break
                pending.append((item, self._begin(ask(item))))
                while pending and (len(pending) >= _WINDOW * self.at_once or pending[0][1].done()):
                    yield from _next_answer(pending)
            while pending:
                yield from _next_answer(pending)
            if failed is not None:
                raise failed
        finally:
            for _, future in pending:
                future.cancel()

    def run(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Run one coroutine that queries the server, and return its result."""
        future = self._begin(work)
        try:
            return future.result()
        finally:
            future.cancel()

    async def get(self, path: str, attempts: int | None = None) -> Any:
        """Return the JSON at a route, trying at most `attempts` times. Raises `ServerError` if that fails. `path`
        is relative to the server's `url` or, with a leading slash, to the server's root."""
        return await self._send("GET", path, None, attempts or self._attempts)

    async def post(self, path: str, body: object, attempts: int | None = None) -> Any:
        """Send `body` as JSON and return the JSON of the answer. Raises `ServerError` if that fails. `path` and
        `attempts` have the same meaning as in `get`."""
        content = json.dumps(body, separators=(",", ":")).encode()
        return await self._send("POST", path, content, attempts or self._attempts)

    def close(self) -> None:
        """Cancel the requests in flight, and close the connections."""
        with self._lock:
            if self._end is not None:
                self._end()
            self._loop = self._client = self._places = self._end = None

    def _begin(self, work: Coroutine[Any, Any, Answer]) -> Future[Answer]:
        with self._lock:
            if self._loop is None:
                try:
                    self._start()
                except UserError:
                    work.close()
                    raise
            assert self._loop is not None
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _start(self) -> None:
        limits = httpx2.Limits(max_connections=self.at_once, max_keepalive_connections=self.at_once)
        headers = {"accept": "application/json", **self._headers}
        self._client = make_client(httpx2.AsyncClient, self._seconds, headers, limits=limits)
        self._loop = asyncio.new_event_loop()
        self._places = asyncio.Semaphore(self.at_once)
        thread = threading.Thread(target=_run, args=(self._loop,), name="stepsight-server", daemon=True)
        thread.start()
        self._end = weakref.finalize(self, _stop, self._loop, self._client, thread)

    async def _send(self, method: str, path: str, content: bytes | None, attempts: int) -> Any:
        """Send a request and return the answer.

        The request is retried as long as the server reports that it is busy, within a time limit, and a limited
        number of times after other failures.
        """
        retries = Retries(attempts, _FIRST_PAUSE, _LONGEST_PAUSE, _PATIENCE)
        assert self._places is not None
        while True:
            try:
                async with self._places:
                    return await self._send_once(method, path, content)
            except FailedAttemptError as failure:
                pause = retries.pause(failure)
            await asyncio.sleep(pause)

    async def _send_once(self, method: str, path: str, content: bytes | None) -> Any:
        url = f"{self._root}{path}" if path.startswith("/") else f"{self.url}/{path}"
        headers = {} if content is None else {"content-type": "application/json"}
        assert self._client is not None
        try:
            async with (
                asyncio.timeout(_WHOLE * self._seconds),
                self._client.stream(method, url, content=content, headers=headers) as response,
            ):
                body = await read_bounded_async(response, LARGEST)
        except TimeoutError:
            hint = "Check what it is doing, then start again to continue."
            raise self._failed_attempt("the server does not finish its answer.", hint, _SILENT) from None
        except httpx2.TimeoutException as error:
            what = "cannot be reached" if isinstance(error, httpx2.ConnectTimeout) else "does not respond"
            raise self._failed_attempt(
                f"the server {what}.", "Check that it runs, then start again to continue.", _SILENT
            ) from None
        except httpx2.ConnectError as error:
            hint = "Start it, or check the address. Earlier scores are kept."
            raise self._failed_attempt(
                f"the server cannot be reached ({self._quote(reason(error))}).", hint, _GONE
            ) from None
        except BROKEN as error:
            hint = "Check its log, then start again to continue."
            raise self._failed_attempt(
                f"the server broke the connection ({self._quote(reason(error))}).", hint, _GONE
            ) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise ServerError(f"{self.url}: {self._quote(str(error))}", "Check the address.") from None
        return self._read(response, path, body)

    def _failed_attempt(self, message: str, hint: str, costs: int) -> FailedAttemptError:
        return FailedAttemptError(ServerError(f"{self.url}: {message}", hint), costs=costs)

    def _read(self, response: httpx2.Response, path: str, body: bytes | None) -> Any:
        """Return the JSON of an answer. Raises `ServerError`, or `FailedAttemptError` if a retry may help."""
        status = response.status_code
        where = f"{self.url}: the server"
        if body is None:
            raise ServerError(f"{where} answered {path} with over {LARGEST:,} bytes.", "Check what runs there.")
        kind = response.headers.get("content-type", "").partition(";")[0].strip()
        if status == 200 and "json" not in kind and body.lstrip()[:1] not in (b"{", b"["):
            raise ServerError(
                f"{where} answered {path} with {kind or 'something'!r:.60}, expected JSON: {self._error(body)}",
                "Give the address of its API, which ends in /v1.",
                status,
            )
        if status == 200:
            try:
                return parse_json(body)
            except ValueError as error:
                raise FailedAttemptError(
                    ServerError(
                        f"{where} answered {path} with invalid JSON ({error}): {self._error(body)}", status=status
                    )
                ) from None
        refusal = ServerError(
            f"{where} answered {path} with status {status}: {self._error(body)}",
            _hint(status, bool(self._key)),
            status,
        )
        raise failed_attempt(response, refusal)

    def _error(self, body: bytes) -> str:
        """Return the error message in the body of an answer, shortened, or "no message." if the body is empty."""
        return self._quote(error_text(body)) or "no message."

    def _quote(self, text: str) -> str:
        """Return text from the server on one line, shortened and without our API key, which some servers repeat."""
        text = " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", text).split())
        if self._key:
            text = text.replace(self._key, "…")
        return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}…"


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
    loop.close()


def _stop(loop: asyncio.AbstractEventLoop, client: httpx2.AsyncClient, thread: threading.Thread) -> None:
    """Stop an event loop, cancelling all its tasks and closing the client."""

    async def end() -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await client.aclose()
        loop.stop()

    if thread.is_alive():
        asyncio.run_coroutine_threadsafe(end(), loop)
        if thread is not threading.current_thread():
            thread.join(5)


def _next_answer(pending: "deque[tuple[Item, Future[Answer]]]") -> Iterator[tuple[Item, Answer] | None]:
    """Wait for the answer to the first item, and remove both from `pending`."""
    item, future = pending[0]
    while not future.done():
        yield None
        wait([future], _LOOKS)
    pending.popleft()
    if future.exception() is not None:
        for other, answer in pending:
            if answer.done() and answer.exception() is None:
                yield other, answer.result()
    yield item, future.result()


def _hint(status: int, has_key: bool) -> str:
    if status in (401, 403):
        return f"Set {KEY} to {'another key' if has_key else 'the key of the server'}."
    if status == 404:
        return "Check the address, which usually ends in /v1, and the models on the server."
    if 300 <= status < 400:
        return "Give the address to which it redirects; redirects are not followed."
    if status == 429:
        return "Start again later to continue."
    return "Check the server's log."
