"""Texts that a test compares as a whole with the file beside its module, `test_scorer.txt` beside `test_scorer.py`:
messages of refused calls, what commands print, outlines of pages. Below its name a test has its texts in order.

`pytest --new-messages FILE...` writes those of the tests that passed; read the changes before you commit them.
"""

import ast
import json
import os
import re
import tempfile
import zlib
from collections import defaultdict
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from stepsight.core.errors import UserError

_TESTS = Path(__file__).parent
# Names the file to which each process of a run with --new-messages appends.
_NEW = "STEPSIGHT_TESTS_NEW_MESSAGES"
_HEAD = "=== "
_LONG_ID = 60
_DATABASE = re.compile(r"(^|-)(sqlite|postgresql)(?=-|$)")
# Of a run, machine or port, with what stands for it.
_DATA = Path(os.environ.get("STEPSIGHT_DATA") or _TESTS.parent / ".." / "shared" / "data").resolve()
_PLACES = (
    (re.compile(re.escape(str(_DATA)) + r"\b"), "{data}"),
    (re.compile(r"postgresql://\w+:\*\*\*@/\w+\?host=[^\s:]*"), "{store}"),
    (re.compile(r"[^\s'\"=(\[]*/stepsight-pg-[\w-]+"), "{tmp}"),
    (re.compile(r"[^\s'\"=(\[]*/pytest-of-[^/]+/pytest-\d+(/popen-gw\d+)?/[\w-]+"), "{tmp}"),
    (re.compile(rf"(/tmp|/dev/shm|{re.escape(tempfile.gettempdir())})/[\w-]+"), "{tmp}"),
    (re.compile(re.escape(str(_TESTS.parent)) + r"\b"), "{root}"),
    (re.compile(r"\b(127\.0\.0\.1|localhost):\d{5}\b"), r"\1:{port}"),
    # The names of all formats of checkpoints.
    (re.compile(r"(?<=: )[a-z-]+(, [a-z-]+)+, llada\b"), "{formats}"),
    (re.compile(r"PyTorch (finds no GPU|was built without CUDA)"), "PyTorch {build}"),
    (re.compile(r"(?<=SQLite )\d+\.\d+\.\d+"), "{version}"),
    # Both databases share their messages.
    (re.compile(r"\{tmp\}/(store|empty)\.db"), "{store}"),
)


class _Running:
    """The test that runs now, and the lines it has compared so far."""

    def __init__(self, item: pytest.Item) -> None:
        self.path, self.key, self.lines = item.path.with_suffix(".txt"), _key(item), list[str]()
        self.expected = [] if _NEW in os.environ else read_texts(self.path).get(self.key, [])


_collected = defaultdict[Path, set[str]](set)
_running: _Running | None = None


@contextmanager
def refused(kind=UserError):  # type: ignore[assignment]
    """Like `pytest.raises`, with the whole text of the error compared with that in the file beside the module."""
    __tracebackhide__ = True
    with pytest.raises(kind) as info:
        yield info
    same_text(str(info.value))


def same_text(text):
    """Compare a text with the next lines that the running test has in the file beside its module."""
    __tracebackhide__ = True
    assert _running is not None, "texts are compared while a test runs, not in a fixture"
    for pattern, name in _PLACES:
        text = pattern.sub(name, text)
    lines = "".join(map(_visible, text.rstrip("\n"))).split("\n")
    start = len(_running.lines)
    _running.lines += lines
    if _NEW not in os.environ:
        expected = _running.expected[start : start + len(lines)]
        assert lines == expected, f"not the text in {_running.path.name}, which --new-messages writes"


@cache
def read_texts(path):
    """The lines of each test in the file beside its module."""
    texts: dict[str, list[str]] = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").removesuffix("\n").split("\n"):
            if line.startswith(_HEAD):
                lines = texts.setdefault(line.removeprefix(_HEAD), [])
            else:
                lines.append(line)
    return texts


def dangling():
    """The texts of tests that are gone."""
    return [
        f"{path}: {key}"
        for path in _TESTS.rglob("test_*.txt")
        for key in read_texts(path)
        if not _has_test(path, key)
    ]


def pytest_addoption(parser):
    parser.addoption("--new-messages", action="store_true", help="write the texts that the tests compare")


def pytest_configure(config):
    if config.getoption("--new-messages") and not hasattr(config, "workerinput"):
        handle, os.environ[_NEW] = tempfile.mkstemp()
        os.close(handle)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Note which tests there are, of files that are collected as a whole."""
    if not any("::" in argument for argument in config.args):
        for item in items:
            _collected[item.path.with_suffix(".txt")].add(_key(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    global _running
    _running = _Running(item)
    try:
        yield
        if _NEW in os.environ:
            with Path(os.environ[_NEW]).open("a", encoding="utf-8") as file:
                file.write(json.dumps([str(_running.path), _running.key, _running.lines]) + "\n")
        else:
            left = _running.expected[len(_running.lines) :]
            assert not left, f"in {_running.path.name}, but no longer compared"
    finally:
        _running = None


def pytest_sessionfinish(session):
    if _NEW in os.environ and not hasattr(session.config, "workerinput"):
        path = Path(os.environ.pop(_NEW))
        compared: defaultdict[Path, dict[str, list[str]]] = defaultdict(dict)
        for name, key, lines in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            compared[Path(name)][key] = lines
        path.unlink()
        for golden, texts in compared.items():
            _write(golden, read_texts(golden) | texts)


def _write(path, texts):
    """Write the texts of a module, without those of tests that are gone or compare nothing."""
    kept = {key: lines for key, lines in texts.items() if lines and _has_test(path, key)}
    sections = ("\n".join([_HEAD + key, *kept[key], ""]) for key in sorted(kept, key=_order))
    if kept:
        path.write_text("".join(sections), encoding="utf-8")
    else:
        path.unlink(missing_ok=True)


def _visible(character):
    """A character as it stands in a file, where neither an editor nor a terminal may act on it."""
    return character if character.isprintable() or character == "\n" else ascii(character)[1:-1]


def _key(item):
    """The test's name with its case; both databases share their messages."""
    name, bracket, case = item.name.partition("[")
    case = _DATABASE.sub("", case.removesuffix("]")).removeprefix("-")
    if len(case) > _LONG_ID:
        case = f"{case[:_LONG_ID]}… {zlib.crc32(case.encode()):08x}"
    return f"{name}[{case}]" if bracket and case else name


def _has_test(path, key):
    """True if the test is among the collected, or, where its module is not, a function of its name is in it."""
    if path in _collected:
        return key in _collected[path]
    module = path.with_suffix(".py")
    return module.exists() and key.partition("[")[0] in {
        node.name for node in ast.walk(ast.parse(module.read_bytes())) if isinstance(node, ast.FunctionDef)
    }


def _order(key):
    """By name, numbers by their size."""
    return [(int(part) if part.isdigit() else -1, part) for part in re.split(r"(\d+)", key)]
