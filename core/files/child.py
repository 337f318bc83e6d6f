"""Processing strangers' files and answers in a separate process with limits on memory and time.

A model's tokenizer, a data file or a formula can make its reader compute forever, use up all memory, or crash. A
process can be limited and killed, whatever it does. The parent and its child write frames to each other: the length
in four bytes, then JSON, or bytes of a file. Nothing that a child writes is unpickled.
"""

import gc
import json
import math
import os
import re
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from queue import LifoQueue
from threading import Event, Lock, Thread, Timer
from typing import IO, Any

from stepsight.core.errors import UserError
from stepsight.core.files.whole_files import parse_json

Answerer = Callable[[Any, Iterator[bytes]], Any]
"""Answers a request, in the child. It gets the request and the content that comes with it, and returns JSON. A
generator's pieces of bytes are sent to the parent first, as it yields them."""

TOO_LONG = "it takes too long"
TOO_MUCH = "it takes too much memory"
TOO_DEEP = "it is nested too deep"
_CRASHED = "its reader crashes, or takes too much memory"

_LENGTH = struct.Struct("<I")
_LONGEST = 1 << 26
_READY, _MORE, _PIECE = b"ready", b"more", b"+"
# The exit status of a copy that has answered.
_ANSWERED = 113
_CODE = "from stepsight.core.files.child import serve; serve()"
# Arrow's own pool takes as much address space as it can get, and every thread takes some.
_THREADS = {"OMP_NUM_THREADS": "4", "RAYON_NUM_THREADS": "4", "MALLOC_ARENA_MAX": "2"}
# The environment variables that a child needs; it must not see the others, which may hold secrets.
_NEEDED = re.compile(
    r"(?:PATH|HOME|USER(?:NAME|PROFILE)?|LANG|LC_\w+|TZ|TMPDIR|TE?MP|SYSTEMROOT|XDG_CACHE_HOME|STEPSIGHT_CACHE"
    r"|(?:LD|DYLD|OMP|MKL|OPENBLAS|RAYON|MALLOC|ARROW|CUDA|NVIDIA|HF|TRANSFORMERS)_\w+|(?:PYTHON|TORCH)\w*)"
)
# Starting takes seconds, and many of them on a busy machine.
_STARTING = 300.0


class ChildError(Exception):
    """Raised when a request exceeds its bounds or crashes its process. The message gives the reason, such as
    `TOO_LONG`."""


@dataclass(frozen=True)
class Bounds:
    """The limits of a request: `seconds` of processor time, `memory` in bytes beyond that of a child that has just
    started, and `patience`, the seconds for which its parent waits."""

    seconds: int
    memory: int
    patience: float = 120.0


class Child:
    """A process that answers requests, one at a time. It starts with the first request, and restarts with the next
    one after it was killed.

    `make` returns the function that answers; it is called in the child, where it imports what this needs. If
    `fresh` is True, a copy of the process answers each request, so that no state of an earlier request remains.
    """

    def __init__(self, make: Callable[[], Answerer], bounds: Bounds, *, fresh: bool = False) -> None:
        self._target = f"{make.__module__}:{make.__qualname__}"
        self._bounds, self._fresh = bounds, fresh and hasattr(os, "fork")
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = Lock()

    def close(self) -> None:
        """End the process if it is running."""
        with self._lock:
            self._end()

    def start(self) -> None:
        """Start the process if it is not running, without waiting for it. If it cannot start, the next request says
        why."""

        def begin() -> None:
            with self._lock, suppress(UserError):
                self._running_process()

        Thread(target=begin, daemon=True).start()

    def ask(
        self,
        request: Any,
        content: Iterable[bytes] = (),
        bounds: Bounds | None = None,
        receive: Callable[[bytes], object] | None = None,
    ) -> Any:
        """Return the child's answer to a request, which is JSON. The child gets `content` in pieces, as it asks for
        them, and `receive` gets the pieces that it sends before it answers. `bounds` replaces the default bounds.

        Raises the `UserError` that the child raises, `ChildError` if the request exceeds its bounds or fails in
        any other way, and whatever `content` and `receive` raise.
        """
        bounds = bounds or self._bounds
        head = json.dumps({"request": request, "seconds": bounds.seconds, "memory": bounds.memory}).encode()
        with self._lock:
            try:
                process = self._running_process()
                with _deadline(process, bounds.patience) as is_over:
                    answer = _exchange(process, head, iter(content), receive)
            except EOFError:
                code = self._end()
                is_late = hasattr(signal, "SIGXCPU") and code in (-signal.SIGXCPU, _exit_status(-signal.SIGXCPU))
                raise ChildError(TOO_LONG if is_over.is_set() or is_late else _CRASHED) from None
            except BaseException:
                self._end()
                raise
        if "refused" in answer:
            raise UserError(*answer["refused"])
        if "failed" in answer:
            raise ChildError(answer["failed"])
        return answer["answer"]

    def _running_process(self) -> subprocess.Popen[bytes]:
        """Return the process, which is started if it does not run."""
        if self._process is not None and self._process.poll() is None:
            return self._process
        # The process must find the same modules, whatever its working directory.
        path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
        environment = {
            name: value for name, value in os.environ.items() if _NEEDED.fullmatch(name) and "TOKEN" not in name
        }
        # A child that was killed while it started does not mean that the next one will fail.
        for _ in range(2):
            self._end()
            process = self._process = subprocess.Popen(
                [sys.executable, "-c", _CODE, self._target, str(int(self._fresh))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=_THREADS | environment | {"PYTHONPATH": path, "ARROW_DEFAULT_MEMORY_POOL": "system"},
                start_new_session=True,
            )
            with _deadline(process, _STARTING), suppress(EOFError):
                if _read(_require_pipe(process.stdout)) == _READY:
                    return process
        self._end()
        raise UserError(f"the process for {self._target} did not start.", "See its messages above.")

    def _end(self) -> int:
        """Kill the process, if there is one, and return its exit status."""
        process, self._process = self._process, None
        if process is None:
            return 0
        # A child that exited by itself says why.
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.1)
        _kill(process)
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                _require_pipe(pipe).close()
        return process.wait()


class Children:
    """Up to `most` children that answer the same requests, each in a fresh copy. Another one starts when all
    running ones are busy."""

    def __init__(self, make: Callable[[], Answerer], bounds: Bounds, most: int) -> None:
        self._all = [Child(make, bounds, fresh=True) for _ in range(most)]
        # The most recently used child comes first, since it is running.
        self._free: LifoQueue[Child] = LifoQueue(most)
        for child in self._all:
            self._free.put(child)

    def close(self) -> None:
        """End the processes that are running."""
        for child in self._all:
            child.close()

    def start(self) -> None:
        """Start one, as `Child.start` does, if all are free."""
        if self._free.full():
            self._all[-1].start()

    def ask(
        self,
        request: Any,
        content: Iterable[bytes] = (),
        bounds: Bounds | None = None,
        receive: Callable[[bytes], object] | None = None,
    ) -> Any:
        """Return the answer of a child that is free, as `Child.ask` does. Waits until there is one."""
        child = self._free.get()
        try:
            return child.ask(request, content, bounds, receive)
        finally:
            self._free.put(child)


@contextmanager
def _deadline(process: subprocess.Popen[bytes], seconds: float) -> Iterator[Event]:
    """Kill a process when its time is over. Yields the event that says so."""
    is_over = Event()

    def expire() -> None:
        is_over.set()
        _kill(process)

    timer = Timer(seconds, expire)
    timer.daemon = True
    timer.start()
    try:
        yield is_over
    finally:
        timer.cancel()


def _exchange(
    process: subprocess.Popen[bytes],
    request: bytes,
    content: Iterator[bytes],
    receive: Callable[[bytes], object] | None,
) -> dict[str, Any]:
    """Send a request, and return the answer. Raises `EOFError` if the process ends, or answers with anything
    else."""
    to, back = _require_pipe(process.stdin), _require_pipe(process.stdout)
    _write(to, request)
    while (frame := _read(back)) == _MORE or (receive is not None and frame.startswith(_PIECE)):
        if frame == _MORE:
            _write(to, next(content, b""))
        elif receive is not None:
            receive(frame.removeprefix(_PIECE))
    with suppress(ValueError):
        answer = parse_json(frame)
        if isinstance(answer, dict):
            return answer
    raise EOFError


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with its copies."""
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _exit_status(code: int) -> int:
    """Return the exit status with which a process reports that its copy ended with `code`, as shells do."""
    return 128 - code if code < 0 else code


def _require_pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def _write(file: IO[bytes], frame: bytes) -> None:
    """Write a frame. Raises `EOFError` if the other side has ended."""
    try:
        file.write(_LENGTH.pack(len(frame)))
        file.write(frame)
        file.flush()
    except OSError:
        raise EOFError from None


def _read(file: IO[bytes]) -> bytes:
    """Read a frame. Raises `EOFError` if the other side has ended, or if the frame is too long."""
    head = file.read(_LENGTH.size)
    size = _LENGTH.unpack(head)[0] if len(head) == _LENGTH.size else _LONGEST + 1
    body = file.read(size) if size <= _LONGEST else b""
    if len(body) < size:
        raise EOFError
    return body


def serve() -> None:
    """Answer requests from standard input until it is closed. The command-line arguments are the function that
    makes the answerer, as `module:name`, and 1 if copies answer."""
    # Inherited signal settings are reset: a time limit has to end this process, and it has to learn how its copies
    # ended.
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for name in ("SIGCHLD", "SIGXCPU"):
        if number := getattr(signal, name, None):
            signal.signal(number, signal.SIG_DFL)
    target, fresh = sys.argv[1:]
    module, _, name = target.partition(":")
    source, out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # Whatever libraries print must not end up between the frames.
    os.dup2(2, 1)
    answerer: Answerer = getattr(import_module(module), name)()
    silent = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(silent, number)
    _limit("RLIMIT_CORE", 0)
    # The copies share this memory as long as no garbage collection touches it.
    gc.collect()
    gc.freeze()
    # The size of the address space, where the system reports it.
    pages = Path("/proc/self/statm")
    initial = int(pages.read_text("ascii").split()[0]) * os.sysconf("SC_PAGE_SIZE") if pages.is_file() else None
    _write(out, _READY)
    while True:
        # A copy is kept ready for each request, because forking takes longer than most requests do.
        if fresh == "1" and (copy := os.fork()):
            code = os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1])
            if code == _ANSWERED:
                continue
            # The last frame of a copy that was ended may be incomplete, so nothing can follow it.
            os._exit(_exit_status(code))
        try:
            head = json.loads(_read(source))
        except EOFError:
            return
        _limit("RLIMIT_CPU", math.ceil(time.process_time()) + head["seconds"])
        if initial is not None:
            _limit("RLIMIT_AS", initial + head["memory"])
        _write(out, _answer(answerer, head["request"], source, out))
        if fresh == "1":
            # Python would take seconds to clean up after its libraries, while the next request waits.
            os._exit(_ANSWERED)


def _answer(answerer: Answerer, request: Any, source: IO[bytes], out: IO[bytes]) -> bytes:
    try:
        answer = answerer(request, _content(source, out))
        while isinstance(answer, Generator):
            # Its pieces are sent to the parent as they come; its return value is the answer.
            try:
                _write(out, _PIECE + next(answer))
            except StopIteration as end:
                answer = end.value
        frame = {"answer": answer}
    except UserError as error:
        frame = {"refused": [error.message, error.hint]}
    except MemoryError:
        frame = {"failed": TOO_MUCH}
    except RecursionError:
        frame = {"failed": TOO_DEEP}
    except BaseException as error:  # Rust panics are not an `Exception`.
        frame = {"failed": f"{error}" or type(error).__name__}
    return json.dumps(frame).encode()


def _content(source: IO[bytes], out: IO[bytes]) -> Iterator[bytes]:
    while True:
        _write(out, _MORE)
        if not (piece := _read(source)):
            return
        yield piece


def _limit(resource: str, most: int) -> None:
    """Set a limit of this process, if the system supports that."""
    with suppress(ImportError):
        limits = import_module("resource")
        kind = getattr(limits, resource)
        hardest = limits.getrlimit(kind)[1]
        limits.setrlimit(kind, (most if hardest == limits.RLIM_INFINITY else min(most, hardest), hardest))
