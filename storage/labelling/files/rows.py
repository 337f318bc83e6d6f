"""The lines of a campaign's log as pydantic models.

Unknown fields are ignored.
"""

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field

from stepsight.core.errors import UserError
from stepsight.core.trace import check_text
from stepsight.core.validation import ListOf, Model, checked, invalid, validate
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.database.schema import check_name
from stepsight.storage.database.stored_json import EvaluatorFacts
from stepsight.storage.labelling.annotation import Count, Key
from stepsight.storage.labelling.error_kinds import Kind


def _moment(value: object) -> datetime:
    """Parse an ISO timestamp, which must have a time zone."""
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        raise invalid(f"{value!r:.40} is not a date and time.") from None
    if moment.tzinfo is None:
        raise invalid(f"{value!r:.40} has no time zone.", "Add one, such as +00:00.")
    return moment.astimezone(UTC)


def _check_conditions(value: dict[str, Any]) -> None:
    validate(TraceFilter, value, "the filter")
    names = {*TraceFilter.model_fields, *(one.validation_alias for one in TraceFilter.model_fields.values())}
    if unknown := value.keys() - names:
        raise UserError(
            f"there is no condition {min(unknown)!r}.", "Update StepSight, if a later version wrote it."
        )


def _check_facts(value: object) -> None:
    validate(EvaluatorFacts, value, "the facts")


Text = Annotated[str, checked(check_text, "the text")]
Name = Annotated[str, checked(check_name, "the name")]
Moment = Annotated[datetime, BeforeValidator(_moment)]
Version = Annotated[int, Field(ge=1, lt=2**31)]
Number = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Word = Annotated[str, Field(max_length=20)]
StepTexts = ListOf[Text | None]


class LabelRow(Model):
    """The base class of all lines of a log."""

    model_config = ConfigDict(extra="ignore")


class EvaluatorLine(LabelRow):
    """The evaluator of a campaign, with fields of `EvaluatorRow`."""

    name: Name
    fingerprint: Name
    format: Name
    attention: Name
    info: Annotated[dict[str, Any], checked(_check_facts)]


class CampaignLine(LabelRow):
    """The first line of a log, which describes the campaign. It has the fields of `CampaignRow` except references
    to other tables."""

    name: Text
    dataset: Text
    conditions: Annotated[dict[str, Any], checked(_check_conditions)]
    overlap: Count
    after_error: bool
    view: Word
    shows: Word
    ordering: Word
    random_share: float
    gold_rate: float
    lease: Count
    seed: Count
    created: Moment
    closed: Moment | None
    evaluator: EvaluatorLine | None
    created_by: Text
    shows_answer: bool
    restricted: bool
    error_kinds: list[Kind]
    after_submission: Word
    sample: Count | None
    population: Count | None
    suggests: bool
    shows_equations: bool
    # Earlier versions wrote none.
    qualification_items: Count = 0
    asks_evidence: bool = False
    annotators: ListOf[Text]


class GuidelineLine(LabelRow):
    """A line of a log with a version of the guideline."""

    guideline: Version
    text: Text
    created: Moment
    created_by: Text


class SlotLine(LabelRow):
    """A slot of an item. It has the fields of `SlotRow`, except that the annotator is given by name."""

    number: Count
    state: Word
    annotator: Text | None
    taken: Moment | None
    expires: Moment | None
    ended: Moment | None


class ItemLine(LabelRow):
    """A line of a log with an item of the queue. `item` is its position in the queue."""

    item: Count
    dataset: Text
    trace: Text
    digest: str
    chosen: Word
    slots: ListOf[SlotLine]


class EventLine(LabelRow):
    """A line of a log with an event. It has the fields of `EventRow`, except that the kind is in `event` and that
    the item, slot and annotator are given by position, number and name."""

    event: Word
    item: Count
    slot: Count | None
    annotator: Text
    step: Count | None
    old: Any
    new: Any
    cause: Word
    key: Key
    moment: Moment
    seconds: float | None
    digest: str
    guideline: Count
    view: Word
    revealed: Count | None
    of: Text | None
