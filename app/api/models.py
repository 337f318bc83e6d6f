"""The inputs and outputs of the API, and the objects that its routes share.

Steps, sub-steps and positions count from 1. A null means that a label is missing or a value is unknown.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    model_validator,
)

from stepsight.app.browse.address import ListQuery
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.judgment import Mode
from stepsight.core.judgment_record import JudgmentRecord, StepRecord, ThresholdsRecord
from stepsight.core.scores import Outputs
from stepsight.core.text.signs import is_blank
from stepsight.storage.database.jobs_schema import State, Task
from stepsight.storage.database.store import Store

LabelName = Literal["neg", "neu", "pos"]


@dataclass(frozen=True)
class Context:
    """The objects shared by all routes. `seconds` is the time limit for computing the answer to a request."""

    store: Store
    evaluators: Evaluators
    read_only: bool
    seconds: float


Texts = Annotated[list[str], Field(fail_fast=True)]
"""A list for which only one invalid item is reported, because reporting a million would take seconds."""


def _check_visible(steps: list[str | Texts]) -> list[str | Texts]:
    """Return `steps`. Raises `ValueError` at invisible characters, such as a zero-width space; white space alone is
    refused as an empty step."""
    for number, step in enumerate(steps, start=1):
        for text in [step] if isinstance(step, str) else step:
            if text.strip() and is_blank(text):
                raise ValueError(f"step {number} has no visible text")
    return steps


Steps = Annotated[list[str | Texts], AfterValidator(_check_visible)]

_MOST_FIELDS = 20


class _Given(BaseModel):
    """The body of an API request. Unknown fields are an error."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def check_few(cls, values: Any) -> Any:
        """Return `values`. Raises `ValueError` if they have so many fields that reporting each would take long."""
        if isinstance(values, dict) and len(values) > _MOST_FIELDS and cls.model_config["extra"] == "forbid":
            raise ValueError(f"{len(values):,} fields, expected {_MOST_FIELDS} at most")
        return values


class Failure(BaseModel):
    """The body of every response whose status is not 2xx."""

    error: str = Field(description="The problem: what was found and what was expected.")
    hint: str = Field(description="The way to solve it; may be empty.")


class SolutionRequest(_Given):
    problem: str = Field(examples=["What is 2 + 3?"])
    steps: Steps = Field(
        description="In order; a list of texts is a step with sub-steps.",
        examples=[["2 + 3 = 6.", "Check: 6 - 3 = 3, not 2."]],
        min_length=1,
        max_length=1000,
        fail_fast=True,
    )


class ScoreRequest(SolutionRequest):
    evaluator: str | None = Field(
        None, description="A name from /evaluators; by default the first one that scores."
    )
    mode: Mode = Field(Mode.OFFLINE, description="hindsight includes the other two.")


class BatchTrace(SolutionRequest):
    """One of the solutions in a batch: a trace in the plain format, whose other fields are not read."""

    # Values such as labels and metadata, which may have any names.
    model_config = ConfigDict(extra="ignore")

    id: str = Field("", description="The name of the solution in errors.", max_length=200)


class BatchRequest(_Given):
    traces: list[BatchTrace] = Field(
        examples=[[{"problem": "What is 2 + 3?", "steps": ["2 + 3 = 6."]}]],
        min_length=1,
        max_length=1000,
        fail_fast=True,
    )
    evaluator: str | None = Field(
        None, description="A name from /evaluators; by default the first one that scores."
    )
    mode: Mode = Field(Mode.OFFLINE, description="hindsight includes the other two.")


class BatchLine(JudgmentRecord):
    """The response line with the judgment of one solution."""

    index: int = Field(description="The number of the solution in the request, counted from 0.")


class FailedLine(Failure):
    """The response line for a solution or candidate that could not be scored."""

    index: int = Field(description="The number of the solution or candidate in the request, counted from 0.")
    status: int = Field(description="The status of the response to a separate request for it.")
    retry_after: int | None = Field(None, description="Seconds after which to request it again, if that may help.")


class NextRequest(_Given):
    problem: str = Field(examples=["What is 2 + 3?"])
    steps: Steps = Field(
        [],
        description="The steps before the candidates, in order.",
        examples=[["2 + 3 = 5."]],
        max_length=1000,
        fail_fast=True,
    )
    candidates: list[str] = Field(
        description="Each is judged as the next step.",
        examples=[["So 5.", "So 6."]],
        min_length=1,
        max_length=256,
        fail_fast=True,
    )
    evaluator: str | None = Field(
        None, description="A name from /evaluators; by default the first one that scores."
    )


class NextLine(StepRecord):
    """The response line for one candidate, judged online as the step after the given ones."""

    index: int = Field(description="The number of the candidate in the request, counted from 0.")


class EvaluatorInfo(BaseModel):
    name: str
    fingerprint: str
    attention: str
    format: str
    outputs: Outputs = Field(
        description="The kind of outputs, as in JudgmentRecord; solution and verdict occur in imported scores."
    )
    dtype: str | None = Field(description="The type of its weights; null without weights.")
    scores: bool = Field(description="True if it can score here; the others have judgments in the store.")
    context: int | None = Field(None, description="The longest input in tokens.")
    parameters: int | None = Field(None, description="The number of its weights.")
    thresholds: ThresholdsRecord | None = None


class DatasetInfo(BaseModel):
    name: str
    kind: str
    traces: int
    errors: int = Field(description="The number of traces whose gold has a first error.")
    redundant: int = Field(description="The number of traces with a redundant step in the gold.")
    steps: int
    substeps: int
    left_out: int = Field(description="The number of bad rows that were skipped in its files.")


class TraceQuery(ListQuery):
    """The filters and the sort order of the Browse page, under the same names as in its URL."""

    model_config = ConfigDict(extra="forbid", validate_by_name=False)

    limit: int = Field(50, ge=1, le=500)
    offset: int = Field(0, ge=0, le=2**31 - 1)


class TraceLine(BaseModel):
    """A trace without its steps. The fields from `validity` on come from the evaluator in the query."""

    trace: int = Field(description="The number of the trace in addresses.")
    id: str = Field(description="The id of the trace in its dataset.")
    position: int
    problem: str
    steps: int
    substeps: int
    has_gold: bool
    first_error: int | None = Field(description="The first wrong step in the gold.")
    group: str
    validity: float | None
    online_validity: float | None
    offline_validity: float | None
    redundancy: float | None
    online_redundancy: float | None
    offline_redundancy: float | None
    change: float | None = Field(description="The largest retroactive change of any step.")
    found_error: int | None = Field(description="The first step that the evaluator calls wrong.")
    mistake: str = Field(description="The outcome: right, missed, false-alarm or wrong-step; empty if unknown.")


class TracePage(BaseModel):
    dataset: str
    evaluator: str = Field(description="The evaluator of the judgments in the lines.")
    errors: str = Field(description="The kind of error that `mistake` concerns: invalid or redundant.")
    total: int = Field(description="The number of traces that meet the conditions.")
    offset: int
    traces: list[TraceLine]


class StepInfo(BaseModel):
    step: int
    substeps: list[str]
    label: LabelName | None = Field(description="The gold label; null for an unlabelled step.")
    valid: bool | None = Field(description="True or false if the gold gives the validity of the step.")
    share: float | None = Field(None, description="The soft label of the step, from 0 to 1; null if it has none.")


class TraceDetail(BaseModel):
    trace: int
    dataset: str
    id: str
    position: int
    problem: str
    steps: list[StepInfo]
    first_error: int | None
    meta: dict[str, Any]
    judgments: list[JudgmentRecord]


class JobRequest(_Given):
    dataset: str
    evaluator: str
    mode: Mode = Mode.HINDSIGHT


class JobInfo(BaseModel):
    job: int
    task: Task
    subject: str = Field(description="What is imported or fetched; empty for a judging job.")
    dataset: str = Field(description="The dataset; empty until an import has one.")
    evaluator: str = Field(description="The evaluator; empty for an import.")
    fingerprint: str
    mode: Mode | None
    state: State
    total: int
    done: int = Field(description="The number of traces judged, or of bytes processed.")
    left_out: int = Field(description="The number of traces too long for the evaluator, or of bad rows.")
    rate: float | None = Field(description="Traces or bytes per second.")
    seconds_left: float | None
    reason: str
    created: datetime
    finished: datetime | None
