"""What other programs are written against: commands with their options, the HTTP API, the names of the package."""

import argparse
import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import stepsight
from stepsight.app.api.service import build_api
from stepsight.app.commands.cli import build_parser
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.storage.database.store import Store

Names = dict[str, list[str]]


def interfaces(store: Store) -> dict[str, Names]:
    """Every interface of today: by its name, what it takes, needs or gives."""
    api = build_api(store, Evaluators(["mini-causal"], shipped=False)).openapi()
    return {"commands": dict(_commands(build_parser(), "stepsight")), "api": dict(_api(api)), "python": _python()}


def broken(then: Mapping[str, Names], now: Mapping[str, Names]) -> list[str]:
    """What is missing now, and what has to be given now and had not to be then."""
    found = []
    for kind, entries in then.items():
        for name, before in entries.items():
            after = now[kind].get(name)
            if after is None:
                found.append(f"{kind}: {name} is gone")
            elif name.endswith(" needs"):
                found += [f"{kind}: {name} {one}" for one in after if one not in before]
            else:
                found += [f"{kind}: {name}: {one} is gone" for one in before if one not in after]
    return found


def _commands(parser: argparse.ArgumentParser, name: str) -> Iterator[tuple[str, list[str]]]:
    yield name, sorted({word for action in parser._actions for word in action.option_strings or [action.dest]})
    needed = [action for action in parser._actions if action.required]
    yield f"{name} needs", sorted(max(action.option_strings, default=action.dest, key=len) for action in needed)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, command in action.choices.items():
                yield from _commands(command, f"{name} {word}")
        elif action.choices is not None:
            yield (
                f"{name} {max(action.option_strings, default=action.dest, key=len)}",
                sorted(map(str, action.choices)),
            )


def _api(described: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    for path, routes in described["paths"].items():
        for method, route in routes.items():
            name = f"{method.upper()} {path}"
            parameters = route.get("parameters", [])
            body = _content(route.get("requestBody", {}))
            taken = [one["name"] for one in parameters] + sorted(_fields(body, described))
            yield f"{name} takes", taken
            needed = [one["name"] for one in parameters if one.get("required")]
            yield f"{name} needs", needed + sorted(_fields(body, described, required=True))
            answer = next(one for status, one in route["responses"].items() if status.startswith("2"))
            yield f"{name} gives", sorted(_fields(_content(answer), described))


def _content(part: dict[str, Any]) -> dict[str, Any]:
    content = next(iter(part.get("content", {}).values()), {})
    schema: dict[str, Any] = content.get("schema", {})
    return schema


def _fields(
    schema: dict[str, Any], described: dict[str, Any], required: bool = False, above: str = ""
) -> Iterator[str]:
    """The fields of a JSON schema, those within others with dots between."""
    if "$ref" in schema:
        schema = described["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    for part in ("anyOf", "oneOf", "allOf"):
        for one in schema.get(part, []):
            yield from _fields(one, described, required, above)
    if isinstance(schema.get("items"), dict):
        yield from _fields(schema["items"], described, required, above)
    for name, value in schema.get("properties", {}).items():
        if not required or name in schema.get("required", []):
            yield above + name
            yield from _fields(value, described, required, f"{above}{name}.")


def _python() -> Names:
    found: Names = {"stepsight": list(stepsight.__all__)}
    for name in stepsight.__all__:
        thing = getattr(stepsight, name)
        members = [(name, thing)]
        if inspect.isclass(thing):
            found[name] = [one for one in dir(thing) if not one.startswith("_")]
            members += [(f"{name}.{one}", getattr(thing, one)) for one in found[name]]
        for member, value in members:
            if callable(value):
                parameters = inspect.signature(value).parameters.values()
                found[f"{member}()"] = [str(one.name) for one in parameters]
                found[f"{member}() needs"] = [
                    str(one.name)
                    for one in parameters
                    if one.default is one.empty and one.kind < one.VAR_POSITIONAL
                ]
    return found
