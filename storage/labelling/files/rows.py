"""The rows of label files as pydantic models: annotated traces, and the lines of a campaign's log.

Unknown fields are ignored.
"""

import hashlib
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, Strict, model_validator

from stepsight.core.errors import UserError
from stepsight.core.label import LABEL_NAMES
from stepsight.core.repair import check_notice, check_repair
from stepsight.core.trace import check_text
from stepsight.core.validation import ListOf, Model, checked, choice, invalid, validate
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.database.schema import check_name
from stepsight.storage.database.stored_json import EvaluatorFacts
from stepsight.storage.importers.rows.fields import canonical
from stepsight.storage.labelling.annotation import LABELS, LINKS, OUTCOMES, Borders, Count, Key, check_reason
from stepsight.storage.labelling.error_kinds import Kind
from stepsight.storage.people.exposures import WHAT
from stepsight.storage.traces.queries import StoredTrace


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
    """The base class of all rows in label files."""

    model_config = ConfigDict(extra="ignore")


class ImportedAnnotation(LabelRow):
    """A submitted annotation in a file. Each list has one value per step."""

    annotator: Name
    view: Literal["whole", "stepwise"]
    labels: ListOf[Annotated[str, choice(LABELS)] | None]
    first: ListOf[Annotated[str, choice(LABELS)] | None]
    errors: ListOf[Kind | None]
    comments: StepTexts
    corrections: StepTexts
    flag: Text | None
    exposed: Annotated[frozenset[Annotated[str, choice(WHAT)]], Strict(False)]
    labelled_before: bool
    guideline: Version
    submitted: Moment
    seconds: Number
    repaired: ListOf[Count | None] = ()
    evidence: ListOf[Count | None] = ()
    outcome: Annotated[str, choice(OUTCOMES)] | None = None
    notices: ListOf[Count | None] = ()
    borders: Borders | None = None

    @property
    def content(self) -> bytes:
        """The annotation as canonical JSON, without links, outcome and borders if it has none."""
        exact = {"exposed": sorted(self.exposed), "submitted": self.submitted.isoformat()}
        without = {name for name in (*LINKS, "outcome", "borders") if not getattr(self, name)}
        return canonical(self.model_dump(exclude=without) | exact)

    def check_steps(self, steps: int) -> None:
        """Raise `UserError` unless every list has one value per step."""
        for name in ("labels", "first", "errors", "comments", "corrections"):
            entries = len(getattr(self, name))
            if entries != steps:
                hint = "Give one per step, null where there is none."
                raise UserError(f"{entries} {name} for {steps} steps.", hint)
        for name in LINKS:
            self._check_links(name, steps)
        if self.borders is not None and self.borders[-1] >= steps:
            raise UserError(f"a section begins at step {self.borders[-1] + 1} of {steps}.", "Count steps from 0.")

    def _check_links(self, name: str, steps: int) -> None:
        links = getattr(self, name)
        if links and len(links) != steps:
            raise UserError(
                f"{len(links)} {name} for {steps} steps.", "Give one per step, null where there is none."
            )
        for step, link in enumerate(links):
            if link is None:
                continue
            if name == "notices":
                check_notice(step, link, steps)
            elif name == "repaired":
                check_repair(step, link, steps, is_wrong=self.labels[step] == "neg")
            elif (
                self.view != "stepwise" or not step < link < steps or self.first[step] in (None, self.labels[step])
            ):
                raise UserError(
                    f"step {step + 1} has step {link + 1} as evidence.",
                    "Evidence is a later step of a stepwise campaign, for a label that it changed.",
                )


class ImportedDecision(LabelRow):
    """An adjudicator's decision in a file. `step` is 0-based."""

    step: Count
    label: Annotated[str, choice(LABEL_NAMES)] | None
    # Empty for the majority's label.
    reason: Annotated[
        str, AfterValidator(lambda reason: check_reason(reason, "the reason is blank.") if reason else "")
    ]
    annotator: Name
    own: bool
    moment: Moment
    repaired: Count | None = None

    @property
    def content(self) -> bytes:
        """The decision as canonical JSON."""
        without = {"repaired"} if self.repaired is None else set()
        return canonical(self.model_dump(exclude=without) | {"moment": self.moment.isoformat()})


class ImportedTrace(LabelRow):
    """The annotations of one trace: a row in the format `storage.labelling.files.formats.jsonl`.

    The trace is identified by its id within the dataset, together with its digest.
    """

    dataset: Text
    id: Text
    digest: Text
    chosen: Literal["ordered", "random", "gold"]
    steps: list[Any]
    annotations: ListOf[ImportedAnnotation] = Field(alias="answers")
    decisions: Annotated[ListOf[ImportedDecision], BeforeValidator(lambda rows: rows or ())] = ()

    @classmethod
    def of(cls, dataset: str, trace: StoredTrace, answers: list[dict[str, Any]]) -> "ImportedTrace":
        """Build a row for a stored trace from annotations that another tool exported.

        Raises `UserError` if the annotations are invalid.
        """
        values = {
            "dataset": dataset,
            "id": trace.id,
            "digest": trace.digest,
            "chosen": "ordered",
            "steps": list(trace.steps),
            "answers": answers,
        }
        return validate(cls, values, "the row")

    @model_validator(mode="after")
    def _check(self) -> "ImportedTrace":
        for annotation in self.annotations:
            annotation.check_steps(len(self.steps))
        for decision in self.decisions:
            if decision.step >= len(self.steps):
                raise UserError(f"the step decided is {decision.step}, expected 0 to {len(self.steps) - 1}.")
            if decision.repaired is not None:
                check_repair(decision.step, decision.repaired, len(self.steps), is_wrong=decision.label == "neg")
        return self


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
    visible: dict[str, bool]
    of: Text | None


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
