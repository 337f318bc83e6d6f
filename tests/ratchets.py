"""Measures of the product's size and structure that may only fall. `python -m tests.ratchets` writes down what has
fallen.

`tests/ratchets.json` holds the limits. `tests/test_ratchets.py` fails where a measure is above its limit, and says
what to do instead of raising it.
"""

import ast
import json
import re
import sys
from collections import Counter, defaultdict

import networkx

from tests.conftest import ROOT
from tests.source import LAYERS, MODULES, code, imported_modules, imports, name, tree

LIMITS = ROOT / "tests" / "ratchets.json"
# What grows by one module for each thing that is added: its size says nothing of the structure.
GROWING = ("core/formats", "storage/importers/benchmarks", "tests/core/formats", "tests/storage/importers")
LONG = 500
SHORT = 6
# A total may fall by this share before its limit has to follow.
SLACK = 0.02
_CLASS = re.compile(r"^ *class (\w+)", re.MULTILINE)
_HELPER = re.compile(r"^( *)(?:async )?def (_(?!_)\w+)", re.MULTILINE)
# A private attribute of anything but a method's own object.
_PRIVATE_ATTRIBUTE = re.compile(r"\._(?<!\bself\._)(?<!\bcls\._)(?!_)")

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
    "_no_split_modules",
)

# Names with an underscore that are public all the same.
DOCUMENTED = ("os._exit",)

ADVICE = {
    "module circles": "Move what both need into a module below them, or pass it in from above.",
    "imports inside functions": "Import at the top. If that makes a light module heavy, split the module instead.",
    "class names defined twice": "Name each class after the thing it is: no name stands for two things.",
    "modules over 500 lines": "Split it where its subject splits.",
    "private names": "Use a public name, or put the private one behind the module that is there for it.",
}
TOTALS = {
    **{f"lines of {layer}": "Use what is there, and take away what it replaces." for layer in LAYERS},
    "lines of tests": "Test a rule at one level, and what is alike as rows of one test.",
    "lines of scripts": "Let the server render it, or use what is there.",
    "modules": "Put it into the module whose subject it is.",
    "classes": "Use the type that the thing has elsewhere.",
    "helpers with one caller": f"A private function of at most {SHORT} lines with one caller stands in its caller.",
    "names imported to be imported again": "Import a name from the module that defines it.",
}
ADVICE |= TOTALS


def measures():
    """Every measure by its name; lists name each place, so that a new one is seen though another has gone."""
    return {
        "module circles": circles(),
        "imports inside functions": len(list(inner_imports())),
        "class names defined twice": classes_defined_twice(),
        "modules over 500 lines": [name(path) for path in MODULES if code(path).count("\n") > LONG],
        "private names": sorted(private_names()),
        **{f"lines of {layer}": lines((ROOT / layer).rglob("*.py")) for layer in (*LAYERS, "tests")},
        "lines of scripts": lines((ROOT / "assets" / "web" / "js").rglob("*.js")),
        "modules": sum(not grows(path) for path in MODULES),
        "classes": sum(len(_CLASS.findall(code(path))) for path in MODULES if not grows(path)),
        "helpers with one caller": sum(map(helpers, MODULES)),
        "names imported to be imported again": sum(
            alias.asname == alias.name for path in MODULES for node in imports(path) for alias in node.names
        ),
    }


def grows(path):
    """True if a module is one of those that a new thing adds."""
    return any((ROOT / folder).resolve() in path.resolve().parents for folder in GROWING)


def lines(paths):
    return sum(path.read_bytes().count(b"\n") for path in paths if not grows(path))


def helpers(path):
    """How many private functions of a module are short and named only once beside their definition."""
    text = path.read_text(encoding="utf-8")
    words = Counter(re.findall(r"\b_\w+", text))
    return sum(
        words[match[2]] == 2 and _height(text[match.start() :].splitlines(), match[1]) <= SHORT
        for match in _HELPER.finditer(text)
    )


def _height(text, indent):
    """How many lines the function has that begins a text and is indented by `indent`."""
    last = 0
    for number, line in enumerate(text[1:], 1):
        if line.strip() and not line.startswith((f"{indent} ", f"{indent})")):
            break
        last = number if line.strip() else last
    return last + 1


def circles():
    """Circles of modules, imports inside functions counted, each as one way round it."""
    graph = networkx.DiGraph(
        (name(path), name(module)) for path in MODULES for module in imported_modules(path) if path != module
    )
    tangled = [part for part in networkx.strongly_connected_components(graph) if len(part) > 1]
    return sorted(_way_round(graph.subgraph(part)) for part in tangled)


def _way_round(circle):
    first = min(circle)
    others = sorted(circle.successors(first))
    ways = [networkx.shortest_path(circle, other, first) for other in others]
    return " -> ".join([first, *min(ways, key=len)])


def inner_imports():
    """Places of imports inside functions."""
    for path in MODULES:
        if any(node.col_offset for node in imports(path)):
            places = {
                node.lineno
                for function in ast.walk(tree(path))
                if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
                for node in ast.walk(function)
                if isinstance(node, ast.Import | ast.ImportFrom)
            }
            yield from (f"{name(path)}:{line}" for line in sorted(places))


def classes_defined_twice():
    """Names of classes that more than one module defines."""
    modules: defaultdict[str, set[str]] = defaultdict(set)
    for path in MODULES:
        for class_name in _CLASS.findall(code(path)):
            modules[class_name].add(name(path))
    return sorted(
        f"{class_name}: {', '.join(sorted(paths))}" for class_name, paths in modules.items() if len(paths) > 1
    )


def private_names():
    """Module and private name of another package, for those in `PRIVATE` and all that begin with an underscore."""
    names = set()
    for path in MODULES:
        source = path.read_text(encoding="utf-8")
        names |= {f"{name(path)}: {private}" for private in PRIVATE if _uses(source, private)}
        names |= {f"{name(path)}: {private}" for private in _underscored(path)}
    return names


def _uses(source, private):
    module, _, last = private.rpartition(".")
    return private in source.replace("\\", "") or (bool(module) and f"from {module} import {last}" in source)


def _underscored(path):
    """Names with an underscore that are imported from another package or read from what is."""
    imported = set()
    for node in imports(path):
        package = node.module or "" if isinstance(node, ast.ImportFrom) else ""
        if package.startswith("stepsight"):
            continue
        for alias in node.names:
            imported.add((alias.asname or alias.name).split(".")[0])
            if any(_is_private(part) for part in [*package.split("."), *alias.name.split(".")]):
                yield f"{package}.{alias.name}".strip(".")
    if not _PRIVATE_ATTRIBUTE.search(code(path)):
        return
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Attribute) and _is_private(node.attr):
            dotted = ast.unparse(node)
            is_name = dotted.split(".")[0] in imported and dotted.replace(".", "").isidentifier()
            if is_name and dotted not in DOCUMENTED:
                yield dotted


def _is_private(word):
    return word.startswith("_") and not word.endswith("__")


def problems():
    """Each measure that is above its limit, or below it without the limit having been lowered, with advice."""
    limits, measured = json.loads(LIMITS.read_text()), measures()
    return [
        f"{measure} rose: {'; '.join(above)}. {ADVICE[measure]}"
        for measure in ADVICE
        if (above := exceeds(measured[measure], limits[measure]))
    ] + [
        f"{measure} fell: run python -m tests.ratchets and commit tests/ratchets.json."
        for measure in ADVICE
        if exceeds(_followed(measure, limits[measure]), measured[measure])
    ]


def _followed(measure, limit):
    """The least that a measure may be until its limit is lowered."""
    return int(limit * (1 - SLACK)) if measure in TOTALS else limit


def main():
    limits, measured = json.loads(LIMITS.read_text()), measures()
    raised = [
        measure for measure, limit in limits.items() if measure in ADVICE and exceeds(measured[measure], limit)
    ]
    for measure in raised:
        print(f"{measure}: above its limit. {ADVICE[measure]}", file=sys.stderr)
    if raised:
        sys.exit(1)
    LIMITS.write_text(json.dumps(measured, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def exceeds(value, limit):
    """What of a measure is above its limit, [] for nothing."""
    if isinstance(value, list) and isinstance(limit, list):
        return sorted(set(value) - set(limit))
    return [f"{value} instead of at most {limit}"] if value > limit else []  # type: ignore[operator]


if __name__ == "__main__":
    main()
