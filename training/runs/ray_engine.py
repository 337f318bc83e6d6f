"""Processing the parts of a task with Ray workers, on this machine or on the cluster at RAY_ADDRESS.

Results arrive in the order of the parts. If a worker dies, its part goes to a different worker, and a replacement
is started if there is room.
"""

import logging
import os
import secrets
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from itertools import chain, islice
from typing import Any, Generic, TypeVar

from stepsight.core.errors import UserError
from stepsight.training.runs.processes import gpus_here, processors

Part = TypeVar("Part")
Result = TypeVar("Result")
Make = Callable[[], Callable[[Part], Result]]
"""Called on each worker before its first part to create the function that processes parts."""

LOCAL, RAY = "local", "ray"
ENGINES = (LOCAL, RAY)

# Parts that a worker holds at once, so that it never waits; and parts per worker that may be finished ahead of the
# next one in order.
_HELD, _AHEAD = 2, 8
# Workers that may die over one part, or in a row before they begin; more is not an accident.
_DEATHS = 3
_AGAIN = "The same command goes on where it stopped."
_OBJECT_STORE = 200_000_000


def import_ray() -> Any:
    """Import Ray and return it. Raises `UserError`, naming the extra to install, if Ray is missing."""
    # Print only fatal errors.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    if not os.environ.get("RAY_ADDRESS"):
        # A Ray that starts here listens on all addresses of the machine, even if told to take the loopback address,
        # and runs whatever it is sent. By default its token would be in the user's home, where others can read it.
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        if "ray" not in sys.modules:
            # Ray reads the mode when it is imported.
            os.environ["RAY_AUTH_MODE"] = "token"
    try:
        import ray
    except ImportError:
        raise UserError("--engine ray needs Ray.", "Run: pip install 'stepsight[ray]'") from None
    logging.getLogger("ray").setLevel(logging.ERROR)
    return ray


def work_on_ray(
    make: Make[Part, Result], parts: Iterable[Part], workers: int, gpus: int = 0
) -> Generator[Result, None, None]:
    """Yield the result of each part, in order. Closing the generator ends the workers.

    `make` is called in each worker and returns the function that processes a part. `parts` is consumed as needed.
    Each of the `workers` has a processor core and `gpus` GPUs to itself. `make`, the parts and the results are
    pickled. While the generator runs, standard output is redirected to standard error, since Ray prints there.

    Raises `UserError` if Ray is missing or has no room for the workers, if `make` or the processing of a part
    fails, or if workers repeatedly die over the same part.
    """
    ray, parts = import_ray(), iter(parts)
    first = list(islice(parts, 1))
    if not first:
        return
    with _running(ray, workers, gpus):
        team = _Team(ray, make, workers, gpus)
        try:
            yield from team.work(chain(first, parts))
        except ray.exceptions.RayError as error:
            raise UserError(f"a worker failed: {_reason(error)}", _AGAIN) from None
        finally:
            team.end()


def check_room(resources: Mapping[str, float], workers: int, gpus: int) -> None:
    """Raise `UserError` if there are too few GPUs or processor cores for the workers, which would wait for ever.

    `resources` are the resources of Ray's machines, and `gpus` is the number of GPUs that each worker needs.
    """
    for kind, count in {"GPU": workers * gpus, "CPU": workers}.items():
        there = int(resources.get(kind, 0))
        if there < count:
            raise UserError(f"there are {there} {kind}s, and --workers {workers} needs {count}.", "Give fewer.")


class _Worker:
    """A Ray actor that processes parts. `begin` calls `make`, because errors in a constructor would be lost."""

    def __init__(self, make: Make[Any, Any]) -> None:
        self._make = make
        self._do: Callable[[Any], Any] | None = None

    def begin(self) -> None:
        self._do = self._make()

    def work(self, part: Any) -> Any:
        assert self._do is not None
        return self._do(part)


class _Team(Generic[Part, Result]):
    """The workers, the parts that they are processing, and results that arrived before their turn.

    This class replaces dead workers itself. Ray would wait indefinitely for room before restarting a worker, and
    the worker's part would have to wait too.
    """

    def __init__(self, ray: Any, make: Make[Part, Result], workers: int, gpus: int) -> None:
        self._ray = ray
        self._make = make
        self._kind = ray.remote(_Worker).options(num_cpus=1, num_gpus=gpus, max_restarts=0, max_task_retries=0)
        self._most = workers * _AHEAD
        self._free: deque[Any] = deque()
        # Calls in progress: the worker and the number of its part, None while it starts.
        self._busy: dict[Any, tuple[Any, int | None]] = {}
        # Unfinished parts, parts that wait for a worker, and results that wait for their turn.
        self._parts: dict[int, Part] = {}
        self._waiting: deque[int] = deque()
        self._done: dict[int, Result] = {}
        self._deaths: dict[int | None, int] = {}
        self._workers: list[Any] = []
        for _ in range(workers):
            self._hire()

    def work(self, parts: Iterable[Part]) -> Iterator[Result]:
        """Process the parts and yield their results in order."""
        rest, turn = enumerate(parts), 0
        while self._hand_out(rest):
            ready, _ = self._ray.wait(list(self._busy), num_returns=1)
            for call in ready:
                self._take(call)
            while turn in self._done:
                result = self._done.pop(turn)
                turn += 1
                self._hand_out(rest)
                yield result

    def end(self) -> None:
        """Kill all workers at once, including busy ones."""
        for worker in self._workers:
            self._ray.kill(worker)

    def _hire(self) -> None:
        worker = self._kind.remote(self._make)
        self._workers.append(worker)
        self._busy[worker.begin.remote()] = worker, None

    def _hand_out(self, rest: Iterator[tuple[int, Part]]) -> bool:
        """Give parts to idle workers. Returns False once every part is finished."""
        # Not too far ahead of the next part in order.
        for number, part in islice(rest, self._most - len(self._parts) - len(self._done)):
            self._parts[number] = part
            self._waiting.append(number)
        while self._free and self._waiting:
            worker, number = self._free.popleft(), self._waiting.popleft()
            self._busy[worker.work.remote(self._parts[number])] = worker, number
        return bool(self._parts)

    def _take(self, call: Any) -> None:
        """Store the result of a finished call, or replace the worker if it died."""
        worker, number = self._busy.pop(call)
        try:
            result = self._ray.get(call)
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, UserError):
                raise error.cause from None
            raise
        except self._ray.exceptions.RayError:
            self._replace(worker, number)
            return
        if number is None:
            self._free.extend([worker] * _HELD)
            self._deaths.pop(None, None)
            return
        self._done[number] = result
        del self._parts[number]
        self._deaths.pop(number, None)
        if worker in self._workers:
            self._free.append(worker)

    def _replace(self, worker: Any, number: int | None) -> None:
        """Start a new worker in place of a dead one, and put the dead worker's part at the head of the queue.

        `number` is the index of the part, or None if the worker died before its first part. Raises `UserError` if
        too many workers have died over the same part.
        """
        self._deaths[number] = self._deaths.get(number, 0) + 1
        if self._deaths[number] > _DEATHS:
            over = "before they could begin" if number is None else "over the same part"
            raise UserError(f"workers died repeatedly {over}.", _AGAIN)
        if number is not None:
            self._waiting.appendleft(number)
        if worker in self._workers:
            self._workers.remove(worker)
            self._free = deque(one for one in self._free if one is not worker)
            self._hire()


@contextmanager
def _running(ray: Any, workers: int, gpus: int) -> Iterator[None]:
    """Keep Ray running, with room for the workers, within the `with` block.

    If Ray is not running yet, it is started and shut down at the end. It is started on the cluster at RAY_ADDRESS
    or, if that is not set, on this machine, with a token of its own (`import_ray`). Raises `UserError` if there is
    no room or Ray does not start.
    """
    if ray.is_initialized():
        check_room(ray.cluster_resources(), workers, gpus)
        yield
        return
    options: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if not os.environ.get("RAY_ADDRESS"):
        # Checked before Ray starts, which takes seconds.
        check_room({"CPU": processors(), "GPU": gpus_here()}, workers, gpus)
        options |= {"num_cpus": workers, "object_store_memory": _OBJECT_STORE, "include_dashboard": False}
    try:
        ray.init(**options)
    except Exception as error:
        # Ray raises no more specific error.
        raise UserError(f"Ray did not start: {_reason(error)}", "The same command tries again.") from None
    # Ray reports dead workers on standard output, some of them only at its end; that is for results.
    with redirect_stdout(sys.stderr):
        try:
            check_room(ray.cluster_resources(), workers, gpus)
            yield
        finally:
            ray.shutdown()


def _reason(error: BaseException) -> str:
    """Return the last line of a worker's error message, without Ray's traceback."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1].strip() if lines else type(error).__name__
