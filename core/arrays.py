"""Type aliases for NumPy arrays of each number type, and rounding of scores for files and responses."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats32 = NDArray[np.float32]
"""The precision of probabilities, in models and in the store."""

Floats64 = NDArray[np.float64]
"""The precision in which metrics are computed."""

Ints = NDArray[np.int64]
AnyInts = NDArray[np.integer[Any]]
"""Columns of large tables, as narrow as their numbers allow."""

Bools = NDArray[np.bool_]

DIGITS = 6
"""The number of decimals of scores in files and responses; single precision has at most seven digits."""


def rounded(values: ArrayLike) -> Any:
    """Round scores to `DIGITS` decimals for files and responses. Returns a float for a single score, and otherwise
    nested lists shaped like the array."""
    # Adding 0 turns -0.0 into 0.0.
    return (np.round(np.asarray(values, np.float64), DIGITS) + 0.0).tolist()
