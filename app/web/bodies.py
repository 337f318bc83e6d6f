"""Bodies of requests: JSON objects, checked by pydantic models."""

from typing import Any, TypeVar

from fastapi import Depends, Request
from pydantic import BaseModel

from stepsight.core.errors import UserError
from stepsight.core.files.json_values import parse_json
from stepsight.core.validation import validate

T = TypeVar("T", bound=BaseModel)


def body(model: type[T]) -> Any:
    """A dependency that reads the body of a request as a `model`; an empty body is an empty object.

    Raises `UserError` if it is not a JSON object or does not fit.
    """

    async def read(request: Request) -> T:
        try:
            values = parse_json(await request.body() or "{}")
        except ValueError:
            values = None
        if not isinstance(values, dict):
            raise UserError("The body is not a JSON object.", "Send one.")
        return validate(model, values, "the body")

    return Depends(read)
