"""Messages of refused calls, compared as a whole with `tests/messages.json`, where they are read and edited.

`pytest --new-messages FILE...` writes those of the tests that passed; read its changes before you commit them.
"""

import ast
import json
import os
import re
import tempfile
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from stepsight.core.errors import UserError

_TESTS = Path(__file__).parent
GOLDEN = _TESTS / "messages.json"
# Names the file to which each process of a run with --new-messages appends.
_NEW = "STEPSIGHT_TESTS_NEW_MESSAGES"
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
    # Both databases share their messages.
    (re.compile(r"\{tmp\}/(store|empty)\.db"), "{store}"),
)

Messages = dict[str, dict[str, str]]
"""By file of tests, relative to `tests/`, and by key: a test, its case, and a number from 2 on."""
_E = TypeVar("_E", bound=BaseException)


class _Running:
    """The test that runs now, and the messages it has compared so far."""

    def __init__(self, item: pytest.Item) -> None:
        self.file, self.key, self.found = _file(item), _key(item), list[str]()


_collected: dict[str, set[str]] = {}
_running: _Running | None = None
_golden: Messages = json.loads(GOLDEN.read_text(encoding="utf-8")) if GOLDEN.exists() else {}


@contextmanager
def refused(kind=UserError):  # type: ignore[assignment]
    """Like `pytest.raises`, with the whole text of the error compared with that in the file of messages."""
    __tracebackhide__ = True
    with pytest.raises(kind) as info:
        yield info
    same_message(str(info.value))


def same_message(text):
    """Compare a text with what the file of messages has for this call of the running test."""
    __tracebackhide__ = True
    assert _running is not None, "messages are compared while a test runs, not in a fixture"
    text = steady(text)
    _running.found.append(text)
    if not is_writing():
        key = _numbered(_running.key, len(_running.found))
        expected = _golden.get(_running.file, {}).get(key)
        assert text == expected, f"another message than in tests/messages.json; --new-messages writes it: {key}"


def steady(text):
    """A text without what differs from run to run: places, ports and addresses have names instead."""
    for pattern, name in _PLACES:
        text = pattern.sub(name, text)
    return text


def is_writing():
    """True if messages are written instead of compared."""
    return _NEW in os.environ


def dangling():
    """The entries of the file of messages whose test is gone."""
    return [f"{file}::{key}" for file, entries in _golden.items() for key in entries if not _has_test(file, key)]


def pytest_addoption(parser):
    parser.addoption("--new-messages", action="store_true", help="write the tests' messages to tests/messages.json")


def pytest_configure(config):
    if config.getoption("--new-messages") and not hasattr(config, "workerinput"):
        os.environ[_NEW] = tempfile.mkstemp()[1]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Note which tests there are, of files that are collected as a whole."""
    if not any("::" in argument for argument in config.args):
        for item in items:
            _collected.setdefault(_file(item), set()).add(_key(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    global _running
    _running = _Running(item)
    try:
        yield
        if _NEW in os.environ:
            with Path(os.environ[_NEW]).open("a", encoding="utf-8") as file:
                file.write(json.dumps([_running.file, _running.key, _running.found]) + "\n")
        else:
            next_key = _numbered(_running.key, len(_running.found) + 1)
            assert next_key not in _golden.get(_running.file, {}), f"no such message any more: {next_key}"
    finally:
        _running = None


def pytest_sessionfinish(session):
    if _NEW in os.environ and not hasattr(session.config, "workerinput"):
        path = Path(os.environ.pop(_NEW))
        _write(map(json.loads, path.read_text(encoding="utf-8").splitlines()))
        path.unlink()


def _file(item):
    return item.path.relative_to(_TESTS).as_posix()


def _key(item):
    """The test's name with its case; both databases share their messages."""
    name, bracket, case = item.name.partition("[")
    case = _DATABASE.sub("", case.removesuffix("]")).removeprefix("-")
    if len(case) > _LONG_ID:
        case = f"{case[:_LONG_ID]}… {zlib.crc32(case.encode()):08x}"
    return f"{name}[{case}]" if bracket and case else name


def _numbered(key, number):
    return key if number == 1 else f"{key} {number}"


def _base(key):
    return re.sub(r"(?<=[\]\w]) \d+$", "", key)


def _has_test(file, key):
    """True if the test is among the collected, or, where its file is not, a function of its name is in the file."""
    if file in _collected:
        return _base(key) in _collected[file]
    path = _TESTS / file
    name = re.split(r"[\[ ]", key)[0]
    return path.exists() and name in {
        node.name for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.FunctionDef)
    }


def _write(found):
    for file, key, texts in found:
        entries = _golden.setdefault(file, {})
        for old in [old for old in entries if _base(old) == key]:
            del entries[old]
        entries.update({_numbered(key, number): text for number, text in enumerate(texts, 1)})
    lines = []
    for file, entries in sorted(_golden.items()):
        kept = [(key, text) for key, text in sorted(entries.items(), key=_order) if _has_test(file, key)]
        if kept:
            pairs = ",\n".join(f"  {_quoted(key)}: {_quoted(text)}" for key, text in kept)
            lines.append(f" {_quoted(file)}: {{\n{pairs}\n }}")
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _order(entry):
    """By name, numbers by their size."""
    return [(int(part) if part.isdigit() else -1, part) for part in re.split(r"(\d+)", entry[0])]


def _quoted(text):
    return json.dumps(text, ensure_ascii=False)
