"""A trace: a problem and the ordered steps of one solution, and the three labels of a step, in the order that every
array and table uses.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from stepsight.core.arrays import Ints
from stepsight.core.errors import UserError, counted


class Label(IntEnum):
    """The label of a step: neg is wrong, neu is valid but redundant, pos is correct and useful.

    The value of a label is its index in a probability vector. An unlabelled step has `None` instead of a label.
    """

    NEG = 0
    NEU = 1
    POS = 2

    @property
    def text(self) -> str:
        return self.name.lower()


LABEL_NAMES = tuple(label.text for label in Label)


def parse_label(value: object) -> Label | None:
    """Parse the label `"neg"`, `"neu"` or `"pos"`. Returns None for null, which means unlabelled.

    Raises `UserError` for anything else. Integers are refused because 0 is the index of neg but PRM800K's rating
    for neutral.
    """
    if value is None:
        return None
    if isinstance(value, str) and value.lower() in LABEL_NAMES:
        return Label[value.upper()]
    raise UserError(f"label {value!r} found, expected neg, neu, pos or null.", "Ratings -1/0/1 are neg/neu/pos.")


@dataclass(frozen=True, slots=True)
class Step:
    """A step as a benchmark numbers and labels it, divided into the sub-steps that an evaluator scores.

    `label` is the gold label, or None if there is none. `valid` is the gold validity, or None if unknown. If a
    benchmark gives only the first error, steps before the error have `valid` True but no label, and steps after the
    error have None.

    `share` is a soft label from 0 to 1, such as the share of rollouts that reach the right answer from here, or
    None if there is none. It says nothing about `label` and `valid`, and a step may have both. Raises `UserError`
    if it is out of range.
    """

    substeps: tuple[str, ...]
    label: Label | None = None
    valid: bool | None = None
    share: float | None = None

    def __post_init__(self) -> None:
        if self.label is not None:
            object.__setattr__(self, "valid", self.label != Label.NEG)
        if self.share is not None and not 0 <= self.share <= 1:
            raise UserError(f"a share is {self.share}, expected a number from 0 to 1.")

    @property
    def text(self) -> str:
        return "\n".join(self.substeps)

    @property
    def gold(self) -> str | None:
        """The gold label as `neg`, `neu`, `pos`, `VALID` or None, if nothing is known."""
        if self.label is not None:
            return self.label.text
        return None if self.valid is None else VALID if self.valid else Label.NEG.text


VALID = "valid"
"""The gold of a step that is not wrong, and may be redundant."""


# The number of list items converted to JSON at once.
_HASHED = 10_000
# The names of the answer field in the benchmarks that we read, and in most others.
_ANSWERS = ("ground_truth_answer", "reference_answer", "answer")


def find_answer(meta: Mapping[str, Any]) -> str | None:
    """Return the reference answer stored in a trace's `meta` fields, or None if there is none."""
    for name in _ANSWERS:
        value = meta.get(name)
        if isinstance(value, (str, int, float)) and not isinstance(value, bool) and str(value).strip():
            return str(value).strip()
    return None


@dataclass(frozen=True)
class Trace:
    """A problem `q` and the steps `h_1 … h_n` of a solution. `meta` holds all other fields of the source.

    Raises `UserError` if the problem is empty, there are no steps, a sub-step is empty, or a text contains a NUL
    byte or half of a surrogate pair (neither can be stored or encoded).
    """

    id: str
    problem: str
    steps: tuple[Step, ...]
    meta: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_text(self.problem, "the problem")
        if not self.steps:
            raise UserError("there are no steps.", "Give at least one step.")
        for number, step in enumerate(self.steps, start=1):
            if not step.substeps:
                raise UserError(f"step {number} is empty.", "Remove it or give it a text.")
            for text in step.substeps:
                # Messages are built only for texts that need one.
                if not is_text(text):
                    check_text(text, f"step {number}")

    @classmethod
    def of(
        cls,
        problem: str,
        steps: Sequence[str | Sequence[str]],
        labels: Sequence[object] | None = None,
        id: str = "",
        meta: Mapping[str, Any] | None = None,
    ) -> "Trace":
        """Build a trace from plain texts. A step given as a list of texts is divided into those sub-steps.

        `labels` holds a label name or None for each step. Raises `UserError` if there are more or fewer labels than
        steps.
        """
        if labels is not None and len(labels) != len(steps):
            raise UserError(
                f"{counted(len(labels), 'label')} for {counted(len(steps), 'step')}.",
                "Give one label per step, null where unlabelled.",
            )
        gold = [parse_label(value) for value in labels] if labels is not None else [None] * len(steps)
        substeps = ((step,) if isinstance(step, str) else tuple(step) for step in steps)
        return cls(id, problem, tuple(map(Step, substeps, gold)), meta or {})

    @cached_property
    def substeps(self) -> tuple[str, ...]:
        """The texts of all sub-steps in order. Evaluators score these."""
        return tuple(text for step in self.steps for text in step.substeps)

    @cached_property
    def places(self) -> tuple[tuple[int, int], ...]:
        """The (step, sub-step) numbers of all sub-steps, counted from 1 as in files and on pages."""
        sizes = enumerate((len(step.substeps) for step in self.steps), start=1)
        return tuple((step, part) for step, size in sizes for part in range(1, size + 1))

    def step_name(self, i: int) -> str:
        """Return the name of sub-step `i`: `3`, or `3.2` if its step has several sub-steps."""
        step, part = self.places[i]
        return f"{step}" if len(self.steps[step - 1].substeps) == 1 else f"{step}.{part}"

    @cached_property
    def owners(self) -> Ints:
        """The 0-based index of the step that each sub-step belongs to, with shape (number of sub-steps,)."""
        counts = [len(step.substeps) for step in self.steps]
        return np.repeat(np.arange(len(counts)), counts)

    @cached_property
    def step_ends(self) -> Ints:
        """For each sub-step, the 0-based index of the last sub-step of its step, with shape (number of
        sub-steps,)."""
        counts = np.array([len(step.substeps) for step in self.steps])
        return np.repeat(counts.cumsum() - 1, counts)

    @property
    def labels(self) -> tuple[Label | None, ...]:
        return tuple(step.label for step in self.steps)

    @property
    def first_error(self) -> int | None:
        """The 0-based index of the first step that the gold labels call wrong, or None if there is none."""
        return next((i for i, step in enumerate(self.steps) if step.valid is False), None)

    @property
    def n_redundant(self) -> int:
        """The number of steps that the gold labels call redundant."""
        return sum(step.label is Label.NEU for step in self.steps)

    # Pages need these for each step.
    @cached_property
    def has_gold(self) -> bool:
        """True if a step has a gold label or validity. Shares do not count."""
        return any(step.valid is not None for step in self.steps)

    @cached_property
    def has_shares(self) -> bool:
        return any(step.share is not None for step in self.steps)

    @property
    def shows_gold(self) -> bool:
        """True if there is gold to show: labels, validities or shares."""
        return self.has_gold or self.has_shares

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the problem, steps and gold labels. Traces with equal digests are the same trace."""
        hashed = hashlib.sha256(f"[{json.dumps(self.problem)}, [".encode())
        _hash_list(hashed, map(_step_content, self.steps))
        hashed.update(b"]]")
        return hashed.hexdigest()

    @cached_property
    def text_digest(self) -> str:
        """The `digest_text` of the problem and the steps. It does not depend on the gold labels or the source."""
        return digest_text(self.problem, self.substeps)


def digest_text(problem: str, substeps: Iterable[str]) -> str:
    """Return the SHA-256 of the words of a problem and its solution. Traces with the same text have equal digests,
    whatever their gold labels, division into steps or line breaks."""
    hashed = hashlib.sha256(f"[{json.dumps(problem.split())}, [".encode())
    _hash_list(hashed, (word for text in substeps for word in text.split()))
    hashed.update(b"]]")
    return hashed.hexdigest()


def _step_content(step: Step) -> list[Any]:
    label = None if step.label is None else step.label.text
    return [list(step.substeps), label, step.valid, *(() if step.share is None else (step.share,))]


def _hash_list(hashed: "hashlib._Hash", values: Iterable[Any]) -> None:
    """Add the JSON of the items of a list, a few at a time, since a long trace has many."""
    rest, between = iter(values), b""
    while chunk := list(islice(rest, _HASHED)):
        hashed.update(between + json.dumps(chunk)[1:-1].encode())
        between = b", "


def is_text(value: object) -> bool:
    """True if a value can be a problem or a step: a text that is not empty and can be stored and encoded."""
    if not isinstance(value, str) or not value.strip() or "\x00" in value:
        return False
    try:
        return value.isascii() or bool(value.encode())
    except UnicodeEncodeError:
        return False


def check_text(text: object, what: str) -> str:
    """Return `text` if it can be a problem or a step. Otherwise raise `UserError`, with a message that refers to
    the text as `what`."""
    if not isinstance(text, str):
        raise UserError(f"{what} is {type(text).__name__}, expected text.")
    if not text.strip():
        raise UserError(f"{what} is empty.", "Give it a text.")
    if "\x00" in text:
        raise UserError(f"{what} contains a NUL byte.", "Remove it.")
    if not is_text(text):
        raise UserError(f"{what} contains an unpaired surrogate.", "Save the text as UTF-8.")
    return text


def check_candidates(candidates: Sequence[str]) -> list[str]:
    """Return the candidates for the next step as a list. Raises `UserError` if the list or a candidate is empty."""
    if isinstance(candidates, str) or not len(candidates):
        raise UserError("there are no candidates for the next step.", "Give a list of at least one text.")
    return [check_text(text, f"candidate {number}") for number, text in enumerate(candidates, start=1)]
