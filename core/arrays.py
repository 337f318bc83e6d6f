"""Array types, named by the type of their numbers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats32 = NDArray[np.float32]
"""Probabilities and what is computed from them, as models give them and the store keeps them."""

Floats64 = NDArray[np.float64]
"""What metrics are computed in."""

Ints = NDArray[np.int64]
AnyInts = NDArray[np.integer[Any]]
"""Columns of large tables, as narrow as their numbers allow."""

Bools = NDArray[np.bool_]
