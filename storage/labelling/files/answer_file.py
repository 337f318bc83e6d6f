"""Answers as a file gives them: to which trace, whose, and what they say."""

import hashlib
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.label import LABEL_NAMES
from stepsight.storage.database.schema import check_name
from stepsight.storage.importers.fields import canonical, describe, field, listed, text, whole
from stepsight.storage.importers.kind import Row
from stepsight.storage.labelling.annotation import ERROR_KINDS, LABELS, check_reason
from stepsight.storage.labelling.plan import CampaignView
from stepsight.storage.people.exposures import WHAT

StepTexts = tuple[str | None, ...]


@dataclass(frozen=True)
class ImportedAnnotation:
    """A submitted annotation as a file states it; tuples have an entry per step. `content` is all of it."""

    annotator: str
    view: str
    labels: StepTexts
    first: StepTexts
    errors: StepTexts
    comments: StepTexts
    corrections: StepTexts
    flag: str | None
    exposed: frozenset[str]
    guideline: int
    submitted: datetime
    seconds: float
    content: bytes

    @property
    def digest(self) -> str:
        return digest(self.content)


@dataclass(frozen=True)
class ImportedDecision:
    """As `storage.labelling.results.decisions.Decision`."""

    step: int
    label: str | None
    reason: str
    annotator: str
    own: bool
    moment: datetime
    content: bytes


@dataclass(frozen=True)
class ImportedTrace:
    """What a row says of a trace, known by its id within a dataset and by its digest."""

    dataset: str
    id: str
    digest: str
    chosen: str
    annotations: tuple[ImportedAnnotation, ...]
    decisions: tuple[ImportedDecision, ...] = ()


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def parse_trace(row: Row) -> ImportedTrace:
    """A row of the layout `storage.labelling.files.formats.jsonl`. Raises `UserError` on anything else."""
    steps = len(listed(row, "steps"))
    decisions = [_object(item, "a decision") for item in row.get("decisions") or []]
    return ImportedTrace(
        dataset=text(row, "dataset"),
        id=text(row, "id"),
        digest=text(row, "digest"),
        chosen=_word(text(row, "chosen"), ("ordered", "random", "gold"), "the field 'chosen'"),
        annotations=tuple(parse_annotation(_object(item, "an answer"), steps) for item in listed(row, "answers")),
        decisions=tuple(_parse_decision(item, steps) for item in decisions),
    )


def parse_annotation(row: Row, steps: int) -> ImportedAnnotation:
    """An answer to a trace of so many steps."""
    said: dict[str, Any] = {
        "annotator": check_name(text(row, "annotator"), "the annotator"),
        "view": _word(text(row, "view"), tuple(CampaignView), "the view"),
        "labels": _words(row, "labels", steps, LABELS),
        "first": _words(row, "first", steps, LABELS),
        "errors": _words(row, "errors", steps, ERROR_KINDS),
        "comments": _words(row, "comments", steps),
        "corrections": _words(row, "corrections", steps),
        "flag": None if field(row, "flag") is None else text(row, "flag"),
        "guideline": whole(field(row, "guideline"), 1, 2**31 - 1, "the guideline", "a version from 1"),
        "seconds": _seconds(field(row, "seconds")),
    }
    exposed = frozenset(_word(item, WHAT, "what was seen") for item in listed(row, "exposed"))
    submitted = moment(row, "submitted")
    content = canonical(said | {"exposed": sorted(exposed), "submitted": submitted.isoformat()})
    return ImportedAnnotation(**said, exposed=exposed, submitted=submitted, content=content)


def moment(row: Row, key: str) -> datetime:
    """A date and time with its zone."""
    found = field(row, key)
    try:
        moment = datetime.fromisoformat(found)
    except (TypeError, ValueError):
        raise UserError(f"the field {key!r} is {describe(found)}, expected a date and time.") from None
    if moment.tzinfo is None:
        raise UserError(f"the field {key!r} is {found!r}, without a time zone.", "Add one, such as +00:00.")
    return moment.astimezone(UTC)


def _parse_decision(row: Row, steps: int) -> ImportedDecision:
    label = field(row, "label")
    if label is not None:
        _word(label, LABEL_NAMES, "the label decided")
    return ImportedDecision(
        step=whole(field(row, "step"), 0, steps - 1, "the step decided", f"0 to {steps - 1}"),
        label=label,
        reason=check_reason(field(row, "reason"), "the decision has no reason."),
        annotator=check_name(text(row, "annotator"), "who decided"),
        own=bool(field(row, "own")),
        moment=moment(row, "moment"),
        content=canonical(row),
    )


def _words(row: Row, key: str, steps: int, words: tuple[str, ...] | None = None) -> StepTexts:
    """An entry per step: one of some words, or any text where none are given, or null."""
    found = listed(row, key)
    if len(found) != steps:
        raise UserError(f"{len(found)} {key} for {steps} steps.", "Give one per step, null where there is none.")
    for item in found:
        if item is not None and words is not None:
            _word(item, words, f"an entry of {key!r}")
        elif item is not None:
            text({key: item}, key)
    return tuple(found)


def _word(found: object, words: tuple[str, ...], what: str) -> str:
    if not isinstance(found, str) or found not in words:
        raise UserError(f"{what} is {describe(found)}.", f"Expected {', '.join(words)}.")
    return found


def _seconds(found: Any) -> float:
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found < math.inf:
        raise UserError(f"the seconds are {describe(found)}.", "Expected a number from 0.")
    return float(found)


def _object(found: object, what: str) -> Row:
    if not isinstance(found, dict):
        raise UserError(f"{what} is {describe(found)}, expected an object.")
    return found
