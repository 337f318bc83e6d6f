"""What DESIGN fixes of the source itself: which way imports run, and what is packaged."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from setuptools import find_packages

from tests.conftest import ROOT

# Each may import those after it.
LAYERS = ("app", "training", "storage", "core")
# Spelt in two, or this file would hold them.
UNWANTED = ("TO" + "DO", "sub" + "agent")

MODULES = sorted(path for layer in LAYERS for path in (ROOT / layer).rglob("*.py"))


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imported(path: Path) -> Iterator[str]:
    """Packages that a module imports, within functions and for type checkers too: ours as `core`, `storage`, …"""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name(path)} line {node.lineno}: a relative import"
            names = [str(node.module)]
        for imported_name in names:
            top, _, rest = imported_name.partition(".")
            assert top not in LAYERS, (
                f"{name(path)} line {node.lineno}: {imported_name} without stepsight. before it"
            )
            yield rest.split(".")[0] if top == "stepsight" else top


@pytest.mark.parametrize("layer", LAYERS)
def test_imports_run_one_way(layer: str) -> None:
    above = {"tests", *LAYERS[: LAYERS.index(layer)]}
    paths = [path for path in MODULES if path.is_relative_to(ROOT / layer)]
    assert len(paths) > 5
    wrong = [(name(path), found) for path in paths for found in imported(path) if found in above]
    assert wrong == []


def test_core_stands_alone() -> None:
    found = {top for path in MODULES if path.is_relative_to(ROOT / "core") for top in imported(path)}
    assert {"numpy", "torch"} < found
    # Nor does it know a database or a web page.
    assert found.isdisjoint({"app", "training", "storage", "sqlalchemy", "gradio", "fastapi", "starlette"})


def test_storage_can_be_opened_without_a_model() -> None:
    found = {top for path in MODULES if path.is_relative_to(ROOT / "storage") for top in imported(path)}
    assert found.isdisjoint({"torch", "transformers", "gradio"})


def test_every_folder_is_packaged() -> None:
    folders = {path.parent for path in MODULES} | {path.parent for path in (ROOT / "assets").rglob("*.py")}
    expected = {f"stepsight.{name(folder)}".replace("/", ".") for folder in folders}
    assert set(find_packages(str(ROOT), include=["stepsight*"])) == {"stepsight", *expected}


def test_every_module_says_what_it_is_for() -> None:
    silent = [name(path) for path in MODULES if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))]
    assert silent == []


@pytest.mark.parametrize("word", UNWANTED)
def test_no_module_holds_unfinished_business(word: str) -> None:
    files = [*MODULES, *(ROOT / "tests").rglob("*.py"), *(ROOT / "assets" / "web").glob("*.*")]
    found = [name(path) for path in files if word.lower() in path.read_text(encoding="utf-8").lower()]
    assert found == []
