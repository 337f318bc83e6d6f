"""Python processes forked from one that has loaded everything, since loading takes seconds of every new one.

They stand for `python -c SOURCE` and `python -m stepsight` where a test needs a process that it can kill, limit or
signal. That a command works as a process of its own is tested once for each.
"""

import gc
import io
import multiprocessing
import os
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Self

import torch

import stepsight.app.commands.cli
import stepsight.app.server
import stepsight.training.train.run

LOADED = (
    stepsight.app.commands.cli,
    stepsight.app.server,
    stepsight.training.train.run,
)
# Of every command.
stepsight.app.commands.cli.build_parser()
# Modules live as long as the process; a training collects garbage and would go through them all.
gc.freeze()
FORK = multiprocessing.get_context("forkserver")
# What any of them needs: they are forked from the same process.
FORK.set_forkserver_preload(["tests.labelling_server", __name__])


class Forked:
    """Like `subprocess.Popen` with pipes: `python SOURCE ...` or `python -m stepsight ...`, in this folder.

    `source` is None for the latter. `stderr` is a descriptor that takes the place of its pipe.
    """

    def __init__(
        self,
        source: str | None,
        arguments: Sequence[object],
        environment: Mapping[str, str] | None = None,
        stderr: int | None = None,
    ) -> None:
        self.stdout, out = _pipe()
        self.stderr, err = _pipe() if stderr is None else (None, Connection(os.dup(stderr), readable=False))
        texts = ["stepsight", *map(str, arguments)]
        life = (source, texts, dict(environment or os.environ), os.getcwd(), out, err)
        # What a test that fails leaves behind ends with the tests.
        self._process = FORK.Process(target=_live, args=life, daemon=True)
        self._process.start()
        out.close()
        err.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the pipes and wait for its end."""
        for end in (self.stdout, self.stderr):
            if end is not None:
                end.close()
        self.wait()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code, negative where a signal ended it; None while it goes on."""
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()

    def wait(self, timeout: float = 600) -> int:
        self._process.join(timeout)
        assert self._process.exitcode is not None, f"process {self.pid} goes on after {timeout} s"
        return self._process.exitcode

    def communicate(self, timeout: float = 600) -> tuple[str, str]:
        """What it says on standard output and standard error until it ends."""
        with ThreadPoolExecutor(2) as pool:
            said = [None if end is None else pool.submit(end.read) for end in (self.stdout, self.stderr)]
            self.wait(timeout)
        for end in (self.stdout, self.stderr):
            if end is not None:
                end.close()
        out, err = ("" if text is None else text.result() for text in said)
        return out, err


def _pipe():
    reader, writer = FORK.Pipe(duplex=False)
    file = os.fdopen(os.dup(reader.fileno()), encoding="utf-8", errors="replace")
    reader.close()
    return file, writer


def _live(source, texts, environment, folder, out, err):
    """The life of the process, in the place of what forked it."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for place, end in ((1, out), (2, err)):
        os.dup2(end.fileno(), place)
        end.close()
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(io.FileIO(place, "w", False), line_buffering=True) for place in (1, 2)
    )
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    torch.set_num_threads(int(environment.get("OMP_NUM_THREADS") or os.cpu_count() or 1))
    sys.argv = texts
    code: object = 1
    try:
        if source is None:
            code = stepsight.app.commands.cli.main(texts[1:])
        else:
            exec(compile(source, "<source>", "exec"), {"__name__": "__main__"})
            code = 0
    except SystemExit as end_of_it:
        code = end_of_it.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)
