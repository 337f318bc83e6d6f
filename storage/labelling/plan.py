"""The plan of a campaign, and its checks."""

from dataclasses import dataclass
from enum import StrEnum

from stepsight.core.errors import UserError
from stepsight.core.trace import check_text
from stepsight.storage.browse.filters import ANY, TraceFilter
from stepsight.storage.database.schema import check_name
from stepsight.storage.labelling.error_kinds import ERROR_KINDS, check_kinds
from stepsight.storage.people.exposures import EQUATIONS, SCORES

MOST_OVERLAP = 50
LONGEST_LEASE = 7 * 24 * 3600
LONGEST_GUIDELINE = 100_000
MOST_SAMPLE = 2**31 - 1
_SEEDS = 2**31


class CampaignView(StrEnum):
    """The part of a trace that is visible during labelling: all of it, or one more step after each label."""

    WHOLE = "whole"
    STEPWISE = "stepwise"


class Shows(StrEnum):
    """The information shown beside the text before submission."""

    NOTHING = "nothing"
    SCORES = "scores"


class AfterSubmission(StrEnum):
    """The information shown beside a person's own labels after they have submitted a trace."""

    NOTHING = "nothing"
    GOLD = "gold"
    EVERYTHING = "everything"


class Ordering(StrEnum):
    """The order of the queue: see `storage.labelling.ordering`."""

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
    """A campaign to be created from the traces of `dataset` that match `where`.

    `overlap` people label each trace; with `after_error` they also label the steps after the first `neg`. The
    scores of `evaluator`, a database id, are shown, and its changes order the queue. If the queue is ordered by
    disagreement or change, `random_share` of its places are filled at random. Of the traces that a person gets,
    `gold_rate` are hidden gold items from `gold_dataset`; None stands for the rest of the dataset or, if that has
    none, the gallery. `lease` is the time in seconds for which a trace is held for a person without an event of
    theirs.

    With `sample`, this many of the matching traces are drawn at random. `error_kinds` are the possible faults of a
    step. With `shows_answer`, the reference answer stands below the problem, if the source has one.
    `after_submission` says what is visible then. `seed` governs everything that is drawn. If the campaign
    `suggests`, a trace starts with the labels of the evaluator whose scores are shown. If it `shows_equations`,
    failing ones are marked in the steps; as with scores, its labels are then not blind.
    """

    name: str
    dataset: str
    guideline: str
    where: TraceFilter = ANY
    overlap: int = 1
    after_error: bool = True
    view: CampaignView = CampaignView.WHOLE
    shows: Shows = Shows.NOTHING
    evaluator: int | None = None
    ordering: Ordering = Ordering.RANDOM
    random_share: float = 0.2
    gold_rate: float = 0.0
    gold_dataset: str | None = None
    lease: int = 1800
    seed: int = 0
    sample: int | None = None
    error_kinds: tuple[str, ...] = ERROR_KINDS
    shows_answer: bool = True
    after_submission: AfterSubmission = AfterSubmission.EVERYTHING
    suggests: bool = False
    shows_equations: bool = False


def check_plan(plan: CampaignPlan) -> None:
    """Raises `UserError` if a value is invalid, or a required evaluator is missing."""
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
    if plan.sample is not None:
        _check_whole(plan.sample, 1, MOST_SAMPLE, "The sample")
    if plan.suggests and (plan.shows != Shows.SCORES or plan.view != CampaignView.WHOLE):
        raise UserError(
            "Labels can be suggested only where scores are shown and the whole trace is in view.",
            "Show the scores of the evaluator and the whole trace, or suggest nothing.",
        )
    if plan.evaluator is None:
        _check_needless(plan)


def shown_beside(shows: str, shows_equations: bool) -> frozenset[str]:
    """The members of `storage.people.exposures.WHAT` that annotators see beside the text before they submit."""
    shown = {SCORES: shows == Shows.SCORES, EQUATIONS: shows_equations}
    return frozenset(what for what, is_shown in shown.items() if is_shown)


def check_guideline(text: str) -> str:
    """Return the text of a guideline. Raises `UserError` if it is not valid."""
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
        raise UserError(
            "The queue goes by change, but no evaluator is named.", "Choose the one whose changes count."
        )


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
