"""Ratings: what each of several people said of each step of many traces."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stepsight.core.label import LABEL_NAMES, Label
from stepsight.core.metrics.bootstrap import Floats

UNSURE, UNLABELLED = 3, -1
SAID = (*LABEL_NAMES, "unsure")
"""What a person can say of a step; the place is its code."""

NO_ERROR = -1
"""In place of a first error: every step is valid."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ratings:
    """`codes`, shape (people, steps), hold places in `SAID`, or `UNLABELLED`. `trace` and `position` say of each
    step which trace it belongs to and its 0-based place in it, shape (steps,); the steps of a trace stand together
    and in order, and every one of the `traces` has some."""

    people: tuple[str, ...]
    codes: NDArray[np.int8]
    trace: Ints
    position: Ints
    traces: int

    @cached_property
    def labels(self) -> Floats:
        """neg, neu and pos as 0, 1 and 2; NaN where a person was unsure or said nothing."""
        known = (self.codes != UNSURE) & (self.codes != UNLABELLED)
        return np.where(known, self.codes, np.nan).astype(np.float64)

    @cached_property
    def validity(self) -> Floats:
        """0 for neg and 1 for neu and pos; NaN as in `labels`."""
        return valid_of(self.labels)

    @cached_property
    def first_errors(self) -> Floats:
        """The first step that each person calls neg, 0-based, or `NO_ERROR`, shape (people, traces).

        NaN where it cannot be told: a step before it is unsure or unlabelled, or one of all where none is neg.
        """
        if not self.traces:
            return np.empty((len(self.people), 0))
        starts = np.searchsorted(self.trace, np.arange(self.traces))
        wrong = np.minimum.reduceat(np.where(self.labels == Label.NEG, self.position, np.inf), starts, axis=1)
        silent = np.minimum.reduceat(np.where(np.isnan(self.labels), self.position, np.inf), starts, axis=1)
        found: Floats = np.where(wrong < silent, wrong, np.where(np.isinf(silent), NO_ERROR, np.nan))
        return found

    @cached_property
    def counts(self) -> Ints:
        """How many people said each of `SAID` of each step, shape (steps, 4)."""
        return np.stack([(self.codes == code).sum(axis=0) for code in range(len(SAID))], axis=1)

    @cached_property
    def answers(self) -> NDArray[np.bool_]:
        """Who said something of which trace, shape (people, traces)."""
        found = np.zeros((len(self.people), self.traces), np.bool_)
        for person, codes in enumerate(self.codes):
            found[person, self.trace[codes != UNLABELLED]] = True
        return found

    @cached_property
    def majority(self) -> Floats:
        """The label that more people gave to each step than any other, NaN where there is none, shape (steps,)."""
        votes = self.counts[:, : len(LABEL_NAMES)]
        if not len(votes):
            return np.empty(0)
        most = votes.max(axis=1)
        alone = (votes == most[:, np.newaxis]).sum(axis=1) == 1
        return np.where(alone & (most > 0), votes.argmax(axis=1), np.nan).astype(np.float64)

    def of_traces(self, chosen: Sequence[int]) -> "Ratings":
        """The ratings of some of the traces, in the order given."""
        starts = np.searchsorted(self.trace, np.arange(self.traces + 1))
        parts = [np.arange(starts[trace], starts[trace + 1]) for trace in chosen]
        steps = np.concatenate([np.empty(0, np.int64), *parts])
        place = np.repeat(np.arange(len(parts)), [len(part) for part in parts]).astype(np.int64)
        return Ratings(self.people, self.codes[:, steps], place, self.position[steps], len(parts))


def valid_of(labels: Floats) -> Floats:
    """0 for neg and 1 for neu and pos, NaN where there is no label."""
    return np.where(np.isnan(labels), np.nan, labels != Label.NEG).astype(np.float64)
