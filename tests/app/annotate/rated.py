"""Small campaigns for the tests of what is told of agreement."""

from collections.abc import Sequence

import numpy as np

from stepsight.core.metrics.agreement import RATING_NAMES, UNLABELLED, Ratings, valid_of
from stepsight.storage.labelling.ratings import RatedTraces
from stepsight.storage.labelling.submissions import LabelledItem

_CODES = {"-": UNLABELLED, "n": 0, "u": 1, "p": 2, "?": 3}
assert RATING_NAMES == ("neg", "neu", "pos", "unsure")


def codes(*said):
    """Of each person such as `"np? u-"`: traces with a sign for each step, neg, neu, pos, unsure or unlabelled."""
    return np.array([[_CODES[sign] for sign in one.replace(" ", "")] for one in said], np.int8)


def rated(*said, gold="", valid="", first=(), later=None, evidence=None):
    """What each person said, and what the gold says, in the same way; people are called a, b and so on. In `valid`,
    n and p are what the gold says of validity where it has no label."""
    sizes = [len(trace) for trace in said[0].split()]
    n = sum(sizes)
    trace, position = np.repeat(np.arange(len(sizes)), sizes), np.concatenate([np.arange(size) for size in sizes])
    people = tuple("abcdefgh"[: len(said)])

    def ratings(some: Sequence[str]) -> Ratings:
        return Ratings(people, codes(*some), trace, position, len(sizes))

    def known(some: str) -> np.ndarray:
        found = codes(some)[0].astype(float) if some else np.full(n, np.nan)
        return np.where(found == UNLABELLED, np.nan, found)

    traces = tuple(LabelledItem(10 + i, 100 + i, f"t{i}", "set", "", f"digest {i}") for i in range(len(sizes)))
    seen = np.full((len(said), n), np.nan) if later is None else np.array(later, float)
    told = np.where(np.isnan(known(gold)), known(valid), known(gold))
    changed_by = np.full((len(said), n), np.nan) if evidence is None else np.array(evidence, float)
    return RatedTraces(traces, ratings(said), ratings(first or said), seen, known(gold), valid_of(told), changed_by)


def cells(table, row):
    """A row, by its place or its first cell, by the keys of its columns."""
    found = table.rows[row] if isinstance(row, int) else next(one for one in table.rows if one[0] == row)
    return dict(zip((column.key for column in table.columns), found, strict=True))
