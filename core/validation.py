"""Validating YAML files, request bodies and label files with pydantic. Mistakes are raised as `UserError`.

    @dataclass(frozen=True, config=STRICT)          # pydantic.dataclasses.dataclass
    class Recipe(Record):
        loss: Literal["response", "all"]
        epochs: PositiveInt = 4
        files: ListOf[str] = ()

    validate(Recipe, yaml.safe_load(text))

The error gives the location, what was found, what was expected and a hint:

    epochs is '4', expected a whole number.
    unknown key epoch. Did you mean epochs?

`Model` does the same for classes that need a JSON schema, such as those of the API. No value is converted: neither
"1" nor true is accepted as a whole number. Modules that do not validate should not import this module, because
pydantic takes 0.1 s to load.
"""

import difflib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from functools import cache, reduce
from operator import getitem
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    Strict,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError, PydanticKnownError

from stepsight.core.errors import UserError

STRICT = ConfigDict(strict=True, extra="forbid")

T = TypeVar("T")

ListOf = Annotated[tuple[T, ...], Strict(False)]
"""A list in the file, a tuple in memory; its items are checked as strictly as elsewhere."""

Place = tuple[int | str, ...]
"""The path to a value: keys, and indices of items from 0."""

_SHOWN = 40
_KEYS = "keys with values"
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument", "invalid_key")
_MISSING = ("missing", "missing_argument", "missing_keyword_only_argument")
_CHOICES = ("literal_error", "enum")
_EXPECTED = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "string_unicode": "Unicode text",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": _KEYS,
    "model_type": _KEYS,
    "model_attributes_type": _KEYS,
    "dataclass_type": _KEYS,
    "too_short": "a list of {min_length} or more",
    "greater_than": "more than {gt}",
    "greater_than_equal": "{ge:g} or more",
    "less_than": "less than {lt}",
    "less_than_equal": "{le:g} or less",
    "too_long": "a list of {max_length} at most",
    "string_too_short": "at least {min_length} characters",
    "string_too_long": "at most {max_length} characters",
}
"""What was expected, by pydantic's type of error, with the names of the bounds."""
_OPTION = re.compile(r"'(.{0,200}?)'(?=,| or |$)")
_EXPONENT = re.compile(r"[+-]?\d+e[+-]?\d+", re.IGNORECASE)


class Model(BaseModel):
    """Base class of frozen models that refuse unknown keys."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Record:
    """Base class of pydantic dataclasses that, like a `BaseModel`, can be built from a mapping."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return a schema that is strict about field values but also accepts a mapping, which a strict pydantic
        dataclass would refuse."""
        schema = handler(source)
        part = cast(dict[str, Any], schema)
        while part["type"] != "dataclass":
            part = part["schema"]
        part["strict"] = False
        return schema


def validate(kind: type[T], values: object, whole: str = "the file") -> T:
    """Validate `values`, parsed from YAML or JSON, and return them as an instance of `kind`.

    Raises `UserError` if the values are invalid. The message calls the values as a whole `whole`.
    """
    try:
        instance: T = _adapter(cast(Any, kind)).validate_python(values)
    except ValidationError as error:
        raise user_error(error.errors(include_url=False), values, kind, whole) from None
    return instance


def update(instance: T, **changes: object) -> T:
    """Return a copy of a `Record` with the given fields changed. Raises `UserError` if a new value does not fit."""
    values = {item.name: getattr(instance, item.name) for item in fields(cast(Any, instance))}
    return validate(type(instance), values | changes)


def invalid(message: str, hint: str = "") -> PydanticCustomError:
    """Return an error for a pydantic validator to raise. The location of the value is later prefixed to its
    message."""
    return PydanticCustomError("invalid", "{message}", {"message": message, "hint": hint})


def checked(check: Callable[..., object], *arguments: object) -> AfterValidator:
    """Return an annotation that validates a value with `check(value, *arguments)`. If `check` raises `UserError`,
    the location of the value is prefixed to its message."""

    def run(value: T) -> T:
        try:
            check(value, *arguments)
        except UserError as error:
            raise invalid(error.message, error.hint) from None
        return value

    return AfterValidator(run)


def choice(options: Collection[str]) -> AfterValidator:
    """Return an annotation for text that must be one of `options`. Use it instead of `Literal` when the options are
    only known at run time."""

    def check(value: str) -> str:
        if value not in options:
            raise PydanticKnownError("literal_error", {"expected": ", ".join(f"'{option}'" for option in options)})
        return value

    return AfterValidator(check)


def distinct(values: tuple[T, ...]) -> tuple[T, ...]:
    """Check that a list is not empty and has no duplicates. For use with `AfterValidator`."""
    if not values:
        raise PydanticKnownError("too_short", {"field_type": "List", "min_length": 1, "actual_length": 0})
    for value in values:
        if values.count(value) > 1:
            raise invalid(f"{value} occurs twice.")
    return values


def user_error(
    errors: Sequence[ErrorDetails], values: object, kind: Any = None, whole: str = "the file"
) -> UserError:
    """Turn the most relevant of pydantic's `errors` on `values` into a `UserError`.

    Unknown and missing keys take precedence over all other errors. If the class `kind` is given, the hint lists its
    keys.
    """

    def rank(error: ErrorDetails) -> int:
        # A misspelt key is also reported as missing under its correct name.
        return 0 if error["type"] in _UNKNOWN else 1 if error["type"] in _MISSING else 2

    paths = [_path(error, values) for error in errors]
    first = paths[min(range(len(errors)), key=lambda number: rank(errors[number]))]
    # The member of a union that matched best.
    path = max((path for path in paths if path[: len(first)] == first), key=len)
    same_place = sorted((error for error, other in zip(errors, paths, strict=True) if other == path), key=rank)
    error, context = same_place[0], same_place[0].get("ctx", {})
    has_row = bool(path) and isinstance(path[0], int) and not isinstance(values, Mapping)
    row = f"row {int(path[0]) + 1}" if has_row else ""
    key = ""
    for part in path[1:] if row else path:
        key += f"[{part}]" if key and isinstance(part, int) else f".{part}" if key else str(part)
    if error["type"] in _UNKNOWN:
        refusal = UserError(f"unknown key {key}.", _known_keys(path, key, kind))
    elif error["type"] in _MISSING and path[-1:] == error["loc"][-1:]:
        refusal = UserError(f"the key {key} is missing.")
    elif error["type"] in ("invalid", "value_error"):
        refusal = UserError(str(context.get("message") or context["error"]), str(context.get("hint", "")))
        refusal = refusal.at(key) if key else refusal
    elif error["type"] == "too_short" and not error["input"]:
        refusal = UserError(f"{key or whole} is empty.", "Give at least one.")
    else:
        value = reduce(getitem, path, cast(Any, values))
        shown = "empty" if value is None and not path else repr(value)
        shown = shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 1]}…"
        expected = " or ".join(dict.fromkeys(map(_describe_expected, same_place)))
        refusal = UserError(f"{key or row or whole} is {shown}, expected {expected}.", _hint(error, value))
        row = row if key else ""
    return refusal.at(row) if row else refusal


def _path(error: ErrorDetails, values: Any) -> Place:
    """Return the path to the value that an error is about, without the names that pydantic gives union members."""
    path: list[int | str] = []
    last = error["loc"][-1] if error["loc"] else None
    for part in error["loc"]:
        is_item = isinstance(values, list | tuple) and isinstance(part, int) and part < len(values)
        if is_item or (isinstance(values, Mapping) and part in values):
            values = values[part]
        elif error["type"] not in _MISSING or isinstance(part, int) or part != last:
            continue
        path.append(part)
    # A key that is not a string is a mistake in the mapping.
    return tuple(path[:-1] if last == "[key]" else path)


def _describe_expected(error: ErrorDetails) -> str:
    if error["type"] in _CHOICES:
        return f"one of {', '.join(_OPTION.findall(error['ctx']['expected']))}"
    if error["loc"][-1:] == ("[key]",):
        return _KEYS
    if error["type"] in _MISSING:
        return f"a list of {int(error['loc'][-1]) + 1} or more"
    if error["type"] not in _EXPECTED:
        return error["msg"].removeprefix("Input should be ")
    # This writes 1 for 1.0.
    bounds = {
        name: int(bound) if isinstance(bound, float) and bound.is_integer() else bound
        for name, bound in error.get("ctx", {}).items()
    }
    return _EXPECTED[error["type"]].format(**bounds)


def _hint(error: ErrorDetails, value: object) -> str:
    if error["type"] in _CHOICES:
        return _did_you_mean(value, _OPTION.findall(error["ctx"]["expected"]))
    if error["loc"][-1:] == ("[key]",):
        return "Put quotes around names that are numbers."
    if error["type"] == "float_type" and isinstance(value, str) and _EXPONENT.fullmatch(value):
        return "YAML reads 1e-3 as text; write 1.0e-3."
    return ""


def _did_you_mean(value: object, options: Collection[str], prefix: str = "") -> str:
    matches = difflib.get_close_matches(value, options, 1, 0.5) if isinstance(value, str) else []
    return f"Did you mean {prefix}{matches[0]}?" if matches else ""


def _known_keys(path: Place, key: str, kind: Any) -> str:
    """Return a hint that suggests the key most similar to the last one in `path`, or else lists all valid keys."""
    kinds = _members(kind)
    for part in path[:-1]:
        inner: list[Any] = []
        for outer in kinds:
            keys = _keys(outer)
            if keys:
                inner += [keys[str(part)]] if part in keys else []
            else:
                inner += get_args(outer)[-1:] if get_origin(outer) is dict else get_args(outer)
        kinds = _members(tuple(inner))
    names = [name for outer in kinds for name in _keys(outer)]
    listed = f"The keys are {', '.join(names)}." if names else ""
    return _did_you_mean(path[-1], names, key.removesuffix(str(path[-1]))) or listed


def _members(kind: Any) -> list[Any]:
    """Return the member types of a union, or of the union in a tuple of types, stripped of annotations."""
    if isinstance(kind, tuple):
        return [member for inner in kind for member in _members(inner)]
    if get_origin(kind) is Annotated:
        return _members(get_args(kind)[0])
    return _members(get_args(kind)) if get_origin(kind) in (Union, UnionType) else [kind]


def _keys(kind: Any) -> dict[str, Any]:
    fields = getattr(kind, "__pydantic_fields__", {})
    return {field.alias or name: field.annotation for name, field in fields.items()}


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
