"""The settings of a campaign, the plan by which one is created, and the order of its traces, fixed at creation,
with its hidden gold items.

An option of campaigns is a field of `CampaignSettings`. It then is in the store, in the log of a campaign, on the
form for a new campaign if it has a title, and an option of `stepsight campaign create` if it has a description.
"""

import math
import random
from collections.abc import Collection, Iterator, Sequence
from enum import StrEnum
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, field_serializer, model_validator
from sqlalchemy import exists, func, select
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.core.trace import check_text, find_answer
from stepsight.core.validation import ListOf, Model, checked, invalid, validate
from stepsight.storage.browse.filters import ANY, TraceFilter
from stepsight.storage.database.schema import DatasetRow, JudgmentRow, StepRow, TraceRow, check_name
from stepsight.storage.database.store import IN_PARTS
from stepsight.storage.database.stored_json import DamagedError

ERROR_KINDS = (
    "calculation",
    "misreading",
    "wrong method",
    "unjustified",
    "contradiction",
    "missing case",
    "other",
)
"""The kinds of a campaign that names none."""

MOST_KINDS = 20
LONGEST_KIND = 40


def check_kind(kind: str) -> str:
    """Return `kind`, or raise `UserError` if it is not a short text on one line."""
    check_text(kind, "the kind of error")
    if not kind.strip() or kind != kind.strip() or not kind.isprintable() or len(kind) > LONGEST_KIND:
        raise UserError(
            f"The kind of error is {kind!r:.80}.", f"Use one line of at most {LONGEST_KIND} characters."
        )
    return kind


Kind = Annotated[str, checked(check_kind)]


def check_kinds(kinds: tuple[str, ...]) -> tuple[str, ...]:
    """Return `kinds`, or raise `UserError` if there are none or too many, or if two differ only in case."""
    if not 1 <= len(kinds) <= MOST_KINDS:
        raise UserError(f"There are {len(kinds)} kinds of error.", f"Name 1 to {MOST_KINDS}.")
    seen: set[str] = set()
    for kind in kinds:
        if kind.casefold() in seen:
            raise UserError(f"The kind of error {kind!r} is named twice.", "Name each once.")
        seen.add(kind.casefold())
    return kinds


MOST_OVERLAP = 50
LONGEST_GUIDELINE = 100_000
_LONGEST_LEASE = 7 * 24 * 3600
_BELOW = 2**31


class CampaignView(StrEnum):
    """The part of a trace that is visible during labelling: the whole trace, or one more step after each label."""

    WHOLE = "whole"
    STEPWISE = "stepwise"


class Shows(StrEnum):
    """The information shown beside the text before submission."""

    NOTHING = "nothing"
    SCORES = "scores"


class AfterSubmission(StrEnum):
    """The information shown beside a person's own labels after submission."""

    NOTHING = "nothing"
    GOLD = "gold"
    EVERYTHING = "everything"


class Ordering(StrEnum):
    """The order of the queue: that of the dataset, or a random one."""

    FILE = "file"
    RANDOM = "random"


def _check_names(conditions: object) -> object:
    """Refuse unknown conditions, which a filter would ignore, so that more traces would match."""
    if isinstance(conditions, dict):
        fields = TraceFilter.model_fields
        names = {*fields, *(field.validation_alias for field in fields.values())}
        if unknown := conditions.keys() - names:
            message = f"there is no condition {min(map(str, unknown))!r}."
            raise invalid(message, "Update StepSight, if a later version wrote it.")
    return conditions


def _option(default: Any, title: str | None, description: str | None, **options: Any) -> Any:
    """Return a field with a title on the form and a description on the command line. `words` of `more` are the
    choices on the form, by value; the other arguments are bounds."""
    words = options.pop("words", None)
    return Field(default, title=title, description=description, json_schema_extra={"words": words}, **options)


class CampaignSettings(Model):
    """The settings of a campaign, which are fixed when it is created.

    `conditions` selected the traces, of which `sample` were chosen at random, or all if it is None; `population` is
    the number of traces that met the conditions. If `after_error` is True, the steps after the first `neg` are
    labelled too. If `suggests` is True, traces start with labels suggested by the campaign's evaluator. If
    `shows_answer` is True, the reference answer is shown below the problem if the source has one. `lease` is the
    number of seconds for which a trace is held for an inactive person. The other fields are as their descriptions
    say.
    """

    conditions: Annotated[TraceFilter, BeforeValidator(_check_names)] = ANY
    overlap: int = _option(1, None, "people per trace", ge=1, le=MOST_OVERLAP)
    sample: int | None = _option(
        None, "Random sample of them", "so many of the traces, drawn by --seed (default: all)", ge=1, lt=_BELOW
    )
    population: int | None = None
    seed: int = _option(0, "Seed of all random choices", "seed of the random choices", ge=0, lt=_BELOW)
    view: CampaignView = _option(
        CampaignView.WHOLE,
        "View",
        "how much of a trace is in view",
        strict=False,
        words={"whole": "the whole trace", "stepwise": "step by step, the next one after each label"},
    )
    after_error: bool = _option(
        True, "Steps after the first error", None, words={"yes": "labelled too", "no": "not labelled"}
    )
    shows: Shows = _option(
        Shows.NOTHING,
        "Shown to annotators before they submit",
        None,
        strict=False,
        words={"nothing": "only the trace (blind)", "scores": "the scores of an evaluator, too"},
    )
    shows_equations: bool = _option(
        False,
        "Equations that fail",
        "mark equations that fail; the labels are then not blind",
        words={"no": "not marked", "yes": "marked in the steps (not blind)"},
    )
    suggests: bool = _option(
        False,
        "Labels at the beginning",
        "with --show-scores: begin with the labels that --evaluator suggests",
        words={"no": "none", "yes": "those that the evaluator suggests"},
    )
    shows_answer: bool = _option(
        True, "Reference answer", None, words={"yes": "below the problem, where there is one", "no": "not shown"}
    )
    after_submission: AfterSubmission = _option(
        AfterSubmission.NOTHING,
        "After submission",
        "what is shown of a trace once it is submitted",
        strict=False,
        words={
            "nothing": "nothing: the next trace",
            "gold": "gold",
            "everything": "gold, scores and others’ labels",
        },
    )
    ordering: Ordering = _option(
        Ordering.RANDOM,
        "Order",
        "the order of the queue",
        strict=False,
        words={"random": "random", "file": "file order"},
    )
    gold_rate: float = _option(
        0.0, "Hidden gold items, in %", "share of hidden gold items, 0 to 0.5", ge=0, le=0.5, allow_inf_nan=False
    )
    qualification_items: int = _option(
        0,
        "Qualification: gold items that each person labels first",
        "gold items that each person labels first, as a qualification",
        ge=0,
        le=50,
    )
    error_kinds: Annotated[ListOf[Kind], AfterValidator(check_kinds)] = _option(
        ERROR_KINDS, None, "a kind of error to choose from; may be repeated"
    )
    lease: int = Field(default=1800, ge=1, le=_LONGEST_LEASE)

    @field_serializer("conditions")
    def _dump_conditions(self, conditions: TraceFilter) -> dict[str, Any]:
        return conditions.model_dump(mode="json", exclude_defaults=True)

    @property
    def stepwise(self) -> bool:
        return self.view is CampaignView.STEPWISE

    @property
    def blind(self) -> bool:
        """True if neither scores nor marked equations are shown beside the text before submission."""
        return self.shows is Shows.NOTHING and not self.shows_equations

    @property
    def is_final(self) -> bool:
        """True if a submitted annotation cannot be changed, because gold or others' labels are shown beside it."""
        return self.after_submission is not AfterSubmission.NOTHING

    def columns(self) -> dict[str, Any]:
        """Return the values of the columns of `CampaignRow` that hold the settings."""
        settings = self.model_dump(mode="json", include=set(CampaignSettings.model_fields))
        return {"settings": settings, "blind": self.blind}


_S = TypeVar("_S", bound=CampaignSettings)


def read_settings(kind: type[_S], stored: dict[str, Any], **facts: Any) -> _S:
    """Return the settings in a row of `CampaignRow`, with other facts on the campaign, as an instance of `kind`.
    Raises `DamagedError` if they are not valid."""
    try:
        return validate(kind, stored | facts, "the value")
    except UserError as error:
        raise DamagedError(f"campaigns.settings: {error.message}") from None


def check_guideline(text: str) -> str:
    """Return the text of a guideline, or raise `UserError` if it is invalid."""
    check_text(text, "the guideline")
    if len(text) > LONGEST_GUIDELINE:
        raise UserError(
            f"The guideline has {len(text):,} characters.", f"Use at most {LONGEST_GUIDELINE:,} characters."
        )
    return text


class CampaignPlan(CampaignSettings):
    """The plan for a campaign of the traces in `dataset` that match `conditions`. `evaluator` is the database id of
    the evaluator whose scores are shown. Raises `UserError` if it is needed and missing."""

    name: Annotated[str, AfterValidator(lambda name: check_name(name, "the name of the campaign"))]
    dataset: str
    guideline: Annotated[str, AfterValidator(check_guideline)]
    evaluator: int | None = None
    gold_dataset: str | None = Field(
        None, description="where gold items come from (default: the rest of the dataset, or the gallery)"
    )

    @model_validator(mode="after")
    def _check(self) -> "CampaignPlan":
        if self.suggests and (self.shows is not Shows.SCORES or self.stepwise):
            raise UserError(
                "Labels can be suggested only where scores are shown and the whole trace is in view.",
                "Show the scores of the evaluator and the whole trace, or suggest nothing.",
            )
        if self.shows is Shows.SCORES and self.evaluator is None:
            raise UserError(
                "The campaign shows scores, but names no evaluator.", "Choose the one whose scores are shown."
            )
        return self


ORDERED, RANDOM, GOLD = "ordered", "random", "gold"
"""The way an item of a campaign was chosen: see `ItemRow`."""

GALLERY = "gallery"
"""The dataset of the shipped traces."""

# Gold items beyond those that one person needs.
_SPARE = 10


Place = tuple[int, str]
"""A place of the queue: the id of its trace, and how that was chosen, `ORDERED`, `RANDOM` or `GOLD`."""


def arrange(ids: Sequence[int], plan: CampaignPlan) -> list[Place]:
    """Sort the traces `ids`, given in file order, by the plan's `ordering`."""
    if plan.ordering == Ordering.FILE:
        return [(id, ORDERED) for id in ids]
    return [(id, RANDOM) for id in random.Random(plan.seed).sample(ids, len(ids))]


def draw_gold(session: Session, plan: CampaignPlan, ids: Sequence[int]) -> list[int]:
    """Choose hidden gold items at random for a campaign of the traces `ids`. With a gold rate of 0 and no
    qualification, choose none.

    The number of gold items suffices for the qualification and for one person who labels the whole queue, with a
    few to spare. No gold item has the same text as a trace in the queue. If the campaign shows reference answers or
    scores and all of its traces have them, or none does, then so do all gold items, or none, so that annotators
    cannot recognise them. Raises `UserError` if there are too few suitable traces.
    """
    least = max(plan.qualification_items, int(plan.gold_rate > 0))
    if not least:
        return []
    rng = random.Random(f"gold {plan.seed}")
    of_dataset = select(TraceRow.id, TraceRow.text_digest).join(DatasetRow, DatasetRow.id == TraceRow.dataset_id)
    chosen = set(ids)
    rows = session.execute(of_dataset.where(DatasetRow.name == plan.dataset))
    used = {text for id, text in rows if id in chosen}
    most = plan.qualification_items + math.ceil(len(ids) * plan.gold_rate / (1 - plan.gold_rate)) + _SPARE
    sources = (plan.gold_dataset,) if plan.gold_dataset is not None else (plan.dataset, GALLERY)
    for name in sources:
        others = [id for id, text in _with_full_gold(session, name) if text not in used]
        for having in _groups_by_shown(session, plan):
            others = _keep_unremarkable(others, ids, having)
        if len(others) >= least:
            return rng.sample(others, min(most, len(others)))
    shortage = (
        f"fewer than {least} traces outside the campaign have" if least > 1 else "no trace outside the campaign has"
    )
    advice = "Draw a sample of the traces (--sample), name" if plan.gold_dataset is None else "Name"
    raise UserError(
        f"{' and '.join(sources)}: {shortage} gold for everything that is labelled.",
        f"{advice} another dataset for the gold items, or ask for none. Gold items need answers and scores"
        " where the other items have them and the campaign shows them.",
    )


def _with_full_gold(session: Session, dataset: str) -> list[tuple[int, str]]:
    """Return (id, text digest) for each trace with gold labels on all steps up to and including the first error. If
    the trace has no error, all of its steps must have gold labels."""
    last = func.coalesce(TraceRow.first_error, TraceRow.n_steps)
    silent = exists().where(StepRow.trace_id == TraceRow.id, StepRow.position <= last, StepRow.valid.is_(None))
    complete = (
        select(TraceRow.id, TraceRow.text_digest)
        .join(DatasetRow, DatasetRow.id == TraceRow.dataset_id)
        .where(DatasetRow.name == dataset, TraceRow.has_gold, ~silent)
        .order_by(TraceRow.position)
    )
    return [(id, text) for id, text in session.execute(complete)]


def _groups_by_shown(session: Session, plan: CampaignPlan) -> Iterator[set[int]]:
    """Yield a set of trace ids for the reference answer and for the evaluator's scores, if the campaign shows them.
    The sets hold the traces with a reference answer and those with a judgment by the campaign's evaluator."""
    if plan.shows_answer:
        metas = session.execute(select(TraceRow.id, TraceRow.meta), execution_options=IN_PARTS)
        yield {id for id, meta in metas if find_answer(meta) is not None}
    if plan.shows == Shows.SCORES:
        judged = select(JudgmentRow.trace_id).join(TraceRow, TraceRow.id == JudgmentRow.trace_id)
        judged = judged.where(JudgmentRow.evaluator_id == plan.evaluator, JudgmentRow.digest == TraceRow.digest)
        yield set(session.scalars(judged.distinct()))


def _keep_unremarkable(others: Sequence[int], ids: Sequence[int], having: Collection[int]) -> list[int]:
    """Keep those of the traces `others` that do not stand out among the traces `ids` by being in `having`, or by
    not being in it.

    If all of `ids` are in `having`, only members are kept. If none of `ids` is, only non-members are kept.
    Otherwise, all are kept.
    """
    memberships = {id in having for id in ids}
    return [id for id in others if (id in having) in memberships]
