"""The product's source as trees: its modules, and what each imports."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.conftest import ROOT

# Each may import those after it.
LAYERS = ("app", "training", "storage", "core")

MODULES = sorted(path for layer in LAYERS for path in (ROOT / layer).rglob("*.py"))
PATHS = {
    ".".join(["stepsight", *path.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__"): path
    for path in MODULES
}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported_names(path: Path) -> Iterator[str]:
    """Modules that a module imports, within functions and for type checkers too, and names from modules, dotted."""
    for node in ast.walk(tree(path)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name(path)} line {node.lineno}: a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for dotted in names:
            missing = f"{name(path)} line {node.lineno}: {dotted} without stepsight. before it"
            assert dotted.split(".")[0] not in LAYERS, missing
            yield dotted


def imported_packages(path: Path) -> set[str]:
    """Packages that a module imports: ours as `core`, `storage`, …"""
    return {dotted.removeprefix("stepsight.").split(".")[0] for dotted in imported_names(path)}


def imported_modules(path: Path) -> Iterator[Path]:
    """Our modules that a module imports."""
    for dotted in imported_names(path):
        module = PATHS.get(dotted) or PATHS.get(dotted.rpartition(".")[0])
        if module:
            yield module
