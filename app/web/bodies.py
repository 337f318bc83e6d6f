"""Request bodies: JSON objects that are validated by pydantic models."""

from typing import Any, TypeVar

from fastapi import Depends, Request
from pydantic import BaseModel

from stepsight.core.errors import UserError
from stepsight.core.files.whole_files import parse_json
from stepsight.core.validation import validate

T = TypeVar("T", bound=BaseModel)

_MOST_FIELDS = 1_000


def body(model: type[T]) -> Any:
    """Return a FastAPI dependency that parses the body of a request and validates it as a `model`. An empty body
    counts as `{}`. The dependency raises `UserError` if the body is not a JSON object or does not fit the model."""

    async def read(request: Request) -> T:
        try:
            values = parse_json(await request.body() or "{}")
        except ValueError:
            values = None
        if not isinstance(values, dict):
            raise UserError("The body is not a JSON object.", "Send one.")
        if len(values) > _MOST_FIELDS:
            # Each would be reported.
            raise UserError(f"The body has {len(values):,} fields.", f"Send {_MOST_FIELDS} at most.")
        return validate(model, values, "the body")

    return Depends(read)
