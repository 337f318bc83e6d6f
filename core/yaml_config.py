"""The keys of a YAML file as a frozen dataclass, each of its type and none unknown."""

import dataclasses
import difflib
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from stepsight.core.errors import UserError


def read_yaml(path: str | Path) -> object:
    """What a YAML file holds. Raises `UserError` naming the file where it cannot be read or is none."""
    try:
        return yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}).", "Check the path.") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not YAML ({' '.join(str(error).split())}).") from None


def above_zero(values: object, keys: tuple[str, ...], prefix: str = "") -> None:
    """Raises `UserError` naming the first of the `keys` whose value is not more than 0."""
    for key in keys:
        value = getattr(values, key)
        # NaN is not above zero either, though no comparison says so.
        if not value > 0:
            raise UserError(f"{prefix}{key} is {value}, expected more than 0.")


def one_of(key: str, value: str, allowed: tuple[str, ...]) -> None:
    """Raises `UserError` naming the key where the value is not allowed."""
    if value not in allowed:
        raise UserError(f"{key} is {value!r}, expected one of {', '.join(allowed)}.")


def build(kind: Any, values: object, prefix: str = "") -> Any:
    """An instance of the dataclass `kind`; `prefix` is where its keys stand, such as `backbone.`.

    Raises `UserError` naming the key on an unknown one (with the nearest valid one), a missing one or a wrong type.
    """
    if not isinstance(values, dict):
        where = prefix.rstrip(".") or "the file"
        raise UserError(f"{where} is {type(values).__name__}, expected keys with values.")
    fields = {item.name: item for item in dataclasses.fields(kind)}
    for key in values:
        if key not in fields:
            near = difflib.get_close_matches(str(key), fields, 1, 0.5)
            hint = f"Did you mean {prefix}{near[0]}?" if near else f"Known keys: {', '.join(fields)}."
            raise UserError(f"unknown key {prefix}{key}.", hint)
    hints = typing.get_type_hints(kind)
    for key, item in fields.items():
        required = item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
        if required and key not in values:
            raise UserError(f"the key {prefix}{key} is missing.")
    return kind(**{key: _convert(hints[key], value, prefix + key) for key, value in values.items()})


def _convert(hint: Any, value: object, key: str) -> Any:
    """`value` as the type `hint`, or a `UserError` naming `key`."""
    if isinstance(hint, types.UnionType):
        inner = next(part for part in typing.get_args(hint) if part is not type(None))
        return None if value is None else _convert(inner, value, key)
    if dataclasses.is_dataclass(hint):
        return build(hint, value, f"{key}.")
    if typing.get_origin(hint) is dict:
        if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
            raise UserError(
                f"{key} is {value!r}, expected keys with values.", "Put quotes around names that are numbers."
            )
        inner = typing.get_args(hint)[1]
        return {name: _convert(inner, item, f"{key}.{name}") for name, item in value.items()}
    if hint is Any:
        return value
    if typing.get_origin(hint) is tuple:
        parts = typing.get_args(hint)
        count = "" if parts[-1] is Ellipsis else f" of {len(parts)}"
        if not isinstance(value, list) or (count and len(value) != len(parts)):
            raise UserError(f"{key} is {value!r}, expected a list{count}.")
        return tuple(_convert(parts[0], item, f"{key}[{number}]") for number, item in enumerate(value))
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (hint is not bool and isinstance(value, bool)):
        raise UserError(f"{key} is {value!r}, expected {hint.__name__}.", _scientific(hint, value))
    return value


def _scientific(hint: Any, value: object) -> str:
    looks_like_number = isinstance(value, str) and "e" in value.lower()
    return "YAML reads 1e-3 as text; write 1.0e-3." if hint is float and looks_like_number else ""
