"""The majority vote of annotators on a step."""

from collections import Counter
from collections.abc import Sequence

from stepsight.core.label import LABEL_NAMES

MAJORITY, TIE, UNSURE, NONE = "majority", "tie", "unsure", "none"
"""The origin of a step's label: see `storage.labelling.results.consensus.Consensus`."""


def vote(labels: Sequence[str | None]) -> tuple[str | None, str]:
    """The label of a step and its origin, from the labels of its annotators; None abstains."""
    counts = Counter(label for label in labels if label is not None)
    if not counts:
        return None, NONE
    most = max(counts.values())
    first = [label for label, count in counts.items() if count == most]
    if len(first) > 1:
        return None, TIE
    return (first[0], MAJORITY) if first[0] in LABEL_NAMES else (None, UNSURE)
