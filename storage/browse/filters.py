"""Filters that select traces by gold labels, text, class, metadata and evaluators' verdicts.

The filter fields are declared only here. The URL of the Browse page, the query of the API, the options of
`stepsight campaign create` and the conditions stored with a campaign are all parsed with these models.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.core.trace import LABEL_NAMES, Label, check_text
from stepsight.core.validation import checked, invalid
from stepsight.storage.browse.columns import BINS, SOLUTION_GOLD, STEP_GOLD
from stepsight.storage.browse.metadata import MetaCondition

LONGEST_TEXT = 1000
MOST_META = 8
"""The largest number of conditions on metadata."""
# The longest name and value that are offered; in quotes, a character may take six.
LONGEST_META = 3000
By = Literal["position", "validity", "redundancy", "change", "steps", "error", "doubt"]
_ABOUT_EVALUATOR = ("verdict", "mistake", "modes", "against", "other_mistake", "change", "cell", "bin")
OF_DATASET = (*_ABOUT_EVALUATOR, "evaluator", "other", "errors", "group", "meta")
"""The parts of a filter that mean something else on another dataset."""
# The evaluators, the mode and the kind of error that conditions refer to; these are not conditions themselves.
_READING = ("evaluator", "mode", "other", "errors")


def _check_cell(cell: str) -> str:
    gold, _, predicted = cell.partition("-")
    if cell and not {gold, predicted} <= set(LABEL_NAMES):
        raise invalid(f"{cell!r:.40} found, expected a gold label and the evaluator's, such as neg-pos.")
    return cell


def _check_bin(bin: str) -> str:
    kind, _, least = bin.partition("-")
    if bin and (kind not in STEP_GOLD + SOLUTION_GOLD or least not in _BINS):
        kinds = ", ".join(STEP_GOLD + SOLUTION_GOLD)
        raise invalid(f"{bin!r:.40} found, expected one of {kinds} and the start of a bin, such as wrong-0.35.")
    return bin


def _check_length(length: str) -> str:
    least, _, most = length.partition("-")
    if not length or (_LENGTH.fullmatch(length) and (not most or int(least) <= int(most))):
        return length
    raise invalid(f"{length!r:.40} found, expected a number of steps, or a range such as 4-6.")


def _check_meta(written: str) -> str:
    try:
        return str(MetaCondition.read(written))
    except UserError as error:
        raise invalid(error.message, error.hint) from None


_LENGTH = re.compile(r"[0-9]{1,9}(-[0-9]{1,9})?")
# The lower edge of each bin, as `bin` spells it.
_BINS = tuple(f"{place / BINS:.2f}" for place in range(BINS))
_Mistake = Literal["any", "missed", "false-alarm", "wrong-step", "wrong", "right"]


class Conditions(BaseModel):
    """The conditions on a trace. A trace must meet all of them; the defaults match every trace. What the
    descriptions of the fields leave open:

    - `gold`: `error` if a gold label marks a first error; `clean` if there are gold labels but no error;
      `redundant` if a gold label calls a step redundant, with or without an error; `not-redundant` if every
      step has a gold label and none is redundant; `missing` if there are no gold labels.
    - `text` (`q` in URLs): case and surrounding spaces are ignored.
    - `meta`: each as in `storage.browse.metadata.MetaCondition`.
    - `error_at`: one of `core.metrics.table.Third`. A trace without an error is in no third.

    Of the standing judgment of `evaluator` in `mode`:

    - `verdict`: `redundant` matches valid and invalid solutions; `unjudged` means that there is no verdict.
    - `errors`: one of `core.metrics.reasoneval.Errors`.
    - `mistake`: how the first step called wrong compares with the first gold error or, of redundant errors, how
      the verdict on the solution compares with gold, as in `core.metrics.first_error.Outcome`. `wrong` stands
      for every outcome but `right`. A trace has no outcome if its gold labels or verdicts are incomplete.
    - `modes`: both verdicts on the solution must exist.
    - `against`: one of the two must call the solution valid and the other invalid.
    - `change`: only hindsight judgments have one.
    - `cell`: the evaluator's label is by argmax.
    - `bin`, such as `wrong-0.35`: the trace has a step with this kind of gold label (`STEP_GOLD`) whose
      validity is in the bin that begins at this number. For the kinds of `SOLUTION_GOLD`, as in `with-0.35`,
      the gold and the redundancy of the solution are meant.
    """

    model_config = ConfigDict(frozen=True, validate_by_name=True)

    gold: Literal["any", "error", "clean", "redundant", "not-redundant", "missing"] = Field(
        default="any", description="What the gold says about the solution."
    )
    text: Annotated[
        str, AfterValidator(str.strip), checked(lambda text: text and check_text(text, "the text to search for"))
    ] = Field(
        default="",
        validation_alias="q",
        serialization_alias="q",
        max_length=LONGEST_TEXT,
        description="Text of the problem or a step.",
    )
    group: str = Field(default="", description="The benchmark's class of the trace.")
    meta: Annotated[
        tuple[Annotated[str, Field(max_length=LONGEST_META), AfterValidator(_check_meta)], ...],
        AfterValidator(lambda conditions: tuple(dict.fromkeys(conditions))),
    ] = Field(
        default=(),
        max_length=MOST_META,
        description="On metadata: source=MATH, title~triangle (contains), level>=3 or level<=4; may be repeated.",
    )
    error_at: Literal["any", "early", "middle", "late"] = Field(
        default="any", description="The third of the solution in which the gold's first error is."
    )
    length: Annotated[str, AfterValidator(_check_length)] = Field(
        default="", description="The number of steps, such as 4, or the smallest and the largest, such as 4-6."
    )
    evaluator: Any = None
    mode: Literal["offline", "online"] = Field(default="offline", description="The mode of these judgments.")
    verdict: Literal["any", "valid", "invalid", "redundant", "unjudged"] = Field(
        default="any", description="What the evaluator says about the solution."
    )
    errors: Literal["", "invalid", "redundant"] = Field(
        default="", description="The kind of error that outcomes concern; by default the first in the gold."
    )
    mistake: _Mistake = Field(
        default="any", description="The outcome: the first step called wrong, compared with the gold's first error."
    )
    modes: Literal["any", "agree", "disagree"] = Field(
        default="any", description="Whether the verdicts of both modes agree."
    )
    against: Any = None
    other: Any = None
    other_mistake: _Mistake = Field(default="any", description="The same for the other evaluator.")
    change: float = Field(
        default=0, ge=0, le=1, allow_inf_nan=False, description="The least absolute retroactive change of a step."
    )
    cell: Annotated[str, AfterValidator(_check_cell)] = Field(
        default="", description="Gold label and the evaluator's, such as neg-pos, of any step."
    )
    bin: Annotated[str, AfterValidator(_check_bin)] = Field(
        default="", description="Gold and validity of any step, in steps of 0.05, such as wrong-0.35."
    )

    def is_set(self, name: str) -> bool:
        """True if the field `name` differs from its default."""
        return bool(getattr(self, name) != type(self).model_fields[name].default)

    @property
    def active(self) -> tuple[str, ...]:
        """The names of the conditions that are set."""
        return tuple(name for name in Conditions.model_fields if name not in _READING and self.is_set(name))

    def without(self, *names: str) -> Self:
        """Return a copy in which the named fields are reset to their defaults."""
        return self.model_copy(update={name: type(self).model_fields[name].default for name in names})

    @property
    def on_metadata(self) -> tuple[MetaCondition, ...]:
        return tuple(map(MetaCondition.read, self.meta))

    def without_verdicts(self) -> Self:
        """Return a copy without the conditions on evaluators' verdicts."""
        return self.without(*_ABOUT_EVALUATOR, "other")

    def needing_evaluator(self) -> str | None:
        """Return the name of the first condition that needs an evaluator and is set, or None if there is none."""
        return next((name for name in _ABOUT_EVALUATOR if self.is_set(name)), None)

    @property
    def read_mode(self) -> Mode:
        return Mode(self.mode)

    @property
    def labels(self) -> tuple[Label, Label] | None:
        """The gold label and the evaluator's label that `cell` stands for, or None if `cell` is not set."""
        if not self.cell:
            return None
        gold, predicted = (Label(LABEL_NAMES.index(name)) for name in self.cell.split("-"))
        return gold, predicted

    @property
    def lengths(self) -> tuple[int, int]:
        """The smallest and the largest number of steps that `length` stands for."""
        least, _, most = self.length.partition("-")
        return int(least), int(most or least)

    @property
    def bin_place(self) -> tuple[str, int]:
        """The kind of gold label and the index of the validity bin that `bin` stands for."""
        kind, _, least = self.bin.partition("-")
        return kind, _BINS.index(least)


class TraceFilter(Conditions):
    """Conditions that refer to evaluators by database id, as the store needs them."""

    evaluator: int | None = None
    against: int | None = None
    other: int | None = None

    def stored(self) -> dict[str, Any]:
        """Return the conditions that are set, in JSON form, for storing with a campaign. `model_validate` reads
        them back."""
        return self.model_dump(exclude_defaults=True)

    def pruned(self) -> "TraceFilter":
        """Return the filter without its evaluator and mode if no condition depends on the evaluator."""
        return self if self.needing_evaluator() else self.without(*_READING)


class NamedFilter(Conditions):
    """Conditions that refer to evaluators by name, as users do. An empty name stands for no evaluator."""

    evaluator: str = Field(
        default="", description="The evaluator of the following conditions; by default the first that judged."
    )
    against: str = Field(default="", description="Another evaluator, whose verdict must differ.")
    other: str = Field(default="", description="Another evaluator, to compare with.")

    def with_ids(self, evaluator: int | None, against: int | None = None, other: int | None = None) -> TraceFilter:
        """Return the same conditions with the evaluators' names replaced by their database ids."""
        values = {name: getattr(self, name) for name in Conditions.model_fields}
        return TraceFilter(**values | {"evaluator": evaluator, "against": against, "other": other})


@dataclass(frozen=True)
class Sort:
    """A sort order for traces. Ties stay in file order, and traces without a value come last in both directions.

    `validity`, `redundancy` and `change` are taken from the filter's evaluator in the filter's mode. `error` sorts
    by the position of the first gold error. `doubt` is the order of the database ids in `ranked`. Raises
    `UserError` if the order is unknown.
    """

    by: By = "position"
    descending: bool = False
    ranked: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.by not in get_args(By):
            raise UserError(f"The order is {self.by!r:.40}.", f"Expected {', '.join(get_args(By))}.")


ANY = TraceFilter()
FILE_ORDER = Sort()
