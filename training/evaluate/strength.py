"""The strength of an evaluator: the datasets on which it beats the trivial baselines, and the errors that it finds
in the gallery.

The figures of a shipped evaluator are read from its model card.
"""

import re
from dataclasses import dataclass, field
from functools import cache

from stepsight.core.models.location import shipped_folder
from stepsight.training.evaluate.gallery import DATASET as GALLERY

# In a model card: the row of a dataset, which ends in the difference from the best baseline, and a sentence.
_ROW = re.compile(r"^\| ([\w-]+) \| (?:offline|online) \|.* \[([-+][\d.]+), [-+][\d.]+\] \|$", re.MULTILINE)
_EXPOSED = re.compile(r"(?<!\d)(\d+) of (\d+) first errors that a later\s+step exposes")
_VISIBLE = re.compile(r"(?<!\d)(\d+) of (\d+) errors visible at once found")


@dataclass(frozen=True)
class Strength:
    """The known facts about an evaluator's strength.

    `clears` maps each dataset measured to True if the evaluator beats the trivial baselines on it. `exposed` is the
    number of gallery solutions in which it finds the step that a later step exposes, and the number of all such
    solutions. `visible` gives the same numbers for solutions with an error that shows at once. Both are empty if
    unknown.
    """

    clears: dict[str, bool] = field(default_factory=dict)
    exposed: tuple[str, ...] = ()
    visible: tuple[str, ...] = ()

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
    """Return the strength of a shipped evaluator from its model card. For any other evaluator, nothing is known.
    Offline figures take precedence over online ones."""
    folder = shipped_folder(name)
    if folder is None:
        return Strength()
    text = (folder / "README.md").read_text(encoding="utf-8")
    rows = reversed(_ROW.findall(text))
    exposed, visible = (found.groups() if (found := one.search(text)) else () for one in (_EXPOSED, _VISIBLE))
    return Strength({dataset: float(low) > 0 for dataset, low in rows}, exposed, visible)


def shows_strength(dataset: str) -> bool:
    """True if figures of a dataset show an evaluator's strength. Those of the gallery do not: it was made to show
    what later steps reveal."""
    return dataset != GALLERY
