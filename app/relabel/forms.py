"""What the forms of the pages send: the fields of a JSON object, each of the type that it must have."""

import json
from collections.abc import Collection, Mapping
from typing import Annotated, Any

from fastapi import Depends, Request

from stepsight.core.errors import UserError

_LARGEST = 2**31 - 1


async def _read_fields(request: Request) -> Mapping[str, Any]:
    try:
        found = json.loads(await request.body() or "{}")
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise UserError("The body is no JSON object.", "Send the fields of the form as one.")
    return found


Fields = Annotated[Mapping[str, Any], Depends(_read_fields)]


def whole(fields: Mapping[str, Any], name: str) -> int:
    """A field that holds a number of a step, an item and the like. Raises `UserError`."""
    value = fields.get(name)
    # True is a whole number in Python.
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _LARGEST:
        raise UserError(f"{name} is {value!r:.40}, expected a whole number from 0.", "Reload the page.")
    return value


def text(fields: Mapping[str, Any], name: str) -> str:
    """A field that holds a text, "" where it is not there. Raises `UserError`."""
    value = fields.get(name, "")
    if not isinstance(value, str):
        raise UserError(f"{name} is {value!r:.40}, expected a text.", "Reload the page.")
    return value


def choice(fields: Mapping[str, Any], name: str, known: Collection[str | None]) -> str | None:
    """A field that holds one of the `known` values, and has to be there. Raises `UserError`."""
    value = fields.get(name)
    if name not in fields or not isinstance(value, str | None) or value not in known:
        said = ", ".join(one or "null" for one in known)
        raise UserError(f"{name} is {value!r:.40}, expected one of {said}.", "Reload the page.")
    return value
