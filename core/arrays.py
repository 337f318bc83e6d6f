"""Array types, named by the type of their numbers."""

import numpy as np
from numpy.typing import NDArray

Floats32 = NDArray[np.float32]
"""Probabilities and what is computed from them, as models give them and the store keeps them."""

Floats64 = NDArray[np.float64]
"""What metrics are computed in."""

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
