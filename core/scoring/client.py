"""A client of a StepSight server, with the methods of `Scorer`. Does not need PyTorch."""

import json
import os
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from typing import Any, Self

import httpx2
import numpy as np

from stepsight.core.arrays import Floats32
from stepsight.core.errors import UserError
from stepsight.core.evaluator_summary import EvaluatorSummary
from stepsight.core.files.whole_files import parse_json
from stepsight.core.inference_servers.address import checked_url
from stepsight.core.judgment import Judgment, Mode, Skip
from stepsight.core.judgment_record import JudgmentRecord, StepRecord, probabilities
from stepsight.core.net.http import (
    BROKEN,
    FailedAttemptError,
    Retries,
    bearer,
    failed_attempt,
    make_client,
    read_bounded,
    read_lines,
    reason,
)
from stepsight.core.scoring.scorer_base import AbstractScorer
from stepsight.core.trace import LABEL_NAMES, Trace, check_candidates
from stepsight.core.validation import validate

KEY_VARIABLE = "STEPSIGHT_KEY"
"""The environment variable with the key to use if none is given."""

API = "/api/v1"
"""The path of the HTTP API on a server."""

# The largest number of traces in a request, and of bytes of their JSON; a server accepts 1 MB.
_TRACES, _BYTES = 64, 500_000
# The longest trace id that a server accepts.
_LONGEST_ID = 200
# The longest line in bytes: the triangle of 1,000 steps takes 20 MB.
_LONGEST_LINE = 64_000_000
_LARGEST_FAILURE = 1_000_000
# The longest time in seconds for which a server may keep a trace waiting.
_LONGEST_WAIT = 3600.0
# The number of attempts for a request, and the first and longest pause between two in seconds; it doubles.
_ATTEMPTS, _FIRST_PAUSE, _LONGEST_PAUSE = 5, 0.5, 30.0

Line = dict[str, Any]


class Client(AbstractScorer):
    """A scorer that lets a StepSight server score the traces.

    It has the methods and results of `Scorer`, except that probabilities are rounded to six digits. Connections are
    kept open for the next call. Several threads can use a client at once.

    If the server is busy, requests are repeated for at most `patience` seconds without progress. Raises `UserError`
    if the server does not answer or refuses a request.
    """

    def __init__(
        self,
        address: str,
        *,
        evaluator: str | None = None,
        key: str | None = None,
        patience: float = 300.0,
        timeout: float = 180.0,
    ) -> None:
        """Create a client of the server at `address`, such as http://127.0.0.1:7860.

        `evaluator` is one of the names that the server offers, or None for the first one. `key` is the API key that
        `stepsight user key` prints, which a server with accounts requires. If it is None, it is taken from the
        environment variable STEPSIGHT_KEY. A server that sends nothing for `timeout` seconds counts as unreachable.
        """
        self.address = checked_url(address, "Give one such as http://127.0.0.1:7860.", KEY_VARIABLE)
        key = os.environ.get(KEY_VARIABLE, "") if key is None else key
        self._headers = {"content-type": "application/json"}
        self._headers |= bearer(key, "Give what stepsight user key printed.")
        self._name = evaluator
        self._patience, self._timeout = patience, timeout

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all open connections. The next call opens new ones."""
        connections = self.__dict__.pop("_connections", None)
        if connections is not None:
            connections.close()

    @cached_property
    def _connections(self) -> httpx2.Client:
        return make_client(httpx2.Client, self._timeout, self._headers)

    @cached_property
    def evaluator(self) -> EvaluatorSummary:
        """The server's description of the evaluator. Raises `UserError` if the server has no such evaluator."""

        def listing() -> bytes:
            with self._response("GET", "/evaluators") as response:
                return read_bounded(response, _LONGEST_LINE) or b""

        content = self._retries().run(listing)
        try:
            infos = parse_json(content)
        except ValueError:
            raise UserError(f"{self.address} did not answer with JSON.", "Check the address.") from None
        listed = infos if isinstance(infos, list) else []
        offered = [info for info in listed if isinstance(info, dict) and info.get("scores")]
        for info in offered:
            if self._name in (None, info.get("name")):
                with self._check_response():
                    values = {k: value for k, value in info.items() if k in EvaluatorSummary.__dataclass_fields__}
                    limits = {k: value for k, value in info["thresholds"].items() if value is not None}
                    return validate(EvaluatorSummary, values | {"thresholds": limits})
        names = ", ".join(str(info.get("name")) for info in offered)
        raise UserError(f"{self.address} has no evaluator {self._name!r}.", f"Choose one of: {names}.")

    def score(
        self,
        traces: Iterable[Trace],
        mode: Mode | str = Mode.OFFLINE,
        on_skip: Skip | None = None,
    ) -> Iterator[Judgment]:
        """Like `Scorer.score`, but the traces are sent to the server, at most 64 at a time."""
        mode = Mode(mode)
        for chunk in _chunks(traces):
            judged: dict[int, Judgment | UserError] = {}
            following = 0
            lines = self._lines("/score/batch", {"mode": mode}, "traces", [body for _, body in chunk])
            with closing(lines):
                for place, line in lines:
                    if isinstance(line, UserError):
                        judged[place] = line
                    else:
                        with self._check_response():
                            judgment = JudgmentRecord.model_validate(line).judgment(chunk[place][0])
                            if judgment.mode != mode:
                                raise ValueError(f"a judgment of mode {judgment.mode}")
                        judged[place] = judgment
                    while following in judged:
                        result, trace = judged.pop(following), chunk[following][0]
                        following += 1
                        if isinstance(result, Judgment):
                            yield result
                        elif on_skip is None:
                            raise result
                        else:
                            on_skip(trace, result)

    def score_next(
        self,
        problem: str,
        steps: Sequence[str | Sequence[str]],
        candidates: Sequence[str],
    ) -> Floats32:
        """Like `Scorer.score_next`, but the server does the work."""
        texts = check_candidates(candidates)
        rows = np.zeros((len(texts), len(LABEL_NAMES)), np.float32)
        lines = self._lines("/next", {"problem": problem, "steps": _texts(steps)}, "candidates", texts)
        with closing(lines):
            for place, line in lines:
                if isinstance(line, UserError):
                    raise line
                with self._check_response():
                    rows[place] = probabilities([StepRecord.model_validate(line).cell])[0]
        return rows

    @contextmanager
    def _check_response(self) -> Iterator[None]:
        """Raise `UserError` if what is read of a response in the `with` block cannot come from a StepSight server
        of this version."""
        try:
            yield
        except (AttributeError, IndexError, KeyError, OverflowError, TypeError, UserError, ValueError):
            raise UserError(
                f"{self.address} gave an answer that this version of StepSight does not understand.",
                "Check the address, and the version that runs there.",
            ) from None

    def _lines(
        self, path: str, request: Line, field: str, items: Sequence[object]
    ) -> Generator[tuple[int, Line | UserError]]:
        """Send `request` with the `items` as its `field`. Yield each item's index, with its line of the response or
        the error that the line reports, as it arrives.

        Items that the server postpones, or that are lost because the connection breaks, are requested again.
        """
        own = {} if self._name is None else {"evaluator": self._name}
        remaining, retries = list(range(len(items))), self._retries()
        while remaining:
            failed = self._failed_attempt("the answer ends too early")
            received: set[int] = set()
            waits: list[float] = []
            try:
                body = {**request, **own, field: [items[item] for item in remaining]}
                with self._response("POST", path, body) as response:
                    for text in read_lines(response, _LONGEST_LINE):
                        with self._check_response():
                            line = parse_json(text)
                            place = line["index"]
                            if type(place) is not int or not 0 <= place < len(remaining):
                                raise ValueError(f"there is no place {place!r:.20}")
                            if line.get("retry_after") is not None:
                                waits.append(max(0.0, min(float(line["retry_after"]), _LONGEST_WAIT)))
                                continue
                            if "error" in line:
                                line = UserError(str(line["error"]), str(line["hint"]))
                        received.add(place)
                        retries.progressed()
                        yield remaining[place], line
            except FailedAttemptError as error:
                failed = error
            else:
                if waits:
                    busy = f"{self.address} has been busy for {self._patience:g} s."
                    failed = FailedAttemptError(UserError(busy, "Try again later."), max(waits), costs=0)
            remaining = [item for place, item in enumerate(remaining) if place not in received]
            if remaining:
                time.sleep(retries.pause(failed))

    @contextmanager
    def _response(self, method: str, path: str, body: object = None) -> Iterator[httpx2.Response]:
        """Send a request and yield its response of status 200. Raises `FailedAttemptError`, also while the response
        is read, if repeating the request may help, and `UserError` if not."""
        content = None if body is None else json.dumps(body).encode()
        try:
            with self._connections.stream(method, f"{self.address}{API}{path}", content=content) as response:
                if response.status_code != 200:
                    raise failed_attempt(response, self._refusal(response))
                yield response
        except BROKEN as error:
            raise self._failed_attempt(reason(error)) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise self._failed_attempt(reason(error)).error from None

    def _refusal(self, response: httpx2.Response) -> UserError:
        """Return the error for a refused request. It contains the server's own message, if there is one."""
        try:
            values = parse_json(read_bounded(response, _LARGEST_FAILURE) or b"")
        except ValueError:
            values = None
        if not isinstance(values, Mapping) or not isinstance(values.get("error"), str):
            message = f"{self.address} answered with status {response.status_code}."
            return UserError(message, "Check that StepSight runs there.")
        hint = values.get("hint")
        if response.status_code == 401:
            hint = f"Give the key that stepsight user key prints, or set {KEY_VARIABLE}."
        return UserError(values["error"], hint if isinstance(hint, str) else "")

    def _retries(self) -> Retries:
        return Retries(_ATTEMPTS, _FIRST_PAUSE, _LONGEST_PAUSE, self._patience)

    def _failed_attempt(self, cause: str) -> FailedAttemptError:
        hint = "Check that stepsight app runs there, and the address."
        return FailedAttemptError(UserError(f"{self.address} does not answer: {cause}.", hint))


def _chunks(traces: Iterable[Trace]) -> Iterator[list[tuple[Trace, Line]]]:
    """Yield lists of traces with their JSON, each list small enough for one request."""
    chunk: list[tuple[Trace, Line]] = []
    size = 0
    for trace in traces:
        body: Line = {
            "id": trace.id[:_LONGEST_ID],
            "problem": trace.problem,
            "steps": _texts([step.substeps for step in trace.steps]),
        }
        length = len(json.dumps(body))
        if chunk and (len(chunk) == _TRACES or size + length > _BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append((trace, body))
        size += length
    if chunk:
        yield chunk


def _texts(steps: Sequence[str | Sequence[str]]) -> list[str | list[str]]:
    return [step if isinstance(step, str) else list(step) for step in steps]
