"""The product's source as trees: its modules, and what each imports."""

import ast
import gc
import re
from functools import cache

from tests.conftest import ROOT

# Each may import those after it.
LAYERS = ("app", "training", "storage", "core")

MODULES = sorted(path for layer in LAYERS for path in (ROOT / layer).rglob("*.py"))
PATHS = {
    ".".join(["stepsight", *path.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__"): path
    for path in MODULES
}


@cache
def name(path):
    return str(path.relative_to(ROOT))


@cache
def tree(path):
    """The syntax tree of a module, parsed without the garbage collector, which would take three times as long."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    finally:
        if collecting:
            gc.enable()


_STRING = re.compile(r"(\"{3}|'{3})[\s\S]*?\1")
_IMPORT = re.compile(r"^([ \t]*)((?:from \S+ )?import (?:\([^)]*\)|.+))$", re.MULTILINE)


@cache
def code(path):
    """The text of a module, with no more than the line breaks of its docstrings and other long strings."""
    return _STRING.sub(lambda string: "\n" * string[0].count("\n"), path.read_text(encoding="utf-8"))


@cache
def imports(path):
    """Import statements of a module with their places, within functions and for type checkers too.

    They are looked for in the text: parsing all modules takes a second.
    """
    matches = list(_IMPORT.finditer(code(path)))
    statements = []
    for match, statement in zip(matches, ast.parse("\n".join(match[2] for match in matches)).body, strict=True):
        assert isinstance(statement, ast.Import | ast.ImportFrom)
        statement.lineno = code(path).count("\n", 0, match.start()) + 1
        statement.col_offset = len(match[1])
        statements.append(statement)
    return statements


def imported_names(path):
    """Modules that a module imports, and names from modules, dotted."""
    for node in imports(path):
        names = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name(path)} line {node.lineno}: a relative import"
            names = [f"{node.module}.{imported}" for imported in names]
        for dotted in names:
            missing = f"{name(path)} line {node.lineno}: {dotted} without stepsight. before it"
            assert dotted.split(".")[0] not in LAYERS, missing
            yield dotted


def imported_packages(path):
    """Packages that a module imports: ours as `core`, `storage`, …"""
    return {dotted.removeprefix("stepsight.").split(".")[0] for dotted in imported_names(path)}


def imported_modules(path):
    """Our modules that a module imports."""
    for dotted in imported_names(path):
        module = PATHS.get(dotted) or PATHS.get(dotted.rpartition(".")[0])
        if module:
            yield module
