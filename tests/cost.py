"""Processor time, compared within one run: no test knows how fast its machine is."""

import time

_ATTEMPTS = 5
_PART, _GROWTH = 8, 20


def processor_seconds(work):
    """The processor time of this thread that a call takes."""
    began = time.thread_time()
    work()
    return time.thread_time() - began


def is_linear(work, size):
    """True if a call takes about eight times as long as one with an eighth of the size; a square takes 64 times.

    Of several attempts the shortest counts: other processes can only make one longer.
    """
    part = whole = float("inf")
    for _ in range(_ATTEMPTS):
        part = min(part, processor_seconds(lambda: work(size // _PART)))
        whole = min(whole, processor_seconds(lambda: work(size)))
        if whole < _GROWTH * part:
            return True
    return False
