"""Grading final answers with math-verify, which runs in a separate process.

math-verify interrupts slow work with a signal. The signal works only in the main thread of a process, measures time
taken by other processes, and cannot stop the computation of a huge power. The separate process can serve any
thread, and limits its own processor time and memory, so its verdicts do not depend on how busy the machine is.
"""

import logging
import math
import multiprocessing
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from multiprocessing.connection import Connection
from types import FrameType, TracebackType
from typing import Any

from stepsight.core.errors import UserError

# The processor time allowed for a text, in seconds.
_SECONDS = 15.0
# Additional seconds of processor time, after which the system ends the process.
_GRACE = 5
# Seconds after which a process that neither computes nor answers is given up.
_SILENCE = 900.0
_MEMORY = 4 * 2**30
_READY = "ready"
_MIXED = re.compile(r"(?<![\d./,^])(\d{1,6})(?:\s|\\ |\\,|~){1,4}(\d{1,4})/(\d{1,4})(?![\d/])")
_CODE = "from stepsight.training.evaluate.grading import serve; serve()"


class Grader:
    """A context manager that decides whether texts end in the right answer. Only one thread at a time may use it.

    `timeouts` counts the texts that took too much time or memory, which are graded as wrong. Raises `UserError` if
    math-verify is not installed or does not start.
    """

    def __init__(self, seconds: float = _SECONDS) -> None:
        if find_spec("math_verify") is None:
            raise UserError("math-verify is not installed.", "Install stepsight[sft].")
        self.timeouts = 0
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None

    def __enter__(self) -> "Grader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def grade(self, answer: str, text: str) -> bool:
        """True if the solution `text` ends in `answer`, which is LaTeX without `$`, as in benchmarks."""
        pipe = self._start()
        verdict = None
        try:
            pipe.send((answer, text))
            if pipe.poll(_SILENCE):
                verdict = pipe.recv()
            else:
                self._end()
        except (EOFError, OSError):
            # The process was ended, by the system or by somebody.
            self._end()
        if verdict is None:
            self.timeouts += 1
        return bool(verdict)

    def grade_all(self, pairs: Iterable[tuple[str, str]]) -> Iterator[bool]:
        """Yield the verdict of `grade` for each pair of an answer and a text."""
        for answer, text in pairs:
            yield self.grade(answer, text)

    def _start(self) -> Connection:
        if self._pipe is not None:
            return self._pipe
        ours, theirs = multiprocessing.Pipe()
        # The process must find the same modules, whatever its current folder.
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
        command = [sys.executable, "-c", _CODE, str(theirs.fileno()), str(self._seconds)]
        self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=environment)
        theirs.close()
        self._pipe = ours
        try:
            ready = ours.poll(_SILENCE) and ours.recv() == _READY
        except (EOFError, OSError):
            ready = False
        if not ready:
            self._end()
            raise UserError("math-verify does not start.", "Its messages are above.")
        return ours

    def _end(self) -> None:
        if self._pipe is not None:
            self._pipe.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._pipe = self._process = None


class _TimeUp(BaseException):
    """Raised when grading takes too long. It is a `BaseException`, because math-verify swallows `Exception`."""


def serve() -> None:
    """Grade the answers and texts that arrive on a pipe until the pipe is closed.

    The command-line arguments are the file descriptor of the pipe and the time limit per text in seconds.
    """
    pipe, seconds = Connection(int(sys.argv[1])), float(sys.argv[2])
    # Ctrl-C is handled by the parent process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, _time_up)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    logging.disable()
    judge = _judge()
    pipe.send(_READY)
    while True:
        try:
            answer, text = pipe.recv()
        except EOFError:
            return
        pipe.send(_judged(judge, answer, text, seconds))


def _judged(judge: Any, answer: str, text: str, seconds: float) -> bool | None:
    """True if the text is right, False if it is wrong, and None if time or memory ran out."""
    # A signal cannot interrupt a single long operation, such as a power: there the system ends the process.
    used = math.ceil(time.process_time() + seconds) + _GRACE
    resource.setrlimit(resource.RLIMIT_CPU, (used, resource.RLIM_INFINITY))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        verdict = bool(judge(answer, text))
        signal.setitimer(signal.ITIMER_PROF, 0)
    except (_TimeUp, MemoryError, RecursionError):
        return None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return verdict


def _plain_mixed(text: str) -> str:
    """Return a text with its mixed numbers as fractions, since math-verify reads `3 1/2` as another number."""
    return _MIXED.sub(_as_fraction, text)


def _as_fraction(mixed: re.Match[str]) -> str:
    whole, over, under = map(int, mixed.groups())
    return f"{whole * under + over}/{under}" if over < under else mixed[0]


def _time_up(number: int, frame: FrameType | None) -> None:
    raise _TimeUp


def _judge() -> Any:
    from math_verify import parse, verify

    def judge(answer: str, text: str) -> bool:
        answer, text = _plain_mixed(answer), _plain_mixed(text)
        # math-verify looks for a box first, so a boxed answer is read whole, including words.
        gold = parse(rf"\boxed{{{answer}}}", parsing_timeout=None)
        answered = parse(text, parsing_timeout=None)
        return bool(verify(gold, answered, timeout_seconds=None))

    return judge
