"""What a person entered on the Score page: as its script sends it, as a trace, and as text for an address."""

import base64
import binascii
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from stepsight.app.score.earlier_links import split_as_before
from stepsight.core.errors import UserError
from stepsight.core.files.json_values import parse_json
from stepsight.core.scores import Thresholds
from stepsight.core.text.split import Split, split_solution, split_steps
from stepsight.core.trace import Trace
from stepsight.storage.traces.writer import SAVED

# Servers and browsers refuse much longer addresses.
_LONGEST = 16_000
_LONGEST_TEXT = 1_000_000
_LONGEST_ENTRY = 100_000
_MOST_STEPS = 200
# In version 1 there was one evaluator and no number in front; in version 2 the solution was always a text; up to
# version 3 a text was split by `split_as_before`.
_VERSION = 4
_CUT = UserError("This link was cut or changed.", "Ask for it again, or paste the solution.")

Steps = tuple[tuple[str, ...], ...]
"""The sub-steps of each step."""


@dataclass(frozen=True)
class ScoreForm:
    """What is to be scored: the text of a solution, or its steps where they are not to be found by splitting a
    text."""

    problem: str = ""
    solution: str | Steps = ""
    evaluators: tuple[str, ...] = ()
    validity: float = Thresholds.validity
    redundancy: float = Thresholds.redundancy

    @classmethod
    def of(cls, trace: Trace, evaluators: Sequence[str] = (), thresholds: Thresholds | None = None) -> "ScoreForm":
        """The form that gives this trace, without its gold."""
        at = thresholds or Thresholds()
        return cls(trace.problem, steps_of(trace), tuple(evaluators), at.validity, at.redundancy)

    @property
    def thresholds(self) -> Thresholds:
        return Thresholds(self.validity, self.redundancy)

    @property
    def text(self) -> str:
        """The solution as the text box holds it."""
        return self.solution if isinstance(self.solution, str) else steps_text(self.solution)

    def steps(self) -> Steps:
        """The steps to be scored. Raises `UserError` where the text is a JSON list of something else."""
        return as_steps(split_steps(self.solution)) if isinstance(self.solution, str) else self.solution

    def trace(self) -> Trace:
        """The trace to be scored. Raises `UserError` where a part is missing or too long."""
        if not self.problem.strip():
            raise UserError("The problem is empty.", "Enter the problem, then score again.")
        if not (self.solution.strip() if isinstance(self.solution, str) else self.solution):
            raise UserError("There are no steps.", "Paste a solution, then score again.")
        texts = (
            (self.solution,)
            if isinstance(self.solution, str)
            else (part for step in self.solution for part in step)
        )
        if len(self.problem) + sum(map(len, texts)) > _LONGEST_ENTRY:
            raise UserError(f"The text is longer than {_LONGEST_ENTRY:,} characters.", "Score a shorter solution.")
        trace = Trace.of(self.problem.strip(), self.steps())
        if len(trace.substeps) > _MOST_STEPS:
            raise UserError(
                f"The solution has {len(trace.substeps):,} steps; this page scores at most {_MOST_STEPS}.",
                "Score a longer one with stepsight score.",
            )
        return trace

    def token(self) -> str | None:
        """The form as text for an address, or None where it would be too long for one."""
        values = [_VERSION, self.problem, self.solution, self.evaluators, self.validity, self.redundancy]
        packed = zlib.compress(json.dumps(values, ensure_ascii=False).encode(), 9)
        token = base64.urlsafe_b64encode(packed).decode().rstrip("=")
        return token if len(token) <= _LONGEST else None

    @classmethod
    def from_token(cls, token: str) -> "ScoreForm":
        """The inverse of `token`, also for those of earlier versions.

        Raises `UserError` where the text was cut or changed, or is of a version that is not known yet.
        """
        try:
            packed = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
            text = zlib.decompressobj().decompress(packed, _LONGEST_TEXT).decode()
            form = cls._of_values(parse_json(text))
            # JSON can spell half of a surrogate pair, which no page can show.
            json.dumps([form.problem, form.solution, form.evaluators], ensure_ascii=False).encode()
        except (binascii.Error, zlib.error, ValueError, TypeError, LookupError, OverflowError):
            raise _CUT from None
        if not (0 <= form.validity <= 1 and 0 <= form.redundancy <= 1):
            raise UserError("This link holds a threshold outside 0 to 1.", "Paste the solution instead.")
        return form

    @classmethod
    def _of_values(cls, values: list[Any]) -> "ScoreForm":
        version, *rest = values if isinstance(values[0], int) else [1, *values]
        if not 1 <= version <= _VERSION:
            raise UserError("This link is of another version of StepSight.", "Paste the solution instead.")
        problem, solution, names, validity, redundancy = rest
        evaluators = [names] if version == 1 else names
        entered = as_steps(solution) if isinstance(solution, list) else str(solution)
        if version < _VERSION and isinstance(entered, str):
            entered = _as_meant(entered)
        return cls(
            str(problem), entered, tuple(str(name) for name in evaluators), float(validity), float(redundancy)
        )


def _as_meant(solution: str) -> str | Steps:
    """The text of an earlier version, or its steps where it would be split into others today."""
    try:
        before = split_as_before(solution)
        return solution if split_solution(solution) == Split(tuple(before)) else as_steps(before)
    except UserError:
        # It is no list of texts, as it was none then.
        return solution


def _length(solution: str | Steps) -> int:
    return len(solution) if isinstance(solution, str) else sum(len(part) for step in solution for part in step)


class PageState(BaseModel):
    """What the script of the page sends: what is entered, and which result is in view.

    `steps` stand for the text where a step was edited and the text is not written yet. `before` is the permalink of
    the result to compare with, `kept` whether a person chose it, and `earlier` the one that it was itself compared
    with; `token` is that of the result in view, and `dataset` where it is to be saved.
    """

    model_config = ConfigDict(frozen=True)

    problem: str = ""
    solution: str = ""
    steps: Steps | None = None
    evaluators: tuple[str, ...] = ()
    validity: float = Field(Thresholds.validity, ge=0, le=1)
    redundancy: float = Field(Thresholds.redundancy, ge=0, le=1)
    before: str = ""
    kept: bool = False
    earlier: str = ""
    token: str = ""
    dataset: str = SAVED

    @classmethod
    def read(cls, values: object) -> "PageState":
        """The state that the script sent. Raises `UserError` where it is none."""
        try:
            return cls.model_validate(values)
        except ValidationError:
            raise UserError("The page sent something that it should not.", "Reload the page.") from None

    @property
    def text(self) -> str:
        """The solution as the text box holds it, or will."""
        return self.solution if self.steps is None else steps_text(self.steps)

    @property
    def form(self) -> ScoreForm:
        """The form to be scored."""
        return ScoreForm(self.problem, self.text, self.evaluators, self.validity, self.redundancy)


def as_steps(steps: Iterable[str | Iterable[str]]) -> Steps:
    """Steps as `split_steps` and files have them: a text each, or a list of texts where there are sub-steps."""
    return tuple((step,) if isinstance(step, str) else tuple(step) for step in steps)


def steps_of(trace: Trace) -> Steps:
    return tuple(step.substeps for step in trace.steps)


def plain_steps(steps: Steps) -> list[str | list[str]]:
    """The inverse of `as_steps`."""
    return [parts[0] if len(parts) == 1 else list(parts) for parts in steps]


def steps_text(steps: Steps) -> str:
    """Steps as text that `split_steps` reads back: a numbered list, paragraphs, or a JSON list where neither would
    do."""
    texts = [parts[0] for parts in steps if len(parts) == 1]
    if len(texts) == len(steps):
        numbered = "\n".join(f"{number}. {text}" for number, text in enumerate(texts, start=1))
        for text in (numbered, "\n\n".join(texts)):
            if split_solution(text) == Split(tuple(texts)):
                return text
    return json.dumps(plain_steps(steps), ensure_ascii=False, indent=1)
