"""What a child does in the tests. A module of its own, since every child imports it as it starts."""

import os
import signal
import time

from stepsight.core.errors import UserError


def make_worker():
    kept = []

    def work(asked, content):
        kept.append(asked)
        match asked:
            case "count":
                return sum(map(len, content))
            case "first":
                return next(content).decode()
            case "kept":
                return kept
            case "environment":
                return [name for name in next(content).decode().split() if name in os.environ]
            case "refuse":
                raise UserError("It is empty.", "Fill it.")
            case "panic":
                raise BaseException("thread 'main' panicked")
            case "memory":
                return len(bytearray(10**9))
            case "compute":
                while True:
                    pass
            case "sleep":
                time.sleep(1000)
            case "crash":
                os.kill(os.getpid(), signal.SIGSEGV)
            case "recurse":
                return work(asked, content)
        return None

    return work
