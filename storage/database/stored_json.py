"""JSON columns that check the type of their values on reading.

Other programs can change a store's file. Without the check, a value of an unexpected type would only be noticed
later, as a traceback or a wrong number.
"""

import json
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from sqlalchemy import JSON, Dialect, TypeDecorator

from stepsight.core.errors import UserError
from stepsight.core.files.whole_files import parse_json
from stepsight.core.judgment import Mode
from stepsight.core.scores import Outputs
from stepsight.core.validation import choice, user_error

_RESTORE = "Something else than StepSight changed the store. Mend that row, or restore a backup."

Share = Annotated[float, Field(ge=0, le=1)]
MOST_NUMBER = 2**53


class DamagedError(UserError):
    """Raised when the store contains something that StepSight would never write."""

    def __init__(self, message: str) -> None:
        super().__init__(message, _RESTORE)


class _Kept(BaseModel):
    """A JSON object in which unknown keys are allowed and preserved."""

    model_config = ConfigDict(strict=True, extra="allow")


class _OwnThresholds(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    validity: Share = 0.5
    redundancy: Share = 0.15


class _Reading(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    reading: Literal["both-orders"] | None = None
    window: Annotated[int, Field(gt=0, le=MOST_NUMBER)] | None = None


class EvaluatorFacts(_Kept):
    """The facts about an evaluator that are stored as JSON because they have no columns of their own."""

    outputs: Annotated[str, choice(tuple(Outputs))] = Outputs.THREE_WAY
    dtype: str = ""
    thresholds: _OwnThresholds = _OwnThresholds()
    parameters: Annotated[int, Field(ge=0, le=MOST_NUMBER)] | None = None
    context: Annotated[int, Field(ge=0, le=MOST_NUMBER)] | None = None
    files: dict[str, str] = {}
    reading: _Reading = _Reading()


class CalibrationInfo(_Kept):
    """A record of how a threshold was chosen. `threshold` says whether it is the validity or the redundancy
    threshold."""

    threshold: Literal["validity", "redundancy"]


class RequestInfo(_Kept):
    """The parameters of a job that lists of jobs show. Whoever carries it out checks all of them."""

    upload: int | None = None
    benchmark: str | None = None
    repo: str | None = None
    columns: dict[str, Any] | None = None
    mode: Annotated[str, choice(tuple(Mode))] = Mode.OFFLINE


class SpentInfo(BaseModel):
    """The usage that the server reported for a judgment, with the fields of `core.judgment.Usage`."""

    model_config = ConfigDict(strict=True, extra="forbid")

    calls: Annotated[int, Field(ge=0, le=MOST_NUMBER)]
    unread: Annotated[int, Field(ge=0, le=MOST_NUMBER)] = 0
    prompt_tokens: Annotated[int, Field(ge=0, le=MOST_NUMBER)] | None = None
    completion_tokens: Annotated[int, Field(ge=0, le=MOST_NUMBER)] | None = None


class StoredJson(TypeDecorator[Any]):
    """A JSON column whose values are checked on reading.

    `where` is the name of the column, and `kind` is the pydantic type of its values. Values are returned as stored.
    Reading a value that does not fit `kind` raises `DamagedError`.
    """

    impl = JSON
    cache_ok = True

    def __init__(self, where: str, kind: Any, *, none_as_null: bool = False) -> None:
        super().__init__(none_as_null=none_as_null)
        self.where, self.kind = where, kind

    def coerce_compared_value(self, op: Any, value: Any) -> Any:
        """Return the type for a key or text that the column is compared with. It differs from the type of the
        column's values."""
        return self.impl_instance.coerce_compared_value(op, value)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        """Return a function that parses the text from the database and checks the type of the value."""
        read = self.impl_instance.dialect_impl(dialect).result_processor(dialect, coltype)
        validate, where = _adapter(self.kind).validate_python, self.where

        def process(stored: Any) -> Any:
            if stored is None:
                return None
            try:
                value = stored if read is None else read(stored)
                validate(value, strict=True)
            except ValidationError as error:
                fault = user_error(error.errors(include_url=False), value, self.kind, "the value")
                raise DamagedError(f"{where}: {fault.message}") from None
            except DamagedError as error:
                raise DamagedError(f"{where}: {error.message}") from None
            return value

        return process


def write_stored(value: Any) -> str:
    """Return a value as JSON text for storage. Raises `ValueError` on NaN, which only SQLite would accept."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def read_stored(text: str | bytes | float) -> Any:
    """Parse the JSON text of a column. Raises `DamagedError` if `parse_json` refuses it."""
    # SQLite keeps the text of a number as a number.
    if isinstance(text, int | float):
        return text
    try:
        return parse_json(text)
    except ValueError as error:
        raise DamagedError(f"a JSON column of the store has invalid content ({error}).") from None


_adapter = cache(TypeAdapter[Any])
