"""Facets: filter fields that take only a few values.

Traces that agree on every facet share a bucket. Because there are few buckets, counting all facets at once takes
almost the same time however many traces there are.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepsight.core.arrays import Bools, Ints
from stepsight.core.judgment import Mode
from stepsight.core.metrics.table import SILENT, Third
from stepsight.storage.browse.verdict_columns import OUTCOME_NAMES, VerdictColumns
from stepsight.storage.traces.columns import GOLD, TraceColumns

_PLACE = np.uint64(32)
_SIGN, _WIDTH = np.uint32(1 << 31), np.uint32(31)
_LAST = np.uint32(2**32 - 1)


def stable_order(values: NDArray[np.float32], descending: bool = False) -> Ints:
    """Return the indices that sort the array `values` of shape (n,) stably, where n must be below 2^32. NaN comes
    last in both directions."""
    # Adding zero makes a negative zero a positive one, so that the two are equal in their bits as well.
    numbers = (-values if descending else values).astype(np.float32) + np.float32(0)
    bits = numbers.view(np.uint32)
    # The bits of positive floats are in the order of the floats, those of negative ones in the opposite order.
    ordered = bits ^ ((np.uint32(0) - (bits >> _WIDTH)) | _SIGN)
    ordered[np.isnan(numbers)] = _LAST
    return places_in_order(ordered)


def places_in_order(keys: NDArray[np.uint32]) -> Ints:
    """Return the indices that sort the array `keys` of shape (n,) stably in ascending order, where n must be below
    2^32."""
    packed = (keys.astype(np.uint64) << _PLACE) | np.arange(len(keys), dtype=np.uint64)
    packed.sort()
    # The lower half is the place.
    return packed.astype(np.uint32).astype(np.int64)


CHANGES = (0.1, 0.3, 0.5)
"""The retroactive changes that are counted."""


@dataclass(frozen=True, eq=False)
class Facet:
    """The values of one facet for `n` traces or buckets.

    The array `codes` of shape (n,) gives the value of each trace or bucket as an index into `names`, or `SILENT` if
    it has no value. A trace or bucket can have further values, listed in `also`: each is mapped to a mask of shape
    (n,) that selects the traces or buckets that have it.
    """

    names: tuple[str, ...]
    codes: NDArray[np.signedinteger[Any]]
    also: Mapping[str, Bools] = field(default_factory=dict)

    def has(self, value: str) -> Bools:
        """Return a mask of shape (n,) that selects the traces or buckets with `value`. No trace has an unknown
        value."""
        if value in self.also:
            return self.also[value]
        if value not in self.names:
            return np.zeros(len(self.codes), np.bool_)
        met: Bools = np.equal(self.codes, self.names.index(value))
        return met

    def count(self, numbers: Ints) -> dict[str, int]:
        """Return the number of traces with each value. `numbers` has shape (n,) and holds the trace count of each
        bucket."""
        sums = np.bincount(self.codes + 1, numbers, len(self.names) + 1)[1:].astype(np.int64).tolist()
        counts = dict(zip(self.names, sums, strict=True))
        return counts | {name: int(numbers[flags].sum()) for name, flags in self.also.items()}


@dataclass(frozen=True, eq=False)
class Buckets:
    """`n` traces grouped into `b` buckets.

    `facets` holds the facet values of the buckets. `bucket` has shape (n,) and holds the bucket index of each
    trace. `everything` has shape (b,) and holds the trace count of each bucket.
    """

    facets: Mapping[str, Facet]
    bucket: NDArray[np.int32]
    everything: Ints

    @property
    def nbytes(self) -> int:
        return self.bucket.nbytes

    def tally(self, chosen: Bools | None) -> Ints:
        """Return the number of chosen traces in each bucket, as an array of shape (b,). If `chosen` is None, count
        all traces."""
        if chosen is None:
            return self.everything
        return np.bincount(self.bucket[chosen], minlength=len(self.everything))


def into_buckets(facets: Mapping[str, Facet]) -> Buckets:
    """Group traces into buckets, so that two traces share a bucket if they agree on every facet."""
    key: Any = 0
    span = 1
    for facet in facets.values():
        key, span = key * (len(facet.names) + 1) + (facet.codes.astype(np.int64) + 1), span * (len(facet.names) + 1)
        for flags in facet.also.values():
            key, span = key * 2 + flags, span * 2
    order = places_in_order(key.astype(np.uint32)) if span <= 2**32 else np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    first, numbers = order[starts], np.diff(starts, append=len(order))
    bucket = np.empty(len(order), np.int32)
    bucket[order] = np.repeat(np.arange(len(starts), dtype=np.int32), numbers)
    of_buckets = {
        name: Facet(facet.names, facet.codes[first], {value: flags[first] for value, flags in facet.also.items()})
        for name, facet in facets.items()
    }
    return Buckets(of_buckets, bucket, numbers)


def dataset_facets(traces: TraceColumns, not_redundant: Bools) -> dict[str, Facet]:
    """Return the facets that do not depend on an evaluator, keyed by filter field. `not_redundant` selects the
    traces whose steps are all labelled, and none as redundant."""
    also = {
        "redundant": traces.redundant,
        "not-redundant": not_redundant,
    }
    return {
        "gold": Facet(GOLD, traces.gold, also),
        "group": Facet(traces.groups, traces.group),
        "error_at": Facet(tuple(third.value for third in Third), traces.third),
        "relabelled": Facet(("no", "yes"), traces.relabelled.astype(np.int8)),
    }


def evaluator_facets(verdicts: Mapping[Mode, VerdictColumns], mode: Mode) -> dict[str, Facet]:
    """Return the facets for an evaluator's verdicts in `mode`, keyed by filter field."""
    chosen, online, offline = verdicts[mode], verdicts[Mode.ONLINE].valid, verdicts[Mode.OFFLINE].valid
    agreement = np.where((online == SILENT) | (offline == SILENT), SILENT, online != offline)
    also = {"redundant": chosen.redundant, "unjudged": ~chosen.judged}
    none = np.full(len(agreement), SILENT, np.int8)
    return {
        "verdict": Facet(("invalid", "valid"), chosen.valid, also),
        "mistake": Facet(OUTCOME_NAMES, chosen.mistake, {"wrong": chosen.mistaken}),
        "modes": Facet(("agree", "disagree"), agreement.astype(np.int8)),
        "change": Facet((), none, {f"{least:g}": changed(chosen, least) for least in CHANGES}),
    }


def changed(verdicts: VerdictColumns, least: float) -> Bools:
    """Return a mask of shape (n,) that selects the traces whose largest retroactive change is at least `least`."""
    met: Bools = verdicts.change >= np.float32(least)
    return met


def differ(one: VerdictColumns, other: VerdictColumns) -> Bools:
    """Return a mask of shape (n,) that selects the traces that one evaluator calls valid and the other invalid."""
    both = np.not_equal(one.valid, SILENT) & np.not_equal(other.valid, SILENT)
    return both & np.not_equal(one.valid, other.valid)
