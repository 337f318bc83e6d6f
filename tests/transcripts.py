"""Texts that a test compares as a whole with a file beside it: transcripts, which are command lines as they are
typed and all that they print, and outlines of pieces of pages, in `transcripts/MODULE/` and `outlines/MODULE/`.

`pytest --new-messages FILE...` writes those of the tests that passed; read their changes before you commit them.
"""

import difflib
import io
import json
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.messages import is_writing, steady

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


class Compared:
    """Notes texts until `compare` is called, for the file of a test in a folder beside it."""

    def __init__(self, item, folder):
        name = re.sub(r"[^\w.-]+", "-", item.name.removeprefix("test_")).strip("-")
        self._path = item.path.parent / folder / item.path.stem.removeprefix("test_") / f"{name}.txt"
        self.texts = []

    def compare(self):
        """Compare all that was noted with the file of this test, which there is none of if nothing was."""
        text = steady("\n".join(self.texts))
        for pattern, name in _MOMENTS:
            text = pattern.sub(name, text)
        if is_writing() and text:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(text, encoding="utf-8")
        expected = self._path.read_text(encoding="utf-8") if self._path.exists() else ""
        lines = difflib.unified_diff(
            expected.splitlines(), text.splitlines(), str(self._path), "found", n=1, lineterm=""
        )
        assert text == expected, "\n".join(["--new-messages writes it:", *lines])


class Transcript(Compared):
    """Runs command lines, and notes what they print."""

    def __init__(self, command, item, monkeypatch):
        super().__init__(item, "transcripts")
        self._command, self._monkeypatch = command, monkeypatch

    def __call__(self, line, *more, stdin=""):
        """Run `stepsight LINE`, with more words that stand for themselves, and note what it prints."""
        outcome = self.run(line, *more, stdin=stdin)
        printed = "".join(f"! {text}\n" for text in outcome.err.splitlines())
        ended = f"exit {outcome.code}\n" if outcome.code else ""
        words = " ".join([line, *map(str, more)])
        self.texts.append(f"$ stepsight {words}\n{outcome.out}{printed}{ended}")
        return outcome

    def run(self, line, *more, stdin=""):
        """Run a command line without noting what it prints. `stdin` is a text, or what stands for `sys.stdin`."""
        if isinstance(stdin, str):
            stdin = io.TextIOWrapper(io.BytesIO(stdin.encode()))
        self._monkeypatch.setattr(sys, "stdin", stdin)
        return Outcome(*self._command(*shlex.split(line), *more))


def unused():
    """Transcripts and outlines whose test is gone."""
    tests = Path(__file__).parent
    return [
        str(path)
        for path in [*tests.rglob("transcripts/*/*.txt"), *tests.rglob("outlines/*/*.txt")]
        if f"def test_{re.split(r'[-.]', path.stem)[0]}(" not in _module_of(path).read_text(encoding="utf-8")
    ]


def _module_of(path):
    return path.parent.parent.parent / f"test_{path.parent.name}.py"
