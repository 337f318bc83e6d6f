"""A row of a pool as a solution: a query with a response, whose steps an evaluator judges.

MMIQC: {"instruction": "Compute $2 + 3$.", "output": "We add.\\nThe answer is: 5", "source": "MATH"}
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.split import split_steps
from stepsight.core.trace import Trace, check_text
from stepsight.storage.importers.fields import describe, field
from stepsight.storage.importers.kind import Row

QUERY, RESPONSE = "query", "response"
"""What the two are called in what is written, whatever the pool calls them."""

Fields = tuple[str, str]
"""What a file calls the query and the response."""

KNOWN: tuple[Fields, ...] = (
    (QUERY, RESPONSE),
    ("instruction", "output"),
    ("problem", "steps"),
    ("problem", "solution"),
    ("question", "answer"),
)
"""MetaMathQA's, MMIQC's, the plain format's, MATH's and GSM8K's."""


@dataclass(frozen=True)
class Solution:
    """`trace` is the query with the response's steps; `rest` are the row's other fields."""

    where: str
    query: str
    response: str
    trace: Trace
    rest: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """Of what is judged, 16 hexadecimal digits."""
        return self.trace.digest[:16]

    @property
    def line(self) -> bytes:
        """The row as it is written: `query`, `response`, and every other field as it was."""
        row = {QUERY: self.query, RESPONSE: self.response, **self.rest}
        try:
            return f"{json.dumps(row, ensure_ascii=False, default=str)}\n".encode()
        except UnicodeEncodeError:
            # Half of a surrogate pair, in a field that nobody reads, has no other spelling.
            return f"{json.dumps(row, default=str)}\n".encode()


def find_fields(rows: list[Row]) -> Fields | None:
    """The first of the known pairs that a row has whole, None where there is none."""
    return next((fields for row in rows for fields in KNOWN if row.keys() >= {*fields}), None)


def parse_solution(row: Row, fields: Fields, where: str) -> Solution:
    """A row as a candidate; a response that is a list of texts is one of steps, any other is split into them.

    Raises `UserError` that starts with `where` where query or response is missing, empty or no text, or there is no
    step.
    """
    try:
        query = check_text(field(row, fields[0]), f"the field {fields[0]!r}")
        answer = field(row, fields[1])
        trace = Trace.of(query, _steps(answer, f"the field {fields[1]!r}"))
        rest = {key: value for key, value in row.items() if key not in fields}
        if taken := rest.keys() & {QUERY, RESPONSE}:
            raise UserError(
                f"the row has a field {min(taken)!r} too, which is what {' and '.join(fields)} are written as.",
                "Name the right two with --fields.",
            )
    except UserError as error:
        raise error.at(where) from None
    response = answer if isinstance(answer, str) else "\n".join(trace.substeps)
    return Solution(where, query, response, trace, rest)


def _steps(response: object, what: str) -> Sequence[str | list[str]]:
    if not isinstance(response, list):
        return split_steps(check_text(response, what))
    for number, step in enumerate(response, start=1):
        parts = step if isinstance(step, list) else [step]
        if not all(isinstance(part, str) for part in parts):
            raise UserError(f"step {number} of {what} is {describe(step)}, expected a text or a list of texts.")
    return response
