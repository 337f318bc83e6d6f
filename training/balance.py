"""How evenly the labels of a trace are spread over the three classes."""

from collections import Counter

from core.label import Label
from core.trace import Trace


def balance_ratio(trace: Trace) -> float:
    """The paper's `rho = min n_c / max n_c` over the classes c with `n_c > 0`, where `n_c` is the number of steps
    labelled c; 0 where fewer than two classes occur (appendix "Data and Reproducibility", filtered training pool).

    Unlabelled steps count for nothing, and a step with sub-steps is one. 1 is the most even.
    """
    counts = _counts(trace).values()
    return min(counts) / max(counts) if len(counts) > 1 else 0.0


def is_balanced(trace: Trace, rho: float, every_label: bool) -> bool:
    """Whether the balance ratio is at least `rho` and, with `every_label`, neg, neu and pos all occur.

    The paper's training pool has `rho` 0.5 with every label, its evaluation set `rho` 0.5 alone.
    """
    return balance_ratio(trace) >= rho and (not every_label or len(_counts(trace)) == len(Label))


def _counts(trace: Trace) -> Counter[Label]:
    return Counter(label for label in trace.labels if label is not None)
