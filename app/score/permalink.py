"""What a person entered on the Score page, as a trace and as text for an address."""

import base64
import binascii
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.scores import Thresholds
from stepsight.core.split import split_steps
from stepsight.core.trace import Trace

# Servers and browsers refuse much longer addresses.
_LONGEST = 16_000
_LONGEST_TEXT = 1_000_000
_LONGEST_ENTRY = 100_000
_MOST_STEPS = 200
_VERSION = 2
_CUT = UserError("This link was cut or changed.", "Ask for it again, or paste the solution.")

Steps = Sequence[str | Sequence[str]]
"""Steps as `core.split.split_steps` gives them: a text each, or a list of texts where there are sub-steps."""


@dataclass(frozen=True)
class ScoreForm:
    """What a person entered on the Score page; `solution` is text that is split into the steps that are meant."""

    problem: str = ""
    solution: str = ""
    evaluators: tuple[str, ...] = ()
    validity: float = Thresholds.validity
    redundancy: float = Thresholds.redundancy

    @classmethod
    def of(cls, trace: Trace, evaluators: Sequence[str] = (), thresholds: Thresholds | None = None) -> "ScoreForm":
        """The form that gives this trace, without its gold."""
        at = thresholds or Thresholds()
        return cls(trace.problem, solution_text(trace), tuple(evaluators), at.validity, at.redundancy)

    @property
    def thresholds(self) -> Thresholds:
        return Thresholds(self.validity, self.redundancy)

    def trace(self) -> Trace:
        """The trace that is meant. Raises `UserError` where a part is missing or too long."""
        if not (self.problem or "").strip():
            raise UserError("The problem is empty.", "Enter the problem, then score again.")
        if not (self.solution or "").strip():
            raise UserError("There are no steps.", "Paste a solution, then score again.")
        if len(self.problem) + len(self.solution) > _LONGEST_ENTRY:
            raise UserError(f"The text is longer than {_LONGEST_ENTRY:,} characters.", "Score a shorter solution.")
        trace = Trace.of(self.problem.strip(), split_steps(self.solution))
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
        """The inverse of `token`, also for those of version 1.

        Raises `UserError` where the text was cut or changed, or is of a version that is not known yet.
        """
        try:
            packed = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
            form = cls._of_values(json.loads(zlib.decompressobj().decompress(packed, _LONGEST_TEXT)))
            # JSON can spell half of a surrogate pair, which no page can show.
            "".join((form.problem, form.solution, *form.evaluators)).encode()
        except (binascii.Error, zlib.error, ValueError, TypeError, LookupError, OverflowError, RecursionError):
            raise _CUT from None
        if not (0 <= form.validity <= 1 and 0 <= form.redundancy <= 1):
            raise UserError("This link holds a threshold outside 0 to 1.", "Paste the solution instead.")
        return form

    @classmethod
    def _of_values(cls, values: list[Any]) -> "ScoreForm":
        """The form of a token's values; version 1 had one evaluator, and no number in front."""
        version, *rest = values if isinstance(values[0], int) else [1, *values]
        if version not in (1, _VERSION):
            raise UserError("This link is of another version of StepSight.", "Paste the solution instead.")
        problem, solution, names, validity, redundancy = rest
        evaluators = [names] if version == 1 else names
        return cls(
            str(problem), str(solution), tuple(str(name) for name in evaluators), float(validity), float(redundancy)
        )


def solution_text(trace: Trace) -> str:
    """The steps of a trace as text that `split_steps` reads back."""
    return steps_text([step.substeps for step in trace.steps])


def steps_text(steps: Steps) -> str:
    """Steps as text that `split_steps` reads back: a numbered list, or a JSON list where that would not do."""
    listed = [[step] if isinstance(step, str) else list(step) for step in steps]
    texts = [parts[0] for parts in listed if len(parts) == 1]
    numbered = "\n".join(f"{number}. {text}" for number, text in enumerate(texts, start=1))
    if len(texts) == len(listed) and split_steps(numbered) == texts:
        return numbered
    return json.dumps([parts[0] if len(parts) == 1 else parts for parts in listed], ensure_ascii=False, indent=1)
