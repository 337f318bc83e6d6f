"""The strength of an evaluator: the datasets on which it beats the trivial baselines, and the errors that it finds
in the gallery, the shipped traces that show what later steps can reveal.

The figures of a shipped evaluator stand in its stepsight.json, as `measured`.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from stepsight.core.evaluators.conclusion import Opinion, conclude
from stepsight.core.files.jsonl import parse_trace, read_file
from stepsight.core.judgment import Judgment
from stepsight.core.judgment_record import Described, JudgmentRecord, judgment_record
from stepsight.core.models.location import shipped_folder
from stepsight.core.paths import asset
from stepsight.core.scores import Outputs, Thresholds
from stepsight.core.trace import Trace

GALLERY = asset("traces", "gallery.jsonl")
DATASET = GALLERY.stem
EXPOSED, CLEARED, VISIBLE, CLEAN = "exposed later", "cleared later", "visible at once", "no error"
KINDS = (EXPOSED, CLEARED, VISIBLE, CLEAN)
# It is followed by a reading, a type of weights, or the beginning of a fingerprint.
_OWN_NAME = re.compile(r", read | \(")


@cache
def read_gallery() -> tuple[Trace, ...]:
    """Return the traces of the gallery, in order.

    The meta of each trace holds these values:

    - `title`, `topic` and `evidence_kind`
    - `note`: a sentence that says which later step exposes or clears which earlier step
    - `kind`: one of `KINDS`
    - `focus`: the 0-based index of the step that is exposed, cleared or visibly wrong, or null
    - `evidence`: the 0-based index of the later step that exposes or clears the step in focus, or null
    - `error`: the kind of the error, or null
    """
    return tuple(parse_trace(row, f"{GALLERY.name} line {number}") for number, row in read_file(GALLERY))


@dataclass(frozen=True)
class Strength:
    """The known facts about an evaluator's strength.

    `clears` maps each dataset measured to True if the evaluator beats the trivial baselines on it. `exposed` is the
    number of gallery solutions in which it finds the step that a later step exposes, and of all such solutions;
    `visible` is the same for errors that show at once.
    """

    clears: dict[str, bool] = field(default_factory=dict)
    exposed: Sequence[int] = ()
    visible: Sequence[int] = ()

    @property
    def short(self) -> int:
        """The number of datasets on which the evaluator does not beat the baselines."""
        return list(self.clears.values()).count(False)

    @property
    def is_weak(self) -> bool:
        """True if the evaluator does not beat the baselines on half of the datasets measured, or on more."""
        return self.short > 0 and 2 * self.short >= len(self.clears)


@cache
def read_card(name: str) -> Strength:
    """Return the strength of a shipped evaluator, whatever follows its own name. Nothing is known about others."""
    folder = shipped_folder(_OWN_NAME.split(name)[0])
    if folder is None:
        return Strength()
    return Strength(**json.loads((folder / "stepsight.json").read_text(encoding="utf-8"))["measured"])


def opinion_of(evaluator: str, outputs: Outputs, thresholds: Thresholds, judgments: Sequence[Judgment]) -> Opinion:
    """Return what an evaluator says about a trace, with what is known about its strength."""
    return Opinion(evaluator, outputs, thresholds, judgments, bool(read_card(evaluator).exposed))


def concluded_record(
    judgment: Judgment, evaluator: Described, thresholds: Thresholds | None = None, name: str = ""
) -> JudgmentRecord:
    """Build the record of a judgment like `judgment_record`, with the sentence on the solution unless the judgment
    is stale."""
    chosen = thresholds or Thresholds()
    opinion = opinion_of(name or evaluator.name, evaluator.outputs, chosen, [judgment])
    sentence = None if judgment.stale else conclude(judgment.trace, [opinion]).text
    return judgment_record(judgment, evaluator, chosen, name, conclusion=sentence)


def shows_strength(dataset: str) -> bool:
    """True if figures of a dataset show an evaluator's strength. Those of the gallery do not: it was made to show
    what later steps reveal."""
    return dataset != DATASET
