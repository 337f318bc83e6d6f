"""Plans for campaigns, and checks on them."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from stepsight.core.errors import UserError
from stepsight.core.trace import check_text
from stepsight.storage.browse.filters import ANY, TraceFilter
from stepsight.storage.database.schema import check_name
from stepsight.storage.labelling.error_kinds import ERROR_KINDS, check_kinds

MOST_OVERLAP = 50
MOST_QUALIFICATION = 50
LONGEST_LEASE = 7 * 24 * 3600
LONGEST_GUIDELINE = 100_000
MOST_SAMPLE = 2**31 - 1
_SEEDS = 2**31


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
    """The order of the queue, as described in `storage.labelling.ordering`."""

    FILE = "file"
    RANDOM = "random"
    DISAGREEMENT = "disagreement"
    CHANGE = "change"


_WORDS: dict[str, type[StrEnum]] = {
    "view": CampaignView,
    "shows": Shows,
    "ordering": Ordering,
    "after_submission": AfterSubmission,
}


@dataclass(frozen=True)
class CampaignPlan:
    """The plan for a campaign of the traces in `dataset` that match `where`.

    If `after_error` is True, the steps after the first `neg` are labelled too. `evaluator` is the database id of
    the evaluator whose scores are shown and whose retroactive changes order the queue. `lease` is the number of
    seconds for which a trace is held for an inactive person. If `shows_answer` is True, the reference answer is
    shown below the problem if the source has one. The annotations of the other fields describe them, and are also
    the help texts of the command line.
    """

    name: str
    dataset: str
    guideline: str
    where: TraceFilter = ANY
    overlap: Annotated[int, "people per trace"] = 1
    after_error: bool = True
    view: Annotated[CampaignView, "how much of a trace is in view"] = CampaignView.WHOLE
    shows: Shows = Shows.NOTHING
    evaluator: int | None = None
    ordering: Annotated[Ordering, "disagreement of the evaluators or largest change of --evaluator first"] = (
        Ordering.RANDOM
    )
    random_share: Annotated[float, "share of places filled at random in an order by disagreement or change"] = 0.2
    gold_rate: Annotated[float, "share of hidden gold items, 0 to 0.5"] = 0.0
    gold_dataset: Annotated[
        str | None, "where they come from (default: the rest of the dataset, or the gallery)"
    ] = None
    lease: int = 1800
    seed: Annotated[int, "seed of the random choices"] = 0
    sample: Annotated[int | None, "so many of the traces, drawn by --seed (default: all)"] = None
    error_kinds: Annotated[tuple[str, ...], "a kind of error to choose from; may be repeated"] = ERROR_KINDS
    shows_answer: bool = True
    after_submission: Annotated[AfterSubmission, "what is shown of a trace once it is submitted"] = (
        AfterSubmission.NOTHING
    )
    suggests: Annotated[bool, "with --show-scores: begin with the labels that --evaluator suggests"] = False
    shows_equations: Annotated[bool, "mark equations that fail; the labels are then not blind"] = False
    qualification_items: Annotated[int, "gold items that each person labels first, as a qualification"] = 0


def check_plan(plan: CampaignPlan) -> None:
    """Raise `UserError` if a value is invalid or a required evaluator is missing."""
    check_name(plan.name, "the name of the campaign")
    check_guideline(plan.guideline)
    check_kinds(plan.error_kinds)
    for name, kind in _WORDS.items():
        _check_word(kind, getattr(plan, name), name.replace("_", " "))
    _check_whole(plan.overlap, 1, MOST_OVERLAP, "The overlap")
    _check_whole(plan.lease, 1, LONGEST_LEASE, "The lease in seconds")
    _check_whole(plan.seed, 0, _SEEDS - 1, "The seed")
    _check_share(plan.random_share, 1.0, "The random share")
    _check_share(plan.gold_rate, 0.5, "The rate of gold items")
    _check_whole(plan.qualification_items, 0, MOST_QUALIFICATION, "The number of qualification items")
    if plan.sample is not None:
        _check_whole(plan.sample, 1, MOST_SAMPLE, "The sample")
    if plan.suggests and (plan.shows != Shows.SCORES or plan.view != CampaignView.WHOLE):
        raise UserError(
            "Labels can be suggested only where scores are shown and the whole trace is in view.",
            "Show the scores of the evaluator and the whole trace, or suggest nothing.",
        )
    if plan.evaluator is None:
        _check_needless(plan)


def check_guideline(text: str) -> str:
    """Return the text of a guideline, or raise `UserError` if it is invalid."""
    check_text(text, "the guideline")
    if len(text) > LONGEST_GUIDELINE:
        raise UserError(
            f"The guideline has {len(text):,} characters.", f"Use at most {LONGEST_GUIDELINE:,} characters."
        )
    return text


def _check_needless(plan: CampaignPlan) -> None:
    if plan.shows == Shows.SCORES:
        raise UserError(
            "The campaign shows scores, but names no evaluator.", "Choose the one whose scores are shown."
        )
    if plan.ordering == Ordering.CHANGE:
        raise UserError("The order is by change, but no evaluator is named.", "Choose the one whose changes count.")


def _check_word(kind: type[StrEnum], word: str, what: str) -> None:
    if word not in list(kind):
        raise UserError(f"The {what} is {word!r:.40}.", f"Expected {', '.join(kind)}.")


def _check_whole(number: int, least: int, most: int, what: str) -> None:
    if not least <= number <= most:
        raise UserError(f"{what} is {number:,}.", f"Expected {least:,} to {most:,}.")


def _check_share(share: float, most: float, what: str) -> None:
    # Written so that NaN is refused as well.
    if not 0 <= share <= most:
        raise UserError(f"{what} is {share:g}.", f"Expected a number from 0 to {most:g}.")
