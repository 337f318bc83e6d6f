"""Stable orders of many numbers, by one sort of integers that hold the number and its place: some ten times as fast
as a stable argsort where the processor sorts integers in vectors."""

import numpy as np
from numpy.typing import NDArray

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
