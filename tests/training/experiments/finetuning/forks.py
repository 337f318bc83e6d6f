"""Processes forked from this one: they have the libraries already, whose import takes longer than a run."""

import os
import signal
import sys
import time
import traceback
import warnings

_SECONDS = 240


def start(work):
    """Run `work` in a process of its own, which ends with 0, or 1 where it fails; returns its number."""
    with warnings.catch_warnings():
        # Later versions of Python warn of threads that are not there afterwards; none of them is needed.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        return child
    try:
        work()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(1)


def ended(child):
    """Wait for a process; returns its exit code, or the negative number of the signal that ended it."""
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise TimeoutError(f"the process did not end in {_SECONDS} seconds")
