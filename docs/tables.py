"""The tables of the manual that follow the code: of commands by their parsers, and of configuration keys by their
models. What a key means stands on its page alone.

    python docs/tables.py
"""

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from stepsight.app.commands.cli import COMMANDS, build_parser
from stepsight.training.data.sources_config import Source, TraceOrigin
from stepsight.training.experiments.finetuning.recipe import Recipe
from stepsight.training.experiments.finetuning.study import Study
from stepsight.training.experiments.grid.design import Design, HeldOutSet
from stepsight.training.runs.optimisation import Optimisation
from stepsight.training.train.config import Backbone, Expected, Lora, TrainConfig

DOCS = Path(__file__).parent
UNSAID = "(not said yet)"
# By the head of a table's first column.
MODELS = {
    "key": TrainConfig, "key of a source": Source, "key of `lora`": Lora, "key of `backbone`": Backbone,
    "key of `plan`": Expected, "key of a grid": Design, "key of `tests`": HeldOutSet, "key of a recipe": Recipe,
    "key of a study": Study,
}  # fmt: skip
# Models whose keys stand in another table.
ELSEWHERE = {"key of a source": TraceOrigin, "key of a recipe": Optimisation}
_KEYS = re.compile(r"^\| (key[^|]*) \| takes \| default \| means \|\n\|[-|]+\|\n((?:\|.*\n)+)", re.MULTILINE)
_COMMANDS = re.compile(r"^\| command \| does \| more \|\n(?:\|.*\n)+", re.MULTILINE)


def renew(text: str) -> str:
    """Return a page with its tables as the code has them. A key that is new to a page means `UNSAID`."""
    return _COMMANDS.sub(lambda _: command_table(), _KEYS.sub(lambda match: key_table(*match.groups()), text))


def command_table() -> str:
    """Return the table of all commands: each with its actions, its line of help and its page."""
    lines = ["| command | does | more |", "|---|---|---|"]
    parsers = dict(subparsers(build_parser()))
    for name, (_, page, about) in COMMANDS.items():
        actions = ", ".join(f"`{action}`" for action, _ in subparsers(parsers[name]))
        title = (DOCS / page).read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        lines.append(f"| `stepsight {name}`{': ' * bool(actions)}{actions} | {about} | [{title}]({page}) |")
    return "\n".join(lines) + "\n"


def subparsers(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield the parsers of a parser's commands by their names."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()


def key_table(head: str, rows: str) -> str:
    """Return the table of a model's keys with the meanings that `rows` of the page have."""
    cells = [re.split(r"(?<!\\) \| ", line.strip("| \n")) for line in rows.splitlines()]
    meanings = {row[0].strip("`"): row[-1] for row in cells}
    schema = TypeAdapter(MODELS[head]).json_schema()
    other = TypeAdapter(ELSEWHERE[head]).json_schema()["properties"] if head in ELSEWHERE else {}
    lines = [f"| {head} | takes | default | means |", "|---|---|---|---|"]
    for key, about in schema["properties"].items():
        # Every configuration may have notes.
        if key not in other and key != "notes":
            default = "needed" if key in schema.get("required", ()) else _shown(about.get("default"))
            lines.append(f"| `{key}` | {_takes(about)} | {default} | {meanings.get(key, UNSAID)} |")
    return "\n".join(lines) + "\n"


def _shown(value: object) -> str:
    return "" if value in (None, "", []) else f"`{json.dumps(value)}`".replace('"', "")


def _takes(about: dict[str, Any]) -> str:
    """Return in words what a key takes, by its JSON schema."""
    about = next((kind for kind in about.get("anyOf", ()) if kind.get("type") != "null"), about)
    if "enum" in about:
        *others, last = (f"`{value}`" for value in about["enum"])
        return f"{', '.join(others)} or {last}"
    if "prefixItems" in about:
        return f"{len(about['prefixItems'])} × {_takes(about['prefixItems'][0])}"
    if about.get("type") == "array":
        of = about["items"].get("type", "record")
        return {"string": "list of texts", "integer": "list of whole numbers"}.get(of, "list")
    name = {"integer": "whole number", "number": "number", "string": "text",
            "boolean": "`true` or `false`"}.get(about.get("type", ""), "keys with values")  # fmt: skip
    above = about.get("exclusiveMinimum")
    ends = [f"above {above}" if name == "number" else f"from {above + 1}"] if above is not None else []
    ends += [f"from {about['minimum']}"] if "minimum" in about else []
    ends += [f"to {about['maximum']}"] if "maximum" in about else []
    ends += [f"below {about['exclusiveMaximum']}"] if about.get("exclusiveMaximum") == 1 else []
    return " ".join([name, *ends])


if __name__ == "__main__":
    for path in DOCS.glob("*.md"):
        path.write_text(renew(path.read_text(encoding="utf-8")), encoding="utf-8")
