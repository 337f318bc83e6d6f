"""Profiles: step verdicts in packed form, so that the verdicts on a whole dataset can be read at once.

A profile belongs to one judgment and one mode. It consists of a head of fixed size and the validity of every step
as little-endian float32, NaN if missing. It does not depend on thresholds, so new thresholds leave it unchanged.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from stepsight.core.arrays import AnyInts, Bools, Floats32, Ints
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.label import Label
from stepsight.core.metrics.table import SILENT
from stepsight.core.scores import StepScores, first_of_steps, least_valid
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
NaN outside hindsight mode. `cells`: bit
`3 a + b` is set if a step of gold label `a` is called `b` by argmax. `labelled`: 1 if the gold names a first error,
or calls every step valid."""

Columns = dict[str, bytes | None]


def profile_columns(judgment: Judgment, digest: str | None = None) -> Columns:
    """Return the profiles of a judgment, keyed by column name. The profile of a mode without scores is None."""
    trace, result, whole = judgment.trace, judgment.result, judgment.solution
    empty: Columns = dict.fromkeys((Mode.ONLINE.value, Mode.OFFLINE.value))
    if isinstance(result, StepScores):
        return empty | {judgment.mode.value: pack_profile(trace, result, whole, digest=digest)}
    change = float(np.abs(result.retroactive).max())
    return {name: pack_profile(trace, getattr(result, name), whole, change, digest) for name in empty}


def pack_profile(
    trace: Trace,
    scores: StepScores,
    whole: float | None,
    change: float = float("nan"),
    digest: str | None = None,
) -> bytes:
    """Pack the profile of one mode from a trace's sub-step scores.

    `whole` is the evaluator's own score of the solution, and `change` is the largest absolute retroactive change.
    `digest` is the one that is kept with the judgment, by default the trace's.
    """
    gold = [step.label for step in trace.steps], [step.valid for step in trace.steps]
    label, valid = np.array([[SILENT if value is None else value for value in values] for values in gold], np.int64)
    least, redundancy, silent = step_rows(scores.probs, trace.owners)
    called = scores.probs[least]
    head = np.zeros((), HEAD)
    head["digest"] = (digest or trace.digest)[:16].encode()
    head["whole"] = np.nan if whole is None else whole
    head["redundancy"] = redundancy.max()
    head["change"] = change
    head["cells"] = _cells(label, silent, called)
    head["labelled"] = (valid == 0).any() or (valid == 1).all()
    validity = np.where(silent, np.nan, called[:, Label.NEU] + called[:, Label.POS])
    return head.tobytes() + validity.astype("<f4").tobytes()


def step_rows(probs: Floats32, owners: AnyInts) -> tuple[Ints, Floats32, Bools]:
    """Reduce sub-step scores of shape (sub-steps, 3) to steps.

    Returns three arrays of shape (steps,): the index of each step's least valid sub-step, the greatest redundancy
    among its sub-steps, and whether any of its sub-steps has no scores. `owners` holds the index of the step that
    each sub-step belongs to, in ascending order.
    """
    silent = unsaid(probs)
    validity = np.where(silent, np.float32(np.nan), probs[:, Label.NEU] + probs[:, Label.POS])
    first = first_of_steps(owners)
    redundancy = np.maximum.reduceat(probs[:, Label.NEU], first)
    return least_valid(validity, owners), redundancy, np.logical_or.reduceat(silent, first)


def unsaid(probs: Floats32) -> Bools:
    """Return a mask that selects the rows without scores, which contain only zeros or NaN."""
    silent: Bools = ~probs.any(axis=1) | np.isnan(probs[:, 0])
    return silent


def cell_bit(gold: Label, called: Label) -> int:
    """Return the bit of `cells` for a step with the gold label `gold` and the evaluator's label `called`."""
    return 1 << (len(Label) * gold + called)


def _cells(label: Ints, silent: Bools, probs: Floats32) -> int:
    read = (label != SILENT) & ~silent
    met = set((len(Label) * label[read] + probs[read].argmax(axis=1)).tolist())
    return sum(1 << int(cell) for cell in met)


def unpack_profiles(profiles: Sequence[bytes]) -> tuple[Any, Ints, Floats32]:
    """Unpack `n` profiles into their heads, step counts and step validities.

    The heads have type `HEAD` and, like the step counts, shape (n,). The validities of all steps are concatenated,
    profile by profile. Raises `DamagedError` if a profile is truncated.
    """
    sizes = np.fromiter(map(len, profiles), np.int64, len(profiles))
    if ((sizes <= HEAD.itemsize) | (sizes % 4 != HEAD.itemsize % 4)).any():
        raise DamagedError("profiles: one is cut off.")
    data = np.frombuffer(b"".join(profiles), np.uint8)
    places = (np.cumsum(sizes) - sizes)[:, None] + np.arange(HEAD.itemsize)
    heads = np.ascontiguousarray(data[places]).view(HEAD)[:, 0]
    of_steps = np.ones(len(data), np.bool_)
    of_steps[places] = False
    return heads, (sizes - HEAD.itemsize) // 4, data[of_steps].view("<f4")
