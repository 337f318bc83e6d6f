"""The lines of a campaign's log as pydantic models.

Unknown fields are ignored.
"""

from datetime import UTC, datetime
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from stepsight.core.errors import UserError
from stepsight.core.trace import check_text
from stepsight.core.validation import ListOf, Model, checked, choice, invalid, validate
from stepsight.storage.database.schema import check_name
from stepsight.storage.database.stored_json import EvaluatorFacts
from stepsight.storage.importers.rows.fields import describe
from stepsight.storage.labelling.annotation import (
    DECIDE,
    EVIDENCE,
    KINDS,
    SUGGEST,
    Count,
    NewEvent,
    is_value_of,
)
from stepsight.storage.labelling.plan import CampaignSettings

AGAIN = "Export the campaign again."


def _moment(value: object) -> datetime:
    """Parse an ISO timestamp, which must have a time zone."""
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        raise invalid(f"{value!r:.40} is not a date and time.") from None
    if moment.tzinfo is None:
        raise invalid(f"{value!r:.40} has no time zone.", "Add one, such as +00:00.")
    return moment.astimezone(UTC)


def _check_facts(value: object) -> None:
    validate(EvaluatorFacts, value, "the facts")


Text = Annotated[str, checked(check_text, "the text")]
Name = Annotated[str, checked(check_name, "the name")]
Moment = Annotated[datetime, BeforeValidator(_moment)]
Version = Annotated[int, Field(ge=1, lt=2**31)]
Word = Annotated[str, Field(max_length=20)]


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


class CampaignLine(CampaignSettings):
    """The first line of a log, which describes the campaign: its settings, and what `CampaignRow` has beside them,
    with names for references to other tables."""

    model_config = ConfigDict(extra="ignore")

    name: Text
    dataset: Text
    created: Moment
    closed: Moment | None
    restricted: bool
    evaluator: EvaluatorLine | None
    created_by: Text
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


class EventLine(NewEvent):
    """A line of a log with an event. It has the fields of `EventRow`, except that the kind is in `event` and that
    the item, slot and annotator are given by position, number and name. `of` is the key of another event."""

    model_config = ConfigDict(extra="ignore")

    kind: Annotated[str, choice((*KINDS, SUGGEST, DECIDE))] = Field(validation_alias="event")
    cause: Annotated[str, choice(("", "undo", "redo"))]
    item: Count
    slot: Count | None
    annotator: Text
    old: Any
    moment: Moment
    digest: str
    guideline: Count
    view: Word

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.kind == DECIDE:
            if not isinstance(self.new, dict) or self.step is None:
                raise UserError("a decision without a step or a label.")
        elif self.kind != SUGGEST:
            self.check_value()
        for name in ("old", "new"):
            value = getattr(self, name)
            if value is not None and not is_value_of(self.kind, value):
                raise UserError(f"{name} is {describe(value)}, which no event {self.kind!r} has.", AGAIN)
        return self

    def check_steps(self, steps: int) -> None:
        """Raise `UserError` if the event is impossible in a trace with `steps` steps."""
        if self.step is not None and self.step >= steps:
            raise UserError(f"the step is {self.step}, expected 0 to {steps - 1}.")
        if self.kind == SUGGEST and (self.new is None or len(self.new) != steps):
            raise UserError("a suggestion that is no label, or null, per step.")
        if self.kind == EVIDENCE and self.new is not None and not (self.step or 0) < self.new < steps:
            raise UserError(
                f"step {self.step} is linked to step {self.new}.", "A link is to a later step of the trace."
            )
