"""Grading final answers with math-verify, in a process of its own.

math-verify interrupts slow work with a signal. The signal works only in the main thread of a process and cannot
stop the computation of a huge power. A process can be ended, and serves any thread.
"""

import logging
import multiprocessing
import re
import resource
import signal
from importlib.util import find_spec
from multiprocessing.connection import Connection
from typing import Any

from stepsight.core.errors import UserError

# The seconds in which a process has to start, and the memory in bytes that it may use.
_START, _MEMORY = 900.0, 4 * 2**30
_MIXED = re.compile(r"(?<![\d./,^])(\d{1,6})(?:\s|\\ |\\,|~){1,4}(\d{1,4})/(\d{1,4})(?![\d/])")
# A forked process would share locks with the threads of this one.
_SPAWN = multiprocessing.get_context("spawn")


class Grader:
    """A context manager that decides whether texts end in the right answer. Only one thread at a time may use it.

    A text that takes more than `seconds` is graded as wrong and counted in `timeouts`; so is one that takes too
    much memory. Raises `UserError` if math-verify is not installed or does not start.
    """

    def __init__(self, seconds: float = 30.0) -> None:
        if find_spec("math_verify") is None:
            raise UserError("math-verify is not installed.", "Install stepsight[sft].")
        self.timeouts = 0
        self._seconds = seconds
        self._process: Any = None

    def __enter__(self) -> "Grader":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._pipe.close()
            self._process.kill()
            self._process.join()
            self._process = None

    def grade(self, answer: str, text: str) -> bool:
        """True if the solution `text` ends in `answer`, which is LaTeX without `$`, as in benchmarks."""
        if self._process is None:
            self._pipe, theirs = _SPAWN.Pipe()
            self._process = _SPAWN.Process(target=_serve, args=(theirs,), daemon=True)
            self._process.start()
            theirs.close()
            if self._ask("1", "1", _START) is not True:
                self.__exit__()
                raise UserError("math-verify does not start.", "Its messages are above.")
        verdict = self._ask(answer, text, self._seconds)
        if verdict is None:
            self.timeouts += 1
            self.__exit__()
        return bool(verdict)

    def _ask(self, answer: str, text: str, seconds: float) -> bool | None:
        """Return the verdict, or None if the process does not give one in time or has ended."""
        try:
            self._pipe.send((answer, text))
            return self._pipe.recv() if self._pipe.poll(seconds) else None
        except (EOFError, OSError):
            return None


def _serve(pipe: Connection) -> None:
    """Grade the answers and texts that arrive on a pipe until it is closed. The verdict is None without memory."""
    # Ctrl-C is handled by the parent process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    logging.disable()
    # Its import takes a second, which only this process needs.
    from math_verify import parse, verify

    while True:
        try:
            answer, text = (_MIXED.sub(_as_fraction, part) for part in pipe.recv())
        except EOFError:
            return
        try:
            # math-verify looks for a box first, so a boxed answer is read whole, including words.
            right = parse(rf"\boxed{{{answer}}}", parsing_timeout=None)
            pipe.send(bool(verify(right, parse(text, parsing_timeout=None), timeout_seconds=None)))
        except (MemoryError, RecursionError):
            pipe.send(None)


def _as_fraction(mixed: re.Match[str]) -> str:
    """Return a mixed number such as `3 1/2` as a fraction, since math-verify reads it as another number."""
    whole, over, under = map(int, mixed.groups())
    return f"{whole * under + over}/{under}" if over < under else mixed[0]
