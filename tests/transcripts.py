"""Transcripts: command lines as they are typed, and all that they print, compared as `tests/messages.py` says."""

import io
import json
import re
import shlex
import sys
from dataclasses import dataclass

from tests.messages import same_text

# Of a run, with what stands for it.
_MOMENTS = (
    (re.compile(r"\b20\d\d-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?([.,]\d+)?( UTC|Z|\+00:00)?)?"), "{moment}"),
    (re.compile(r"\b[0-9A-Fa-f]{12,}\b"), "{digest}"),
    # Events have a new one in each test of a process.
    (re.compile(r"\bkey-\d+\b"), "{key}"),
)


@dataclass
class Outcome:
    """How a command line ended: exit code, standard output, standard error."""

    code: int
    out: str
    err: str

    @property
    def rows(self):
        return [json.loads(line) for line in self.out.splitlines()]


def same_outcome(text):
    """Compare a text that may hold moments, digests and keys of a run."""
    __tracebackhide__ = True
    for pattern, name in _MOMENTS:
        text = pattern.sub(name, text)
    same_text(text)


class Transcript:
    """Runs command lines, and compares what they print."""

    def __init__(self, command, monkeypatch):
        self._command, self._monkeypatch = command, monkeypatch

    def __call__(self, line, *more, stdin=""):
        """Run `stepsight LINE`, with more words that stand for themselves, and compare what it prints."""
        __tracebackhide__ = True
        outcome = self.run(line, *more, stdin=stdin)
        printed = "".join(f"! {text}\n" for text in outcome.err.splitlines())
        ended = f"exit {outcome.code}\n" if outcome.code else ""
        words = " ".join([line, *map(str, more)])
        same_outcome(f"$ stepsight {words}\n{outcome.out}{printed}{ended}")
        return outcome

    def run(self, line, *more, stdin=""):
        """Run a command line, and compare nothing. `stdin` is a text, or what stands for `sys.stdin`."""
        if isinstance(stdin, str):
            stdin = io.TextIOWrapper(io.BytesIO(stdin.encode()))
        self._monkeypatch.setattr(sys, "stdin", stdin)
        return Outcome(*self._command(*shlex.split(line), *more))
