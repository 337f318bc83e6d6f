"""Facets: the filters with few values. All of them are counted at once, in a time that hardly depends on how many
traces there are: traces with the same values of all facets are one cell, and cells are few."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepsight.core.judgment import Mode
from stepsight.core.metrics.table import SILENT, Third
from stepsight.storage.browse.verdict_columns import MISTAKES, VerdictColumns
from stepsight.storage.traces.columns import GOLD, TraceColumns

Ints = NDArray[np.int64]

_PLACE = np.uint64(32)
_SIGN, _WIDTH = np.uint32(1 << 31), np.uint32(31)
_LAST = np.uint32(2**32 - 1)


def stable_order(values: NDArray[np.float32], descending: bool = False) -> Ints:
    """The places of values, shape (n,) with n below 2^32, in ascending or descending order; equal ones are in the
    order of their places, and NaN comes last in either."""
    # Adding zero makes a negative zero a positive one, so that the two are equal in their bits as well.
    numbers = (-values if descending else values).astype(np.float32) + np.float32(0)
    bits = numbers.view(np.uint32)
    # The bits of positive floats are in the order of the floats, those of negative ones in the opposite order.
    ordered = bits ^ ((np.uint32(0) - (bits >> _WIDTH)) | _SIGN)
    ordered[np.isnan(numbers)] = _LAST
    return places_in_order(ordered)


def places_in_order(keys: NDArray[np.uint32]) -> Ints:
    """The places of keys, shape (n,) with n below 2^32, in ascending order, equal ones in the order of places."""
    packed = (keys.astype(np.uint64) << _PLACE) | np.arange(len(keys), dtype=np.uint64)
    packed.sort()
    # The lower half is the place.
    return packed.astype(np.uint32).astype(np.int64)


Flags = NDArray[np.bool_]

CHANGES = (0.1, 0.3, 0.5)
"""Retroactive changes that are counted."""


@dataclass(frozen=True, eq=False)
class Facet:
    """`codes`, shape (n,): the place in `names` of the value of each of `n` traces or cells, `SILENT` for none.
    `also`: those, shape (n,), that have a further value beside it."""

    names: tuple[str, ...]
    codes: NDArray[np.signedinteger[Any]]
    also: Mapping[str, Flags] = field(default_factory=dict)

    def has(self, value: str) -> Flags:
        """Those of a value, shape (n,); none for a value that there is not."""
        if value in self.also:
            return self.also[value]
        if value not in self.names:
            return np.zeros(len(self.codes), np.bool_)
        met: Flags = np.equal(self.codes, self.names.index(value))
        return met

    def count(self, numbers: Ints) -> dict[str, int]:
        """How many traces have each value, where there are so many of each cell, shape (n,)."""
        sums = np.bincount(self.codes + 1, numbers, len(self.names) + 1)[1:].astype(np.int64).tolist()
        found = dict(zip(self.names, sums, strict=True))
        return found | {name: int(numbers[flags].sum()) for name, flags in self.also.items()}


@dataclass(frozen=True, eq=False)
class Buckets:
    """`n` traces in `c` cells. `facets` are those of the cells, `cell` is that of each trace, shape (n,)."""

    facets: Mapping[str, Facet]
    cell: NDArray[np.int32]
    everything: Ints

    @property
    def nbytes(self) -> int:
        return self.cell.nbytes

    def tally(self, chosen: Flags | None) -> Ints:
        """How many of the chosen traces each cell has, shape (c,); of all where None is given."""
        if chosen is None:
            return self.everything
        return np.bincount(self.cell[chosen], minlength=len(self.everything))


def into_buckets(facets: Mapping[str, Facet]) -> Buckets:
    """The cells of traces by the facets of each."""
    key: Any = 0
    span = 1
    for facet in facets.values():
        key, span = key * (len(facet.names) + 1) + (facet.codes.astype(np.int64) + 1), span * (len(facet.names) + 1)
        for flags in facet.also.values():
            key, span = key * 2 + flags, span * 2
    order = places_in_order(key.astype(np.uint32)) if span <= 2**32 else np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    first, numbers = order[starts], np.diff(starts, append=len(order))
    cell = np.empty(len(order), np.int32)
    cell[order] = np.repeat(np.arange(len(starts), dtype=np.int32), numbers)
    of_cells = {
        name: Facet(facet.names, facet.codes[first], {value: flags[first] for value, flags in facet.also.items()})
        for name, facet in facets.items()
    }
    return Buckets(of_cells, cell, numbers)


def dataset_facets(catalogue: TraceColumns) -> dict[str, Facet]:
    """The facets of traces in which no evaluator comes in, by the field of the filter."""
    return {
        "gold": Facet(GOLD, catalogue.gold),
        "group": Facet(catalogue.groups, catalogue.group),
        "error_at": Facet(tuple(third.value for third in Third), catalogue.third),
        "relabelled": Facet(("no", "yes"), catalogue.relabelled.astype(np.int8)),
    }


def evaluator_facets(verdicts: Mapping[Mode, VerdictColumns], mode: Mode) -> dict[str, Facet]:
    """The facets of traces by an evaluator's verdicts, read in a mode."""
    read, online, offline = verdicts[mode], verdicts[Mode.ONLINE].valid, verdicts[Mode.OFFLINE].valid
    agreement = np.where((online == SILENT) | (offline == SILENT), SILENT, online != offline)
    also = {"redundant": read.redundant, "unjudged": ~read.judged}
    none = np.full(len(agreement), SILENT, np.int8)
    return {
        "verdict": Facet(("invalid", "valid"), read.valid, also),
        "mistake": Facet(tuple(mistake.value for mistake in MISTAKES), read.mistake),
        "modes": Facet(("agree", "disagree"), agreement.astype(np.int8)),
        "change": Facet((), none, {f"{least:g}": changed(read, least) for least in CHANGES}),
    }


def changed(verdicts: VerdictColumns, least: float) -> Flags:
    """The traces with a retroactive change of at least `least`, shape (n,)."""
    met: Flags = verdicts.change >= np.float32(least)
    return met


def differ(one: VerdictColumns, other: VerdictColumns) -> Flags:
    """The traces that one evaluator calls valid and the other invalid, shape (n,)."""
    known = np.not_equal(one.valid, SILENT) & np.not_equal(other.valid, SILENT)
    return known & np.not_equal(one.valid, other.valid)
