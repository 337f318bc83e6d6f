"""Array types, named by the type of their numbers, and the one way in which numbers are written."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats32 = NDArray[np.float32]
"""Probabilities and what is computed from them, as models give them and the store keeps them."""

Floats64 = NDArray[np.float64]
"""What metrics are computed in."""

Ints = NDArray[np.int64]
AnyInts = NDArray[np.integer[Any]]
"""Columns of large tables, as narrow as their numbers allow."""

Bools = NDArray[np.bool_]

DIGITS = 6
"""Decimals of every score in a file or an answer: single precision has no more than seven."""


def rounded(values: ArrayLike) -> Any:
    """Scores as files and answers hold them, with `DIGITS` decimals: a float, or lists in the shape of an array."""
    # Adding 0 turns -0.0 into 0.0.
    return (np.round(np.asarray(values, np.float64), DIGITS) + 0.0).tolist()
