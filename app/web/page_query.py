"""The query strings of pages, as models with a field for each parameter."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Self
from urllib.parse import parse_qs, urlencode

from markupsafe import Markup, escape
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticKnownError

from stepsight.core.errors import AddressError, UserError
from stepsight.core.gone import in_address
from stepsight.core.validation import user_error

Query = Mapping[str, str | Sequence[str]]

_HINT = "Check the address."
_MOST_DIGITS = 12


def _check_digits(text: object) -> object:
    if isinstance(text, str) and not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise PydanticKnownError("int_parsing")
    return text


Number = Annotated[int, BeforeValidator(_check_digits)]
"""A number in an address, of at most 12 digits."""

PageNumber = Annotated[Number, AfterValidator(lambda number: max(1, number))]
"""A page number, counted from 1; 0 stands for the first page."""

_NUMBERS = TypeAdapter(dict[str, Number])


class PageQuery(BaseModel):
    """The query string of the page at `PATH`. Each parameter is a field with a default."""

    model_config = ConfigDict(frozen=True)
    PATH: ClassVar[str]

    @model_validator(mode="before")
    @classmethod
    def _leave_out_empty(cls, parts: Any) -> Any:
        return {name: value for name, value in parts.items() if value != ""} if isinstance(parts, dict) else parts

    @classmethod
    def read(cls, query: Query) -> tuple[Self, tuple[str, ...]]:
        """Read a query. Return the model and a message for each invalid parameter, and for each that earlier
        versions had. Both are ignored.

        A parameter whose default is a tuple may occur several times. For any other parameter, the last occurrence
        counts.
        """
        gone = in_address({name: _values(query, name) for name in query})
        gone_problems = [f"There is no {written} any more. {instead}" for written, instead in gone.values()]
        parts: dict[str, Any] = {}
        for name, field in cls.model_fields.items():
            key = field.validation_alias if isinstance(field.validation_alias, str) else name
            if key not in gone and (values := _values(query, key)):
                parts[key] = tuple(dict.fromkeys(values)) if isinstance(field.default, tuple) else values[-1]
        try:
            return cls.model_validate(parts), tuple(gone_problems)
        except ValidationError as error:
            problems = {str(one["loc"][0]): _problem(one, parts) for one in error.errors(include_url=False)}
            sound = {key: value for key, value in parts.items() if key not in problems}
            return cls.model_validate(sound), (*gone_problems, *problems.values())

    @classmethod
    def exact(cls, query: Query) -> Self:
        """Like `read`, but raise `AddressError` at the first invalid parameter."""
        address, problems = cls.read(query)
        if problems:
            raise AddressError(problems[0])
        return address

    def changed(self, **changes: object) -> Self:
        """Return a copy with some parameters changed."""
        return self.model_copy(update=changes)

    def query(self, **changes: object) -> dict[str, Any]:
        """Return the parameters by name, with `changes` applied. Parameters with default values are left out."""
        return self.changed(**changes).model_dump(by_alias=True, exclude_defaults=True)

    def url(self, path: str = "", /, **changes: object) -> Markup:
        """Return the URL with `changes` applied to its parameters, for use in an HTML attribute. `path` defaults to
        the path of the page."""
        query = self.query(**changes)
        return escape((path or self.PATH) + (f"?{urlencode(query, doseq=True)}" if query else ""))


def _problem(error: ErrorDetails, parts: Mapping[str, Any]) -> str:
    refusal = user_error([error], parts)
    return f"{refusal.message} {refusal.hint or _HINT}"


def read_number(query: Query, name: str) -> int:
    """Read a required number from a query. Raises `UserError` if the parameter is missing or is not a number."""
    parts = {name: (_values(query, name) or [""])[-1]}
    try:
        return _NUMBERS.validate_python(parts)[name]
    except ValidationError as error:
        raise UserError(_problem(error.errors(include_url=False)[0], parts)) from None


def read_query(text: str) -> dict[str, list[str]]:
    """Parse a query string, with or without its leading `?`."""
    return parse_qs(text.removeprefix("?"))


def _values(query: Query, name: str) -> list[str]:
    value = query.get(name, "")
    return [one for one in ([value] if isinstance(value, str) else value) if one]
