"""A solution entered on the Score page, and its permalink."""

import base64
import binascii
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from stepsight.app.score.comparison import StepMatches
from stepsight.core.errors import AddressError, UserError
from stepsight.core.files.whole_files import parse_json
from stepsight.core.scores import Thresholds
from stepsight.core.text.split import Split, split_solution
from stepsight.core.trace import Trace

# Servers and browsers refuse much longer addresses.
_LONGEST = 16_000
_LONGEST_TEXT = 1_000_000
_MOST_STEPS = 1_000
LONGEST_ENTRY = 300_000
"""The largest number of characters in an entry: with three bytes each, a request stays below `LARGEST_BODY`."""
_VERSION = 1

Steps = tuple[tuple[str, ...], ...]
"""The sub-steps of each step."""

# The version, the problem, the steps, the text of the solution, the evaluators and the thresholds.
_LINK = TypeAdapter(
    tuple[Literal[1], str, tuple[str | tuple[str, ...], ...], str | None, tuple[str, ...], float, float]
)


@dataclass(frozen=True)
class SolutionText:
    """The text in the solution's input box, the steps that it is split into, and the parts that are not steps. The
    first `thinking` steps are those of the thinking before the solution, if the user wants it judged."""

    text: str
    steps: Steps
    set_aside: tuple[str, ...] = ()
    thinking: int = 0

    @classmethod
    def typed(cls, text: str, *, judges_thinking: bool = False) -> "SolutionText":
        """Split a text that a user typed. Raises `UserError` if the text is too long, or is a list that contains
        anything but texts."""
        _check_length(text)
        split = split_solution(text, judges_thinking=judges_thinking)
        return cls(text, as_steps(split.steps), split.set_aside, split.thinking)

    @classmethod
    def written(cls, steps: Steps) -> "SolutionText":
        """Compose a text that splits into the given steps. The text is a numbered list, paragraphs or a JSON list,
        whichever works first."""
        texts = tuple(parts[0] for parts in steps if len(parts) == 1)
        if len(texts) == len(steps):
            numbered = "\n".join(f"{number}. {text}" for number, text in enumerate(texts, start=1))
            for text in (numbered, "\n\n".join(texts)):
                if split_solution(text) == Split(texts):
                    return cls(text, steps)
        return cls(json.dumps(plain_steps(steps), ensure_ascii=False, indent=1), steps)


@dataclass(frozen=True)
class EarlierSolution:
    """The solution to compare with, the token of its permalink, and the matches of its sub-steps with those of the
    new solution."""

    trace: Trace
    matches: StepMatches
    token: str


@dataclass(frozen=True)
class Entered:
    """A solution to score, with everything that the result depends on.

    `text` is the text that was split into the steps, or None if the steps were given directly. `before` holds the
    permalink tokens of results to compare with. The first `thinking` steps are thinking before the solution; a
    permalink does not say so, but its text does. `every` is True if the user has asked for every prefix of a long
    solution.
    """

    problem: str = ""
    steps: Steps = ()
    text: str | None = None
    evaluators: tuple[str, ...] = ()
    thresholds: Thresholds = field(default_factory=Thresholds)
    before: tuple[str, ...] = ()
    thinking: int = 0
    every: bool = False

    @classmethod
    def of(cls, trace: Trace, evaluators: Sequence[str] = (), thresholds: Thresholds | None = None) -> "Entered":
        """Treat a trace as if a user had entered it. Its gold labels are dropped."""
        return cls(trace.problem, steps_of(trace), None, tuple(evaluators), thresholds or Thresholds())

    @cached_property
    def trace(self) -> Trace:
        """The trace to score. Raises `UserError` if a part is missing or too long."""
        if not self.problem.strip():
            raise UserError("The problem is empty.", "Enter the problem, then score again.")
        if not self.steps:
            raise UserError("There are no steps.", "Paste a solution, then score again.")
        substeps = [part for step in self.steps for part in step]
        _check_length(self.problem, self.text or "")
        _check_length(self.problem, *substeps)
        check_steps(self.steps)
        return Trace.of(self.problem.strip(), self.steps)

    @property
    def saved_trace(self) -> Trace:
        """The trace to save: with the thinking before the solution in its metadata if it was set aside, or its
        number of steps if it is judged. Evaluators read neither."""
        solution = self.solution_text()
        return replace(self.trace, meta=Split((), solution.set_aside, solution.thinking).meta)

    @cached_property
    def earlier(self) -> EarlierSolution | None:
        """The solution to compare with: the first in `before` that differs from this one, or None if this solution
        is not an edit of it. Raises `UserError` if this solution cannot be scored."""
        for token in self.before:
            try:
                trace = Entered.from_token(token).trace
            except UserError:
                return None
            if (trace.problem, trace.substeps) != (self.trace.problem, self.trace.substeps):
                matches = StepMatches.of(trace.substeps, self.trace.substeps)
                return EarlierSolution(trace, matches, token) if matches.is_edit else None
        return None

    @property
    def chosen(self) -> list[str]:
        """The evaluators without duplicates. Raises `UserError` if there is none."""
        if not self.evaluators:
            raise UserError("No evaluator is chosen.", "Choose one or more, then score again.")
        return list(dict.fromkeys(self.evaluators))

    @property
    def traces(self) -> list[Trace]:
        """The trace to score and, if there is one, the trace to compare it with. The list is empty if the solution
        cannot be scored."""
        with suppress(UserError):
            return [self.trace, *([self.earlier.trace] if self.earlier else [])]
        return []

    def solution_text(self) -> SolutionText:
        """Return the text for the input box. The typed text is kept if it still splits into the same steps.
        Otherwise, a text is composed from the steps."""
        for judges_thinking in (False, True) if self.text is not None else ():
            with suppress(UserError):
                typed = SolutionText.typed(self.text or "", judges_thinking=judges_thinking)
                if typed.steps == self.steps:
                    return typed
        return SolutionText.written(self.steps)

    def token(self, evaluators: Sequence[str] | None = None) -> str | None:
        """Return the token of the permalink. If `evaluators` is given, it replaces the evaluators. Returns None if
        the token would be too long for a URL."""
        names = self.evaluators if evaluators is None else evaluators
        at = self.thresholds
        values = [_VERSION, self.problem, plain_steps(self.steps), self.text, names, at.validity, at.redundancy]
        packed = zlib.compress(json.dumps(values, ensure_ascii=False).encode(), 9)
        token = base64.urlsafe_b64encode(packed).decode().rstrip("=")
        return token if len(token) <= _LONGEST else None

    @classmethod
    def from_token(cls, token: str) -> "Entered":
        """Decode a permalink's token; the inverse of `token`. Raises `AddressError` if the token was truncated or
        changed, or comes from a different version of StepSight."""
        try:
            packed = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
            values = parse_json(zlib.decompressobj().decompress(packed, _LONGEST_TEXT).decode())
            if not isinstance(values, list):
                raise TypeError("no list")
            if values[0] != _VERSION:
                raise AddressError("This link is from another version of StepSight.", "Paste the solution instead.")
            _, problem, steps, text, evaluators, validity, redundancy = _LINK.validate_python(values)
        except (binascii.Error, zlib.error, ValueError, TypeError, LookupError, OverflowError):
            raise AddressError(
                "This link is incomplete or was changed.", "Ask for it again, or paste the solution."
            ) from None
        if not (0 <= validity <= 1 and 0 <= redundancy <= 1):
            raise AddressError("This link has a threshold outside 0 to 1.", "Paste the solution instead.")
        return cls(problem, as_steps(steps), text, evaluators, Thresholds(validity, redundancy))

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> "Entered":
        """Return the solution stored in the query's permalink `s`. `before` is the permalink of the solution to
        compare it with. Raises `AddressError` if `s` is invalid."""
        before = query.get("before")
        return replace(cls.from_token(query.get("s", "")), before=(before,) if before else ())


class PageState(BaseModel):
    """The state of the page as its script sends it: the entered solution and the displayed result.

    `steps` replaces the text if a step was edited and the text has not been updated yet. `before` is the permalink
    of the result to compare with. `earlier` is the permalink that the displayed result was itself compared with.
    `token` belongs to the displayed result. `dataset` is the name of the dataset to save the result in; None stands
    for `SAVED`. If `thinking` is True, thinking before the solution is judged too, and if `every` is True, every
    prefix of a long solution. `run` is a key that the page has chosen, under which the scores are read while they
    are computed.
    """

    model_config = ConfigDict(frozen=True)

    problem: str = ""
    solution: str = ""
    steps: Steps | None = None
    evaluators: tuple[str, ...] = ()
    validity: float = Field(Thresholds.validity, ge=0, le=1)
    redundancy: float = Field(Thresholds.redundancy, ge=0, le=1)
    before: str = ""
    earlier: str = ""
    token: str = ""
    dataset: str | None = None
    thinking: bool = False
    every: bool = False
    run: str = Field("", max_length=40)

    def solution_text(self) -> SolutionText:
        """Return the text for the input box. Raises `UserError` if the text is a list that contains anything
        but texts."""
        if self.steps is not None:
            return SolutionText.written(self.steps)
        return SolutionText.typed(self.solution, judges_thinking=self.thinking)

    def entered(self, solution: SolutionText) -> Entered:
        """Return the solution to score, with everything that its result depends on. If the same solution is scored
        again, it is still compared with `earlier`."""
        return Entered(
            self.problem,
            solution.steps,
            solution.text,
            self.evaluators,
            Thresholds(self.validity, self.redundancy),
            tuple(filter(None, (self.before, self.earlier))) if self.before else (),
            solution.thinking,
            self.every,
        )

    def displayed(self) -> Entered:
        """Return the solution of the displayed result at the thresholds of the page or, if it has no permalink, the
        one that is entered. Raises the same errors as `entered`."""
        if not self.token:
            return self.entered(self.solution_text())
        entered = Entered.from_token(self.token)
        return replace(
            entered,
            thresholds=Thresholds(self.validity, self.redundancy),
            before=(self.earlier,) if self.earlier else (),
            thinking=entered.solution_text().thinking,
            every=self.every,
        )


def check_steps(steps: Steps) -> None:
    """Raise `UserError` if there are more sub-steps than the page scores."""
    count = sum(map(len, steps))
    if count > _MOST_STEPS:
        raise UserError(
            f"The solution has {count:,} steps; this page scores at most {_MOST_STEPS:,}.",
            "Import a longer one on the Data page, and start a job.",
        )


def _check_length(*texts: str) -> None:
    if sum(map(len, texts)) > LONGEST_ENTRY:
        raise UserError(f"The text is longer than {LONGEST_ENTRY:,} characters.", "Score a shorter solution.")


def as_steps(steps: Iterable[str | Iterable[str]]) -> Steps:
    """Convert each step to a tuple of sub-steps. A step without sub-steps may be given as a text."""
    return tuple((step,) if isinstance(step, str) else tuple(step) for step in steps)


def steps_of(trace: Trace) -> Steps:
    """Return the sub-steps of each step of a trace."""
    return tuple(step.substeps for step in trace.steps)


def plain_steps(steps: Steps) -> list[str | list[str]]:
    """Convert tuples of sub-steps back to texts and lists of texts; the inverse of `as_steps`."""
    return [parts[0] if len(parts) == 1 else list(parts) for parts in steps]
