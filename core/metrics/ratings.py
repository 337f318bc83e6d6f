"""The labels that several people gave to the steps of many traces, stored as codes."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stepsight.core.arrays import Bools, Floats64, Ints
from stepsight.core.trace import LABEL_NAMES, Label

UNSURE, UNLABELLED = 3, -1
RATING_NAMES = (*LABEL_NAMES, "unsure")
"""The ratings that a person can give a step; the index is the code."""

NO_ERROR = -1
"""Stands for a first error if every step is valid."""


@dataclass(frozen=True, eq=False)
class Ratings:
    """The labels that several people gave to the steps of many traces.

    `codes` has the shape (people, steps) and holds indices into `RATING_NAMES`, or `UNLABELLED`. `trace` and
    `position` have the shape (steps,) and give the trace of each step and the step's 0-based position in it. The
    steps of a trace are adjacent and in order, and each of the `traces` traces has at least one step.
    """

    people: tuple[str, ...]
    codes: NDArray[np.int8]
    trace: Ints
    position: Ints
    traces: int

    @cached_property
    def labels(self) -> Floats64:
        """The labels neg, neu and pos as 0, 1 and 2, or NaN if a person was unsure or gave no label."""
        labelled = (self.codes != UNSURE) & (self.codes != UNLABELLED)
        return np.where(labelled, self.codes, np.nan).astype(np.float64)

    @cached_property
    def validity(self) -> Floats64:
        """The validity of each label: 0 for neg, 1 for neu and pos, and NaN where `labels` is NaN."""
        return valid_of(self.labels)

    @cached_property
    def first_errors(self) -> Floats64:
        """The first step that each person calls neg in each trace, 0-based, or `NO_ERROR`. The shape is (people,
        traces).

        It is NaN if it cannot be determined: a step before the first neg is unsure or unlabelled, or no step is neg
        and at least one is unsure or unlabelled.
        """
        if not self.traces:
            return np.empty((len(self.people), 0))
        starts = np.searchsorted(self.trace, np.arange(self.traces))
        wrong = np.minimum.reduceat(np.where(self.labels == Label.NEG, self.position, np.inf), starts, axis=1)
        silent = np.minimum.reduceat(np.where(np.isnan(self.labels), self.position, np.inf), starts, axis=1)
        return np.where(wrong < silent, wrong, np.where(np.isinf(silent), NO_ERROR, np.nan))

    @cached_property
    def counts(self) -> Ints:
        """The number of people who gave each step each rating in `RATING_NAMES`, with shape (steps, 4)."""
        return np.stack([(self.codes == code).sum(axis=0) for code in range(len(RATING_NAMES))], axis=1)

    @cached_property
    def answers(self) -> Bools:
        """An array of shape (people, traces) that is True where a person rated at least one step of a trace."""
        answers = np.zeros((len(self.people), self.traces), np.bool_)
        for person, codes in enumerate(self.codes):
            answers[person, self.trace[codes != UNLABELLED]] = True
        return answers

    @cached_property
    def majority(self) -> Floats64:
        """The most frequent label of each step, with shape (steps,). It is NaN in a tie or without labels."""
        votes = self.counts[:, : len(LABEL_NAMES)]
        if not len(votes):
            return np.empty(0)
        is_unique = (votes == votes.max(axis=1, keepdims=True)).sum(axis=1) == 1
        return np.where(is_unique, votes.argmax(axis=1), np.nan).astype(np.float64)

    def of_traces(self, chosen: Sequence[int]) -> "Ratings":
        """Return the ratings of the chosen traces, in the order given."""
        starts = np.searchsorted(self.trace, np.arange(self.traces + 1))
        parts = [np.arange(starts[trace], starts[trace + 1]) for trace in chosen]
        steps = np.concatenate([np.empty(0, np.int64), *parts])
        place = np.repeat(np.arange(len(parts)), [len(part) for part in parts]).astype(np.int64)
        return Ratings(self.people, self.codes[:, steps], place, self.position[steps], len(parts))


def valid_of(labels: Floats64) -> Floats64:
    """Return the validity of labels: 0 for neg, 1 for neu and pos, and NaN where there is no label."""
    return np.where(np.isnan(labels), np.nan, labels != Label.NEG).astype(np.float64)
