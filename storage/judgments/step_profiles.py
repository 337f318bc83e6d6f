"""Profiles: a judgment's verdict on each step, packed, so that those of a whole dataset are read at once.

A profile is of one mode: a head of fixed size, then the validity of every step as little-endian float32, NaN if
missing. It does not depend on thresholds, so that choosing others changes no profile.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.label import Label
from stepsight.core.metrics.table import SILENT
from stepsight.core.scores import StepScores
from stepsight.core.trace import Trace
from stepsight.storage.database.stored_json import DamagedError

HEAD = np.dtype(
    [
        ("digest", "S16"),
        ("whole", "<f4"),
        ("redundancy", "<f4"),
        ("change", "<f4"),
        ("cells", "<u2"),
        ("labelled", "<u2"),
    ]
)
"""`digest`: the first characters of the judged trace's. `whole`: the evaluator's own score of the solution, else
NaN. `redundancy`: the greatest of the sub-steps. `change`: the largest absolute retroactive change of a sub-step,
NaN outside hindsight mode. `cells`: bit `3 a + b` is set if a step of gold label `a` is called `b` by argmax.
`labelled`: 1 if the gold names a first error, or calls every step valid."""

_NO_CHANGE = float("nan")

Columns = dict[str, bytes | None]
GoldRows = NDArray[np.int64]
"""Gold of `n` steps, shape (n, 3): label, valid (`SILENT` where it is), and the number of sub-steps."""


def gold_rows(trace: Trace) -> GoldRows:
    """The gold of a trace."""
    rows = [(_or_silent(step.label), _or_silent(step.valid), len(step.substeps)) for step in trace.steps]
    return np.array(rows, np.int64)


def profile_columns(judgment: Judgment) -> Columns:
    """The profiles of a judgment by the name of their column, None for a mode that it does not give."""
    result, about = judgment.result, (gold_rows(judgment.trace), judgment.trace.digest, judgment.solution)
    empty: Columns = dict.fromkeys((Mode.ONLINE.value, Mode.OFFLINE.value))
    if isinstance(result, StepScores):
        return empty | {judgment.mode.value: pack_profile(result, *about, _NO_CHANGE)}
    change = float(np.abs(result.retroactive).max())
    return {name: pack_profile(getattr(result, name), *about, change) for name in empty}


def pack_profile(scores: StepScores, gold: GoldRows, digest: str, whole: float | None, change: float) -> bytes:
    """The profile of one mode; the rows of `scores` are those of the sub-steps that `gold` counts."""
    label, valid, counts = gold.T
    starts = np.cumsum(counts) - counts
    least = scores.by_step(np.repeat(np.arange(len(counts)), counts)).probs
    silent = np.logical_or.reduceat(scores.probs.sum(axis=1) == 0, starts)
    validity = np.where(silent, np.float32(np.nan), least[:, Label.NEU] + least[:, Label.POS])
    head = np.zeros((), HEAD)
    head["digest"] = digest[:16].encode()
    head["whole"] = np.nan if whole is None else whole
    head["redundancy"] = scores.redundancy.max()
    head["change"] = change
    head["cells"] = _cells(label, silent, least)
    head["labelled"] = (valid == 0).any() or (valid == 1).all()
    return head.tobytes() + validity.astype("<f4").tobytes()


def cell_bit(gold: Label, called: Label) -> int:
    """The bit of `cells` for steps of gold label `gold` that are called `called`."""
    return 1 << (len(Label) * gold + called)


def _cells(label: NDArray[np.int64], silent: NDArray[np.bool_], least: NDArray[np.float32]) -> int:
    read = (label != SILENT) & ~silent
    met = set((len(Label) * label[read] + least[read].argmax(axis=1)).tolist())
    return sum(1 << int(cell) for cell in met)


def _or_silent(value: int | None) -> int:
    return SILENT if value is None else int(value)


def unpack_profiles(profiles: Sequence[bytes]) -> tuple[Any, NDArray[np.int64], NDArray[np.float32]]:
    """The heads of `n` profiles, shape (n,) of `HEAD`; the number of steps of each, (n,); and the validities of all
    steps, one profile after the other. Raises `DamagedError` if one is cut off."""
    sizes = np.fromiter(map(len, profiles), np.int64, len(profiles))
    if ((sizes <= HEAD.itemsize) | (sizes % 4 != HEAD.itemsize % 4)).any():
        raise DamagedError("profiles: one is cut off.")
    data = np.frombuffer(b"".join(profiles), np.uint8)
    places = (np.cumsum(sizes) - sizes)[:, None] + np.arange(HEAD.itemsize)
    heads = np.ascontiguousarray(data[places]).view(HEAD)[:, 0]
    of_steps = np.ones(len(data), np.bool_)
    of_steps[places] = False
    return heads, (sizes - HEAD.itemsize) // 4, data[of_steps].view("<f4")
