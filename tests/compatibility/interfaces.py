"""What others are written against: commands and their options, the HTTP API, the addresses of pages, the fields of
a judgment record, the names of the package and the keys of configurations.
"""

import argparse
import inspect
from tempfile import TemporaryDirectory

from pydantic import TypeAdapter

import stepsight
from stepsight.app.api.service import build_api
from stepsight.app.commands.cli import build_parser
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.pages import PageQuery
from stepsight.core.judgment_record import LONG, WIDE, JudgmentRecord
from stepsight.docs import tables
from stepsight.storage.database.store import open_store


def interfaces():
    """Every interface of this version: by its name, what it takes, needs and gives."""
    with TemporaryDirectory() as folder, open_store(f"{folder}/store.db") as store:
        api = build_api(store, Evaluators(["mini-causal"], shipped=False)).openapi()
    record = JudgmentRecord.model_json_schema(mode="serialization")
    keys = {
        head.replace("`", ""): TypeAdapter(model).json_schema() for head, model in sorted(tables.MODELS.items())
    }
    return {
        "commands": dict(_commands(build_parser(), "stepsight")),
        "api": dict(_api(api)),
        "pages": {page.PATH: sorted(page.model_json_schema()["properties"]) for page in _pages(PageQuery)},
        "record": {
            "judgment": sorted(_fields(record, record.get("$defs", {}))),
            "table": list(LONG),
            "table with both modes": list(WIDE),
        },
        "python": _python(),
        "configuration": {
            head + part: sorted(names)
            for head, schema in keys.items()
            for part, names in (("", schema["properties"]), (" needs", schema.get("required", ())))
        },
    }


def missing(then, now):
    """What is gone since `then`, and what has to be given now and had not to be then."""
    changes = []
    for kind, entries in then.items():
        for name, before in entries.items():
            after = now[kind].get(name)
            if after is None:
                changes.append(f"{kind}: {name} is gone")
            elif name.endswith(" needs"):
                changes += [f"{kind}: {name} {word}" for word in after if word not in before]
            else:
                changes += [f"{kind}: {name}: {word} is gone" for word in before if word not in after]
    return changes


def _commands(parser, name):
    """Yield the options of a command and of those below it, with their choices and defaults."""
    yield name, sorted({word for action in parser._actions for word in action.option_strings or [action.dest]})
    yield f"{name} needs", sorted(_word(action) for action in parser._actions if action.required)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, command in action.choices.items():
                yield from _commands(command, f"{name} {word}")
        elif action.choices is not None:
            yield f"{name} {_word(action)}", sorted(map(str, action.choices))
        if isinstance(action.default, int | float | str) and action.default != argparse.SUPPRESS:
            yield f"{name} {_word(action)} by default", [str(action.default)]


def _word(action):
    return max(action.option_strings, default=action.dest, key=len)


def _api(description):
    schemas = description["components"]["schemas"]
    for path, routes in description["paths"].items():
        for method, route in routes.items():
            name, parameters = f"{method.upper()} {path}", route.get("parameters", [])
            body = _content(route.get("requestBody", {}))
            yield f"{name} takes", sorted({*(each["name"] for each in parameters), *_fields(body, schemas)})
            needs = [each["name"] for each in parameters if each.get("required")]
            yield f"{name} needs", sorted({*needs, *_fields(body, schemas, required=True)})
            answer = next(answer for status, answer in route["responses"].items() if status.startswith("2"))
            yield f"{name} gives", sorted({*_fields(_content(answer), schemas)})


def _content(part):
    return next(iter(part.get("content", {}).values()), {}).get("schema", {})


def _fields(schema, schemas, required=False, above=""):
    """Yield the fields of a JSON schema, those within others with dots between."""
    if "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    for part in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ()), schema.get("items")):
        if isinstance(part, dict):
            yield from _fields(part, schemas, required, above)
    for name, value in schema.get("properties", {}).items():
        if not required or name in schema.get("required", []):
            yield above + name
            yield from _fields(value, schemas, required, f"{above}{name}.")


def _pages(query):
    for page in query.__subclasses__():
        yield from [page] if "PATH" in vars(page) else []
        yield from _pages(page)


def _python():
    names = {"stepsight": sorted(stepsight.__all__)}
    for name in stepsight.__all__:
        value = getattr(stepsight, name)
        members = [(name, value)]
        if inspect.isclass(value):
            names[name] = sorted(member for member in dir(value) if not member.startswith("_"))
            members += [(f"{name}.{member}", getattr(value, member)) for member in names[name]]
        for member, function in members:
            if callable(function):
                parameters = inspect.signature(function).parameters.values()
                needed = [
                    each for each in parameters if each.default is each.empty and each.kind < each.VAR_POSITIONAL
                ]
                names[f"{member}()"] = [each.name for each in parameters]
                names[f"{member}() needs"] = [each.name for each in needed]
    return names
