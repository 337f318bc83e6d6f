"""Who goes first where several want the processor: what somebody waits for, before what goes on behind it."""

import os
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
