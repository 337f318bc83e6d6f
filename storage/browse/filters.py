"""The filter of a dataset's traces: by gold, text, class, and evaluators' verdicts.

It is declared only here. The address of the Browse page, the query of the API, the options of `stepsight campaign
create` and the conditions stored with a campaign are all read by these models.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.core.label import LABEL_NAMES, Label
from stepsight.core.trace import check_text
from stepsight.core.validation import invalid
from stepsight.storage.browse.metadata import MetaCondition
from stepsight.storage.browse.verdict_columns import BINS, STEP_GOLD

LONGEST_TEXT = 1000
MOST_META = 8
"""The largest number of conditions on metadata."""
# A name and a value of the longest that are offered; in quotes a character may take six.
LONGEST_META = 3000
By = Literal["position", "validity", "redundancy", "change", "steps", "error"]
_ABOUT_EVALUATOR = ("verdict", "mistake", "modes", "against", "other_mistake", "change", "cell", "bin")
# The evaluators and the mode that conditions refer to; by themselves these are no conditions.
_READING = ("evaluator", "mode", "other")


def _check_searchable(text: str) -> str:
    try:
        return check_text(text, "the text to search for") if text.strip() else text
    except UserError as error:
        raise invalid(error.message, error.hint) from None


def _join_cell(cell: object) -> object:
    """Join a cell given as a list of two labels, as campaigns in stores of 0.1.0 may have it."""
    return "-".join(map(str, cell)) if isinstance(cell, list) else cell


def _check_cell(cell: str) -> str:
    gold, _, called = cell.partition("-")
    if cell and not {gold, called} <= set(LABEL_NAMES):
        raise invalid(f"{cell!r:.40} found, expected a gold label and the evaluator's, such as neg-pos.")
    return cell


def _check_bin(bin: str) -> str:
    kind, _, least = bin.partition("-")
    if bin and (kind not in STEP_GOLD or least not in _BINS):
        kinds = ", ".join(STEP_GOLD)
        raise invalid(f"{bin!r:.40} found, expected one of {kinds} and where the bin begins, such as wrong-0.35.")
    return bin


def _check_meta(written: str) -> str:
    try:
        return str(MetaCondition.read(written))
    except UserError as error:
        raise invalid(error.message, error.hint) from None


# The lower edge of each bin, as `bin` spells it.
_BINS = tuple(f"{place / BINS:.2f}" for place in range(BINS))
_Mistake = Literal["any", "missed", "false-alarm", "wrong-step", "wrong", "right"]


class Conditions(BaseModel):
    """The conditions on a trace, all of which it must meet; each default matches anything.

    `gold`: `error`, the gold names a first error; `clean`, there is gold and it names none; `redundant`, it calls a
    step redundant, whichever of the two it is; `missing`, there is no gold. `text`, in addresses `q`: the problem
    or a sub-step contains it, regardless of case and surrounding spaces. `group`: the benchmark's class of the
    trace. `meta`: conditions on fields of the trace's metadata, spelled as in
    `storage.browse.metadata.MetaCondition`. `error_at`: the third of the solution with the gold's first error
    (`core.metrics.table.Third`); a trace without an error is in none.

    The others are on the judgments of `evaluator` that stand in `mode`. `verdict` on the solution: `valid` or
    `invalid`; `redundant`, whichever of the two it is; `unjudged`, there is none. `mistake`, the first step called
    wrong against the gold's first error: as in `core.metrics.first_error.Outcome`; a trace with too little gold or
    verdict makes none, and `wrong` stands for every one but `right`. `other_mistake`: the same for the evaluator
    `other`. `modes`: whether the verdicts valid or invalid of the two modes agree; both are needed. `against`:
    another evaluator with a different verdict valid or invalid. `change`: the largest absolute retroactive change
    is at least this; only hindsight judgments have one. `cell`, such as `neg-pos`: a step with the first gold label
    is called the second by argmax. `bin`, such as `wrong-0.35`: a step of that gold (`STEP_GOLD`) has a validity in
    the bin that begins there. `relabelled`: a person gave labels.
    """

    model_config = ConfigDict(frozen=True, validate_by_name=True)

    gold: Literal["any", "error", "clean", "redundant", "missing"] = Field(
        default="any", description="What the gold says of the solution."
    )
    text: Annotated[str, AfterValidator(_check_searchable)] = Field(
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
    evaluator: Any = None
    mode: Literal["offline", "online"] = Field(default="offline", description="The mode of these judgments.")
    verdict: Literal["any", "valid", "invalid", "redundant", "unjudged"] = Field(
        default="any", description="What the evaluator says of the solution."
    )
    mistake: _Mistake = Field(
        default="any", description="Of the first step called wrong, against the gold's first error."
    )
    modes: Literal["any", "agree", "disagree"] = Field(
        default="any", description="Whether the verdicts of both modes agree."
    )
    against: Any = None
    other: Any = None
    other_mistake: _Mistake = Field(default="any", description="The same of the other evaluator.")
    change: float = Field(
        default=0, ge=0, le=1, allow_inf_nan=False, description="The least absolute retroactive change of any step."
    )
    cell: Annotated[str, BeforeValidator(_join_cell), AfterValidator(_check_cell)] = Field(
        default="", description="Gold label and the evaluator's, such as neg-pos, of any step."
    )
    bin: Annotated[str, AfterValidator(_check_bin)] = Field(
        default="", description="Gold and validity of any step, in steps of 0.05, such as wrong-0.35."
    )
    relabelled: Literal["any", "yes", "no"] = Field(default="any", description="Whether a person gave labels.")

    def is_set(self, name: str) -> bool:
        """True if a field has a value other than its default."""
        return bool(getattr(self, name) != type(self).model_fields[name].default)

    @property
    def active(self) -> tuple[str, ...]:
        """The names of the conditions that are set."""
        return tuple(name for name in Conditions.model_fields if name not in _READING and self.is_set(name))

    def without(self, *names: str) -> Self:
        """The same with the defaults for these fields."""
        return self.model_copy(update={name: type(self).model_fields[name].default for name in names})

    @property
    def on_metadata(self) -> tuple[MetaCondition, ...]:
        return tuple(map(MetaCondition.read, self.meta))

    def without_verdicts(self) -> Self:
        """The same without the conditions on an evaluator's verdicts."""
        return self.without(*_ABOUT_EVALUATOR, "other")

    def needing_evaluator(self) -> str | None:
        """The first condition on judgments, None if there is none."""
        return next((name for name in _ABOUT_EVALUATOR if self.is_set(name)), None)

    @property
    def read_mode(self) -> Mode:
        return Mode(self.mode)

    @property
    def labels(self) -> tuple[Label, Label] | None:
        """The gold label and the evaluator's that `cell` names."""
        if not self.cell:
            return None
        gold, called = (Label(LABEL_NAMES.index(name)) for name in self.cell.split("-"))
        return gold, called

    @property
    def bin_place(self) -> tuple[str, int]:
        """The gold of a step, and the index of the bin of its validity, that `bin` names."""
        kind, _, least = self.bin.partition("-")
        return kind, _BINS.index(least)


class TraceFilter(Conditions):
    """Conditions that name evaluators by their database ids, as the store needs them."""

    evaluator: int | None = None
    against: int | None = None
    other: int | None = None

    def stored(self) -> dict[str, Any]:
        """The conditions that are set, as JSON: stored with campaigns, and read by `model_validate`."""
        return self.model_dump(exclude_defaults=True)

    def pruned(self) -> "TraceFilter":
        """The same without an evaluator, if no condition is on its judgments."""
        return self if self.needing_evaluator() else self.without(*_READING)


class NamedFilter(Conditions):
    """Conditions that name evaluators as people do, "" for none."""

    evaluator: str = Field(
        default="", description="Whose judgments the following are about; else the first that judged."
    )
    against: str = Field(default="", description="Another evaluator, whose verdict differs.")
    other: str = Field(default="", description="Another evaluator, to compare with.")

    def with_ids(self, evaluator: int | None, against: int | None = None, other: int | None = None) -> TraceFilter:
        """The same conditions on the evaluators with these database ids."""
        values = {name: getattr(self, name) for name in Conditions.model_fields}
        return TraceFilter(**values | {"evaluator": evaluator, "against": against, "other": other})


@dataclass(frozen=True)
class Sort:
    """An order of traces, stable in file order, with those without a value last in either direction.

    `validity`, `redundancy` and `change` are those of the filter's evaluator in its mode, `error` is the step of
    the gold's first error. Raises `UserError` on an unknown one.
    """

    by: By = "position"
    descending: bool = False

    def __post_init__(self) -> None:
        if self.by not in get_args(By):
            raise UserError(f"The order is {self.by!r:.40}.", f"Expected {', '.join(get_args(By))}.")


ANY = TraceFilter()
FILE_ORDER = Sort()
