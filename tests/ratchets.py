"""Measures of the product's structure that may only fall. `python -m tests.ratchets` writes down what has fallen.

`tests/ratchets.json` holds the limits. `tests/test_ratchets.py` fails where a measure is above its limit, and says
what to do instead of raising it.
"""

import ast
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import networkx

from tests.conftest import ROOT
from tests.source import LAYERS, MODULES, imported_modules, name, tree

LIMITS = ROOT / "tests" / "ratchets.json"
OURS = [path for path in MODULES if "migrations" not in path.parts]
WITHOUT_INIT = [path for path in OURS if path.name != "__init__.py"]
SHORT, LONG = 40, 500
# Folders with a module for each format, kind of file or metric: one more of these, however short, is no fault.
GROWING = [ROOT / folder for folder in ("core/formats", "core/metrics", "storage/importers/benchmarks")]
FOLDER_KINDS = {
    "Python": ("*.py", [ROOT / layer for layer in LAYERS]),
    "JavaScript": ("*.js", [ROOT / "assets" / "web"]),
}

# Names of other packages that these packages do not promise to keep.
PRIVATE = (
    "torch.ops.mkldnn",
    "huggingface_hub.file_download",
    "huggingface_hub.utils",
    "gradio.events.api",
    "gr.routes.traceback",
    "window.gradio_config",
    "original_router",
    "route.dependant",
    "def main_loop",
    "def _clip_grad_norm",
    "_no_split_modules",
)

ADVICE = {
    "module circles": "Move what both need into a module below them, or pass it in from above.",
    "imports inside functions": "Import at the top. If that makes a light module heavy, split the module instead.",
    "class names defined twice": "Name each class after the thing it is: no name stands for two things.",
    "own imports per module": "Let a module ask one other for a whole answer, not five for its parts.",
    "own imports per module of app": "Give a page what it shows from one module; do not collect it in the page.",
    "modules under 40 lines": "Put it into the module that uses it.",
    "modules over 500 lines": "Split it where its subject splits.",
    "most files of Python in a folder": "Give the folder's subjects folders of their own.",
    "most files of JavaScript in a folder": "Give the pages' scripts folders of their own.",
    "private names": "Use a public name, or put the private one behind the module that is there for it.",
}


def measures() -> dict[str, float | list[str]]:
    """Every measure by its name; lists name each place, so that a new one is seen though another has gone."""
    measured: dict[str, float | list[str]] = {
        "module circles": circles(),
        "imports inside functions": len(list(inner_imports())),
        "class names defined twice": classes_defined_twice(),
        "own imports per module": imports_per_module(OURS),
        "own imports per module of app": imports_per_module(
            [path for path in OURS if path.is_relative_to(ROOT / "app")]
        ),
        "modules under 40 lines": sum(lines(path) < SHORT for path in WITHOUT_INIT if path.parent not in GROWING),
        "modules over 500 lines": [name(path) for path in WITHOUT_INIT if lines(path) > LONG],
    }
    for kind, (pattern, roots) in FOLDER_KINDS.items():
        folders = Counter(
            path.parent
            for root in roots
            for path in root.rglob(pattern)
            if "migrations" not in path.parts and path.parent not in GROWING
        )
        measured[f"most files of {kind} in a folder"] = max(folders.values())
    return measured | {"private names": sorted(private_names())}


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def circles() -> list[str]:
    """Circles of modules, imports inside functions counted, each as one way round it."""
    graph = networkx.DiGraph(
        (name(path), name(module)) for path in MODULES for module in imported_modules(path) if path != module
    )
    tangled = [part for part in networkx.strongly_connected_components(graph) if len(part) > 1]
    return sorted(_way_round(graph.subgraph(part)) for part in tangled)


def _way_round(circle: networkx.DiGraph) -> str:
    first = min(circle)
    others = sorted(circle.successors(first))
    ways = [networkx.shortest_path(circle, other, first) for other in others]
    return " -> ".join([first, *min(ways, key=len)])


def inner_imports() -> Iterator[str]:
    """Places of imports inside functions."""
    for path in MODULES:
        places = {
            node.lineno
            for function in ast.walk(tree(path))
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
            for node in ast.walk(function)
            if isinstance(node, ast.Import | ast.ImportFrom)
        }
        yield from (f"{name(path)}:{line}" for line in sorted(places))


def classes_defined_twice() -> list[str]:
    """Names of classes that more than one module defines."""
    homes: defaultdict[str, set[str]] = defaultdict(set)
    for path in WITHOUT_INIT:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef):
                homes[node.name].add(name(path))
    return sorted(f"{one}: {', '.join(sorted(paths))}" for one, paths in homes.items() if len(paths) > 1)


def imports_per_module(paths: list[Path]) -> float:
    """How many of our modules a module imports, on average, to one digit."""
    return round(sum(len(set(imported_modules(path)) - {path}) for path in paths) / len(paths), 1)


def private_names() -> set[str]:
    """Module and private name of another package, for those in `PRIVATE` and all that begin with an underscore."""
    found = set()
    for path in WITHOUT_INIT:
        text = path.read_text(encoding="utf-8")
        found |= {f"{name(path)}: {private}" for private in PRIVATE if _uses(text, private)}
        found |= {f"{name(path)}: {private}" for private in _underscored(path)}
    return found


def _uses(text: str, private: str) -> bool:
    module, _, last = private.rpartition(".")
    return private in text.replace("\\", "") or (bool(module) and f"from {module} import {last}" in text)


def _underscored(path: Path) -> Iterator[str]:
    """Names with an underscore that are imported from another package or read from what is."""
    others = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            package = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            if package.startswith("stepsight"):
                continue
            for alias in node.names:
                others.add((alias.asname or alias.name).split(".")[0])
                if any(_is_private(part) for part in [*package.split("."), *alias.name.split(".")]):
                    yield f"{package}.{alias.name}".strip(".")
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Attribute) and _is_private(node.attr):
            dotted = ast.unparse(node)
            if dotted.split(".")[0] in others and dotted.replace(".", "").isidentifier():
                yield dotted


def _is_private(word: str) -> bool:
    return word.startswith("_") and not word.endswith("__")


def main() -> None:
    limits, measured = json.loads(LIMITS.read_text()) if LIMITS.exists() else {}, measures()
    raised = [one for one, value in measured.items() if one in limits and exceeds(value, limits[one])]
    for one in raised:
        print(f"{one}: above its limit. {ADVICE[one]}", file=sys.stderr)
    if raised:
        sys.exit(1)
    LIMITS.write_text(json.dumps(measured, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def exceeds(value: float | list[str], limit: float | list[str]) -> list[str]:
    """What of a measure is above its limit, [] for nothing."""
    if isinstance(value, list) and isinstance(limit, list):
        return sorted(set(value) - set(limit))
    return [f"{value} instead of at most {limit}"] if value > limit else []  # type: ignore[operator]


if __name__ == "__main__":
    main()
