"""A label patch: a file of corrections to a benchmark's gold labels, which an evaluation can apply.

    {"format": "stepsight-label-patch", "version": 1, "dataset": "mr-math-invalid", "sha256": "24317f01…",
     "moment": "2026-11-21T14:30:00+00:00", "digest": "9c1e…", "entries": [
       {"trace": "4", "trace_digest": "5be0…", "step": 2, "from": "neg", "to": "valid", "reason": "Sine is odd.",
        "dispute": 7, "by": "anna", "moment": "2026-11-20T09:12:44+00:00"}]}

`step` counts from 1. `from` and `to` are the current and the corrected gold label of a step: neg, neu, pos, `valid`
(not wrong, possibly redundant), or null (none). An entry applies only to the trace with that id and digest;
`dataset` and `sha256` record the origin of the patch. `digest` is the SHA-256 of the entries, sorted by trace and
step, as ASCII JSON without spaces and with sorted keys. Two patches with the same digest change the same labels for
the same reasons.
"""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import Field, PositiveInt

from stepsight.core.errors import UserError, counted, located
from stepsight.core.files.whole_files import parse_json, read_bytes
from stepsight.core.validation import ListOf, Model, validate

FORMAT = "stepsight-label-patch"
VERSION = 1

GoldValue = Literal["neg", "neu", "pos", "valid"]
GOLD_VALUES = (*get_args(GoldValue), None)
"""The gold that a step can have."""

_EXPORTED = "Name a file that stepsight patch export wrote."


@dataclass(frozen=True)
class LabelChange:
    """A correction of one step's gold label from `old` to `new`. `step` is counted from 0.

    `trace` is the id within the dataset and `digest` is `Trace.digest`. `dispute`, `by` and `moment` (ISO 8601)
    record the dispute in which the change was proposed, who proposed it and when.
    """

    trace: str
    digest: str
    step: int
    old: str | None
    new: str | None
    reason: str = ""
    dispute: int | None = None
    by: str = ""
    moment: str = ""

    @property
    def place(self) -> str:
        """The trace and step in words, such as `trace '4', step 2`."""
        return f"trace {self.trace!r}, step {self.step + 1}"

    def as_json(self) -> dict[str, Any]:
        """Return the entry for this change in the patch file."""
        where = {"trace": self.trace, "trace_digest": self.digest, "step": self.step + 1}
        return where | {
            "from": self.old,
            "to": self.new,
            "reason": self.reason,
            "dispute": self.dispute,
            "by": self.by,
            "moment": self.moment,
        }


@dataclass(frozen=True)
class Patch:
    """Changes to a dataset's gold labels, at most one per step. `name` is the name of the file, and `moment` (ISO
    8601) the time at which the patch was made."""

    dataset: str
    sha256: str
    moment: str
    changes: tuple[LabelChange, ...]
    name: str = ""

    def __post_init__(self) -> None:
        changes = sorted(self.changes, key=lambda change: (change.trace, change.step))
        for change, other in pairwise(changes):
            if (change.trace, change.step) == (other.trace, other.step):
                raise UserError(f"{change.place} is changed twice.", "Keep one of the entries.")
        object.__setattr__(self, "changes", tuple(changes))

    @cached_property
    def digest(self) -> str:
        entries = [change.as_json() for change in self.changes]
        canonical = json.dumps(entries, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(canonical.encode()).hexdigest()

    @property
    def traces(self) -> int:
        """The number of traces that the patch changes."""
        return len({change.trace for change in self.changes})

    @property
    def size(self) -> str:
        """The size of the patch in words, such as `7 labels of 5 traces`."""
        return f"{counted(len(self.changes), 'label')} of {counted(self.traces, 'trace')}"

    def about(self) -> dict[str, Any]:
        """Return the fields that identify the patch in the record of an evaluation."""
        head = {"name": self.name, "format": FORMAT, "version": VERSION, "digest": self.digest}
        origin = {"dataset": self.dataset, "sha256": self.sha256, "moment": self.moment}
        return head | origin | {"labels": len(self.changes), "traces": self.traces}


def format_patch(patch: Patch) -> str:
    """Return the text of a patch file from which `parse_patch` rebuilds this patch."""
    head = {"format": FORMAT, "version": VERSION, "dataset": patch.dataset, "sha256": patch.sha256}
    entries = [change.as_json() for change in patch.changes]
    whole = head | {"moment": patch.moment, "digest": patch.digest, "entries": entries}
    return f"{json.dumps(whole, indent=1, ensure_ascii=False)}\n"


def read_patch(path: str | Path) -> Patch:
    """Read a patch from a file. Raises `UserError` if the file cannot be read or `parse_patch` refuses it."""
    try:
        text = read_bytes(Path(path)).decode("utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}).", "Check the path.") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not UTF-8.", _EXPORTED) from None
    except ValueError as error:
        raise UserError(f"{path}: not a label patch ({error}).", _EXPORTED) from None
    return parse_patch(text, str(path))


def parse_patch(text: str, where: str) -> Patch:
    """Parse the text of a patch. Its name is the last path component of `where`.

    Raises `UserError`, with a message that starts with `where`, if the text is not a patch, has an unsupported
    version, has entries that were edited later, or changes a step twice.
    """
    with located(where):
        return _parse(text, Path(where).name)


class _Entry(Model):
    trace: str
    trace_digest: str
    step: PositiveInt
    old: GoldValue | None = Field(alias="from")
    new: GoldValue | None = Field(alias="to")
    reason: str
    dispute: int | None
    by: str
    moment: str

    def change(self) -> LabelChange:
        values = dict(self)
        return LabelChange(digest=values.pop("trace_digest"), step=values.pop("step") - 1, **values)


class _File(Model):
    format: str
    version: int
    dataset: str
    sha256: str
    moment: str
    digest: str
    entries: ListOf[_Entry]


def _parse(text: str, name: str) -> Patch:
    try:
        values = parse_json(text)
    except ValueError as error:
        raise UserError(f"not JSON ({error}).", _EXPORTED) from None
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise UserError("this is not a label patch.", f"Its format must be {FORMAT}.")
    if values.get("version") != VERSION:
        raise UserError(
            f"version {values.get('version')!r} found, expected {VERSION}.",
            "Use the version of StepSight that wrote it.",
        )
    file = validate(_File, values)
    patch = Patch(file.dataset, file.sha256, file.moment, tuple(entry.change() for entry in file.entries), name)
    if patch.digest != file.digest:
        raise UserError(
            f"its entries were changed after it was written: their digest is {patch.digest:.12}…, but the file "
            f"gives {file.digest:.12}….",
            "Export it again.",
        )
    return patch
