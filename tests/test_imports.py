"""What DESIGN fixes of the source itself: which way imports run, and what is packaged."""

import ast
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from itertools import pairwise

import pytest
from setuptools import find_packages

from tests.conftest import ROOT
from tests.source import LAYERS, MODULES, code, imported_modules, imported_packages, name

# Spelt in two, or this file would hold them.
UNWANTED = ("TO" + "DO", "sub" + "agent")


@pytest.mark.parametrize("layer", LAYERS)
def test_imports_run_one_way(layer):
    above = {"tests", *LAYERS[: LAYERS.index(layer)]}
    paths = [path for path in MODULES if path.is_relative_to(ROOT / layer)]
    assert len(paths) > 5
    wrong = [(name(path), package) for path in paths for package in imported_packages(path) & above]
    assert wrong == []


@pytest.mark.parametrize("layer", LAYERS)
def test_folders_of_a_package_form_no_circle(layer):
    examples: dict[str, dict[str, str]] = defaultdict(dict)
    for path in MODULES:
        for module in imported_modules(path) if path.is_relative_to(ROOT / layer) else ():
            if module.parent != path.parent and module.is_relative_to(ROOT / layer):
                example = f"{name(path)} imports {name(module)}"
                examples[name(path.parent)].setdefault(name(module.parent), example)
    assert examples
    try:
        TopologicalSorter(examples).prepare()
    except CycleError as error:
        circle = "\n".join(examples[folder][other] for other, folder in pairwise(error.args[1]))
        pytest.fail(f"a circle of folders:\n{circle}")


def packages_of(layer):
    return {package for path in MODULES if path.is_relative_to(ROOT / layer) for package in imported_packages(path)}


def test_core_stands_alone():
    packages = packages_of("core")
    assert {"numpy", "torch"} < packages
    # Nor does it know a database or a web page.
    assert packages.isdisjoint({"app", "training", "storage", "sqlalchemy", "gradio", "fastapi", "starlette"})


def test_the_network_is_reached_from_few_modules():
    doors = {
        "httpx2": {"core/hubs/hub_lookup.py", "core/scoring/client.py", "core/inference_servers/server.py",
                   "storage/importers/catalogue.py", "core/net/http.py"},
        "huggingface_hub": {"core/hubs/hub_lookup.py", "core/hubs/hub_cache.py", "core/hubs/hub_download.py"},
        **{package: set() for package in ("httpx", "http", "requests", "urllib3", "aiohttp")},
    }  # fmt: skip
    for package, expected in doors.items():
        assert {name(path) for path in MODULES if package in imported_packages(path)} == expected


def test_storage_can_be_opened_without_a_model():
    assert packages_of("storage").isdisjoint({"torch", "transformers", "gradio"})


def test_every_store_that_a_command_opens_is_closed_by_a_with():
    calls = [line.strip() for path in MODULES for line in code(path).splitlines() if "open_store(" in line]
    opened = [line for line in calls if not line.startswith("def ")]
    assert len(opened) > 20
    # In parentheses, each of several stands on a line of its own.
    assert [line for line in opened if not (line.startswith("with ") or line.endswith(") as store,"))] == []


def test_every_folder_is_packaged():
    folders = {path.parent for path in MODULES} | {path.parent for path in (ROOT / "assets").rglob("*.py")}
    expected = {f"stepsight.{name(folder)}".replace("/", ".") for folder in folders}
    assert set(find_packages(str(ROOT), include=["stepsight*"])) == {"stepsight", *expected}


def test_benchmarks_import_what_there_is():
    for path in (ROOT / "tests" / "bench").glob("[a-z]*.py"):
        import_module(f"tests.bench.{path.stem}")


def test_every_module_says_what_it_is_for():
    silent = [name(path) for path in MODULES if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))]
    assert silent == []


@pytest.mark.parametrize("word", UNWANTED)
def test_no_module_holds_unfinished_business(word):
    files = [*MODULES, *(ROOT / "tests").rglob("*.py"), *(ROOT / "assets" / "web").glob("*.*")]
    assert [name(path) for path in files if word.lower() in path.read_text(encoding="utf-8").lower()] == []
