"""Which traces of a dataset are meant: by gold, text, class, and what evaluators say."""

from dataclasses import dataclass
from typing import Literal, get_args, get_origin, get_type_hints

from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.core.label import Label
from stepsight.core.trace import check_text

Gold = Literal["any", "error", "clean", "missing"]
ErrorAt = Literal["any", "early", "middle", "late"]
ReadMode = Literal["offline", "online"]
VerdictFilter = Literal["any", "valid", "invalid", "redundant", "unjudged"]
Mistake = Literal["any", "missed", "false-alarm", "wrong-step", "right"]
Modes = Literal["any", "agree", "disagree"]
Relabelled = Literal["any", "yes", "no"]

_TEXT_LENGTH = 1000
_OF_EVALUATOR = ("verdict", "mistake", "modes", "against", "change", "cell")


@dataclass(frozen=True)
class TraceFilter:
    """The traces that meet every condition; each default stands for any.

    `gold`: `error`, the gold names a first error; `clean`, there is gold and it names none; `missing`, there is no
    gold. `text`: the problem or a sub-step contains it, whatever the case and the spaces around it. `group`: the
    class that the benchmark puts the trace in. `error_at`: the third of the solution in which the gold's first
    error stands (`core.metrics.position`); no trace without an error is in one.

    The others are about the judgments of `evaluator`, a database id, read in `mode`; a hindsight judgment answers
    for either mode, a stale one counts as none. `verdict` on the solution: `valid` or `invalid`; `redundant`,
    whichever of the two it is; `unjudged`, nothing was said of the solution. `mistake`, of the first step called
    wrong against the gold's first error: as in `core.metrics.first_error.Outcome`; no trace of which gold or
    evaluator say too little makes any. `modes`: whether the verdicts valid or invalid of both modes agree; both are
    needed. `against`: the database id of another evaluator whose verdict valid or invalid differs. `change`: the
    largest absolute retroactive change is at least this; only hindsight judgments have one. `cell`: a step whose
    gold label is the first is called the second by argmax. `relabelled`: a person gave labels.

    Raises `UserError` on another word or number, and on a text that cannot be searched for.
    """

    gold: Gold = "any"
    text: str = ""
    group: str = ""
    error_at: ErrorAt = "any"
    evaluator: int | None = None
    mode: ReadMode = "offline"
    verdict: VerdictFilter = "any"
    mistake: Mistake = "any"
    modes: Modes = "any"
    against: int | None = None
    change: float = 0.0
    relabelled: Relabelled = "any"
    cell: tuple[Label, Label] | None = None

    def __post_init__(self) -> None:
        for name, words in _WORDS.items():
            found = getattr(self, name)
            if found not in words:
                what = name.replace("_", " ")
                raise UserError(f"The {what} filter is {found!r:.40}.", f"Expected {', '.join(words)}.")
        if self.text.strip():
            check_text(self.text, "the text to search for")
        if len(self.text) > _TEXT_LENGTH:
            raise UserError("The text to search for is too long.", f"Use at most {_TEXT_LENGTH:,} characters.")
        if not 0 <= self.change <= 1:
            raise UserError(f"The change filter is {self.change:g}.", "Expected a number from 0 to 1.")

    @property
    def read_mode(self) -> Mode:
        return Mode(self.mode)

    def is_set(self, name: str) -> bool:
        """Whether a field has a value other than its default."""
        return bool(getattr(self, name) != self.__dataclass_fields__[name].default)

    def needing_evaluator(self) -> str | None:
        """The first condition on judgments, None where there is none."""
        return next((name for name in _OF_EVALUATOR if self.is_set(name)), None)


_WORDS: dict[str, tuple[str, ...]] = {
    name: get_args(hint) for name, hint in get_type_hints(TraceFilter).items() if get_origin(hint) is Literal
}
