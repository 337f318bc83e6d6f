"""Who goes first where several want the processor: what somebody waits for, before what goes on behind it."""

import os
import sys
import threading
from contextlib import suppress
from pathlib import Path

_LESS = 10


def lower_process() -> None:
    """Let other processes go before this one, for good.

    Linux shares the processor between sessions first, by a number of each session's own, where it groups them so:
    there a process of its own session is not less than others by its niceness alone.
    """
    if hasattr(os, "nice"):
        os.nice(_LESS)
    with suppress(OSError):
        if os.getsid(0) == os.getpid():
            Path("/proc/self/autogroup").write_text(str(_LESS), encoding="ascii")


def lower_thread() -> None:
    """Let the other threads of this process go before this one, and before those that it starts, for good; on
    Linux, which alone has niceness by thread."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LESS)
