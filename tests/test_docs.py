"""What a machine can check of README and manual: links, commands, options, paths, and Python that runs.

`make docs` checks the links of the manual once more, as pages.
"""

import argparse
import ast
import importlib.util
import json
import re
import shlex
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from urllib.parse import urlsplit

import gradio_client
import pytest
from markdown_it import MarkdownIt

from stepsight.app.api.models import ScoreRequest
from stepsight.app.commands.cli import build_parser, main
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.storage.database.store import open_store
from tests.cases import each
from tests.serving import served
from tests.source import LAYERS, tree

ROOT = Path(__file__).parents[1]
_spec = importlib.util.spec_from_file_location("tables", ROOT / "docs" / "tables.py")
tables = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(tables)
FILES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "assets").glob("*/*/README.md")),
]
SERVER = "http://127.0.0.1:7860"
# Options of other commands.
FOREIGN = {
    *("--global", "--no-build-isolation", "--nproc-per-node", "--nnodes", "--node-rank", "--new-messages"),
    *("--hf-overrides", "--max-model-len", "--served-model-name", "--remote_rm_url"),
    *("--read-only", "--tmpfs"),
}
# What begins so and has no placeholder in it is a path of the repository.
PATH = re.compile(r"(?:app|assets|core|docs|storage|stepsight|tests|training)/[\w./-]*")


@dataclass
class Page:
    """What a Markdown file holds: `code` of one kind by its language, "" for plain; `inline` code; link targets."""

    path: Path
    code: dict[str, list[str]] = field(default_factory=dict)
    inline: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    @property
    def lines(self) -> Iterator[str]:
        """Lines of code that are commands, without comments, those that go on joined."""
        for text in self.code.get("", []):
            for line in text.replace("\\\n", " ").splitlines():
                yield line.partition("  #")[0].strip()

    @property
    def commands(self) -> Iterator[list[str]]:
        """The words after `stepsight` of every command, in code of its own or within text."""
        for line in [*self.lines, *self.inline]:
            words = re.sub(r"^(torchrun (?:--[\w-]+ \S+ )+-m |python -m )", "", line)
            if words.startswith("stepsight "):
                yield shlex.split(words)[1:]


@cache
def read_page(path):
    page = Page(path)
    tokens = MarkdownIt("commonmark").enable("table").parse(path.read_text(encoding="utf-8"))
    for place, token in enumerate(tokens):
        if token.type in ("fence", "code_block"):
            page.code.setdefault(token.info.strip(), []).append(token.content)
        if token.type == "heading_open":
            page.anchors.add(slug(tokens[place + 1].content))
        for child in token.children or ():
            read_inline(page, child)
    return page


def read_inline(page, token):
    if token.type == "code_inline":
        page.inline.append(token.content)
    target = token.attrs.get("href" if token.type == "link_open" else "src")
    if target:
        page.links.append(str(target))


def slug(title):
    """The anchor of a heading, as forges and MyST make it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


PAGES = [pytest.param(read_page(path), id=str(path.relative_to(ROOT))) for path in FILES]
README = read_page(FILES[0])


@cache
def parsers():
    """The parser of every command by its words, such as ("report", "grid")."""
    every: dict[tuple[str, ...], argparse.ArgumentParser] = {(): build_parser()}
    waiting = [()]
    while waiting:
        words = waiting.pop()
        for name, parser in tables.subparsers(every[words]):
            every[(*words, name)] = parser
            waiting.append((*words, name))
    return every


@each("page", [page.values[0] for page in PAGES])
def test_links_lead_somewhere(page):
    dead = []
    for link in page.links:
        place, _, anchor = link.partition("#")
        path = (page.path.parent / place) if place else page.path
        if "://" not in link and not (path.exists() and (not anchor or anchor in read_page(path).anchors)):
            dead.append(link)
    assert dead == []


@each("page", [page.values[0] for page in PAGES])
def test_commands_parse(page, capsys):
    for words in page.commands:
        if "--help" in words or tuple(words) in parsers():
            # A command that is only mentioned.
            assert tuple(words[: len(words) - ("--help" in words)]) in {*parsers(), ("COMMAND",)}, words
            continue
        try:
            assert parsers()[()].parse_args(words).run
        except SystemExit:
            pytest.fail(f"{page.path.name}: stepsight {shlex.join(words)}: {capsys.readouterr().err}")


@each("page", [page.values[0] for page in PAGES])
def test_options_exist(page):
    options = {option for parser in parsers().values() for option in parser._option_string_actions} | FOREIGN
    named = {word for text in page.inline for word in re.findall(r"(?<!\S)--[a-z][\w-]*", text)}
    assert named - options == set()


@each("page", [page.values[0] for page in PAGES])
def test_paths_exist(page):
    words = {word for text in (*page.lines, *page.inline) for word in text.split()}
    named = {word for word in words if PATH.fullmatch(word) and "NAME" not in word}
    assert sorted(path for path in named if not (ROOT / path).exists()) == []


@each("page", [page.values[0] for page in PAGES])
def test_modules_and_make_targets_exist(page):
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for text in (*page.lines, *page.inline):
        if run := re.match(r"python -m ([\w.]+)", text):
            assert importlib.util.find_spec(run[1]), text
        if make := re.match(r"make ([a-z]+)$", text):
            assert make[1] in targets, text


@pytest.mark.parametrize("page", [page for page in PAGES if page.values[0].code.get("python")])
def test_python_runs(page, capsys, request, monkeypatch):
    """The examples of a page one after the other, as a reader would try them, on a machine of any speed."""
    patient = partial(gradio_client.Client, httpx_kwargs={"timeout": 600})
    monkeypatch.setattr(gradio_client, "Client", patient)
    names: dict[str, object] = {}
    for number, code in enumerate(page.code["python"], start=1):
        if SERVER in code:
            code = code.replace(SERVER, request.getfixturevalue("server"))
        exec(compile(code, f"{page.path.name}, example {number}", "exec"), names)
        assert capsys.readouterr().out.strip()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The address of `stepsight app` as the manual has it, at a port that is free."""
    with (
        open_store(str(tmp_path_factory.mktemp("manual") / "store.db")) as store,
        served(store, Evaluators()) as base,
    ):
        yield base


def test_the_requests_of_the_manual_are_answered(server):
    asked = []
    for text in read_page(ROOT / "docs" / "api.md").code[""]:
        words = shlex.split(text)
        if words[:1] != ["curl"] or "$STEPSIGHT_KEY" in text or "jar" in words:
            continue
        address = next(word for word in words if word.startswith(SERVER)).replace(SERVER, server)
        body = words[words.index("-d") + 1] if "-d" in words else None
        headers = {"Content-Type": "application/json"}
        made = urllib.request.Request(address, None if body is None else body.encode(), headers)
        with urllib.request.urlopen(made, timeout=60) as answer:
            lines = [json.loads(line) for line in answer.read().splitlines()]
        assert lines
        assert not any("error" in line for line in lines)
        asked.append(urlsplit(address).path)
    assert asked == ["/api/v1/score", "/api/v1/next", "/api/v1/score/batch", "/pooling"]


@each("page", [page.values[0] for page in PAGES])
def test_json_is_json(page):
    for text in page.code.get("json", []):
        assert json.loads(text)


def test_the_request_of_the_api_page_is_one():
    code = "\n".join(read_page(ROOT / "docs" / "api.md").code[""])
    body = re.search(r"-d '(\{.*?\})'", code, re.DOTALL)
    assert ScoreRequest.model_validate_json(body[1]).steps


@each("page", [page.values[0] for page in PAGES if page.values[0].path.parent == ROOT / "docs"])
def test_tables_of_commands_and_keys_are_those_of_the_code(page):
    """`python docs/tables.py` writes them."""
    text = page.path.read_text(encoding="utf-8")
    assert text == tables.renew(text)
    assert tables.UNSAID not in text


def test_the_readme_is_short():
    assert len(README.path.read_text(encoding="utf-8").splitlines()) <= 150


def test_the_example_of_the_readme_finds_the_wrong_step(capsys):
    exec(README.code["python"][0], {})
    printed = capsys.readouterr().out.strip()
    assert f"`{printed}`" in README.path.read_text(encoding="utf-8")
    online, offline = ([float(value) for value in one.split()] for one in re.findall(r"\[(.*?)\]", printed))
    assert [value < 0.5 for value in online] == [False, False, False]
    assert [value < 0.5 for value in offline] == [False, True, False]


def test_the_commands_to_try_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STEPSIGHT_DB", str(tmp_path / "stepsight.db"))
    tried = [line.replace("--size 100", "--size 8") for line in README.lines if line.startswith("stepsight ")]
    assert len(tried) == 5
    for line in tried:
        assert main(shlex.split(line)[1:]) == 0, line
    assert "mini-bidir minus mini-causal" in capsys.readouterr().out
    assert (tmp_path / "scores.jsonl").exists()
    assert (tmp_path / "report" / "report.html").exists()


def test_commands_that_need_only_a_checkout_run(monkeypatch, capsys):
    """The commands that the manual says so of, of the paper's results."""
    monkeypatch.chdir(ROOT)
    page = read_page(ROOT / "docs" / "training.md")
    runs = [words for words in page.commands if words[0] == "report" and "assets" in words[-1]]
    assert len(runs) == 2
    for words in runs:
        assert main(words) == 0
        assert "|" in capsys.readouterr().out


@pytest.mark.slow
def test_a_package_names_nothing_that_it_does_not_hold():
    """The docstring of a package says where to begin, in backticks: a class, function, module or folder in it."""
    for layer in LAYERS:
        for path in (ROOT / layer).rglob("__init__.py"):
            named = re.findall(r"`(\w+)`", ast.get_docstring(tree(path)) or "")
            modules = path.parent.rglob("*.py") if named else []
            inside = {
                part
                for module in modules
                for part in [*module.relative_to(ROOT).with_suffix("").parts, *defined(module)]
            }
            assert set(named) - {"stepsight", "_"} <= inside, path


def defined(module):
    """The names that a module gives to classes, functions, parameters and constants."""
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
