"""The speed at which this machine multiplies matrices, measured on first use and cached in a file.

Other work on the machine can only make a measurement slower. Each server therefore measures again and keeps the
best result.
"""

import os
import threading
import time
from pathlib import Path

from stepsight.core.errors import UserError
from stepsight.core.files.json_values import read_json, write_json
from stepsight.core.paths import cache_folder

TOKENS = 500
"""The length in tokens of the trace for which times are given."""

# A layer of a model of about 1.5 billion parameters, for a trace of `TOKENS`.
_ROWS, _WIDTH = 512, 2048
_SECONDS = 0.3


class Speed:
    """The processor's speed in operations per second, for each type of weights. It is thread-safe. The first
    request for a type starts the measurement for that type in a background thread."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or cache_folder() / "speed.json"
        self._lock = threading.Lock()
        self._begun: set[str] = set()
        self._known: dict[str, float] | None = None

    def of(self, dtype: str) -> float | None:
        """Return the speed for a type of weights, or None during its first measurement, which takes about a
        second."""
        with self._lock:
            if self._known is None:
                self._known = self._read()
            if dtype not in self._begun:
                self._begun.add(dtype)
                threading.Thread(target=self._measure, args=(dtype,), name="speed", daemon=True).start()
            return self._known.get(dtype)

    @property
    def is_measuring(self) -> bool:
        """True if the speed for a requested type of weights is not known yet."""
        return any(dtype not in (self._known or {}) for dtype in self._begun)

    def seconds(self, parameters: int, dtype: str, tokens: int = TOKENS) -> float | None:
        """Estimate the seconds per trace of `tokens` tokens, assuming two operations per parameter and token.
        Returns None while the speed is unknown."""
        speed = self.of(dtype)
        return 2 * parameters * tokens / speed if speed else None

    def _measure(self, dtype: str) -> None:
        speed = measure(dtype)
        with self._lock:
            known = self._known or {}
            self._known = known | {dtype: max(speed, known.get(dtype, 0.0))}
            try:
                write_json(self._path, {_machine(): self._known})
            except UserError:
                # It is measured again after the next start, so a failure to save it does no harm.
                return

    def _read(self) -> dict[str, float]:
        """Read the speeds measured earlier on this machine, with the current version of PyTorch and number of
        threads."""
        try:
            known = read_json(self._path).get(_machine(), {})
            return {str(dtype): float(speed) for dtype, speed in known.items()}
        except (UserError, AttributeError, TypeError, ValueError):
            return {}


def measure(dtype: str) -> float:
    """Return the speed of matrix multiplication with weights of type `dtype`, in operations per second. It is the
    best of several measurements."""
    # PyTorch takes seconds to import, and the server starts without it.
    import torch

    kind = getattr(torch, dtype)
    with torch.inference_mode():
        rows, weights = torch.ones(_ROWS, _WIDTH, dtype=kind), torch.ones(_WIDTH, _WIDTH, dtype=kind)
        torch.nn.functional.linear(rows, weights)
        best, until = 0.0, time.perf_counter() + _SECONDS
        while not best or time.perf_counter() < until:
            start = time.perf_counter()
            torch.nn.functional.linear(rows, weights)
            best = max(best, 2 * _ROWS * _WIDTH * _WIDTH / (time.perf_counter() - start))
    return best


def _machine() -> str:
    import torch

    return f"torch {torch.__version__}, {torch.get_num_threads()} threads of {os.cpu_count()}"
