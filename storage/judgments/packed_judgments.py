"""Profiles: what a judgment says of each step, packed, so that those of a whole dataset are read at once.

A profile is of one mode: a head of fixed size, then the validity of every step as little-endian float32, NaN where
nothing was said of it. It holds nothing that depends on thresholds, so that choosing others changes no profile.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Connection, delete, func, insert, literal, select, true, tuple_

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.label import Label
from stepsight.core.metrics.table import SILENT
from stepsight.core.scores import Hindsight, Outputs, StepScores
from stepsight.core.trace import Trace
from stepsight.storage.database.schema import EvaluatorRow, JudgedRow, JudgmentRow, ProfileRow, StepRow, SubstepRow
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
"""`digest`: the first characters of the judged trace's. `whole`: what was said of the solution by itself, else NaN.
`redundancy`: the greatest of the sub-steps. `change`: the largest absolute retroactive change of a sub-step, NaN
outside hindsight mode. `cells`: bit `3 a + b` is set where a step of gold label `a` is called `b` by argmax.
`labelled`: 1 where the gold names a first error, or calls every step valid."""

_BATCH = 1000
_KEY = ("evaluator_id", "dataset_id", "mode", "trace_id")
_NO_CHANGE = float("nan")

Columns = dict[str, bytes | None]
GoldRows = NDArray[np.int64]
"""Gold of `n` steps, shape (n, 3): label, valid (`SILENT` where it is), and the number of sub-steps."""


def gold_rows(trace: Trace) -> GoldRows:
    """The gold of a trace."""
    rows = [(_or_silent(step.label), _or_silent(step.valid), len(step.substeps)) for step in trace.steps]
    return np.array(rows, np.int64)


def profile_columns(judgment: Judgment) -> Columns:
    """The profiles of a judgment by the name of their column, None where its mode gives none."""
    trace = judgment.trace
    return _columns(judgment.result, judgment.mode, gold_rows(trace), trace.digest, judgment.solution)


def _columns(
    result: StepScores | Hindsight, mode: Mode, gold: GoldRows, digest: str, whole: float | None
) -> Columns:
    empty: Columns = dict.fromkeys((Mode.ONLINE.value, Mode.OFFLINE.value))
    if isinstance(result, StepScores):
        return empty | {mode.value: pack_profile(result, gold, digest, whole, _NO_CHANGE)}
    change = float(np.abs(result.retroactive).max())
    return {name: pack_profile(getattr(result, name), gold, digest, whole, change) for name in empty}


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


def fill_profiles(connection: Connection) -> None:
    """Write the profiles of every judgment of a database that has none yet, and note who has judged what.

    What migration 0003 runs.
    """
    _fill(connection, true())
    pairs = select(JudgmentRow.dataset_id, JudgmentRow.evaluator_id, literal(1)).distinct()
    connection.execute(insert(JudgedRow).from_select(["dataset_id", "evaluator_id", "revision"], pairs))


def refill_verdicts(connection: Connection) -> None:
    """Write the profiles of evaluators that speak in words again.

    What migration 0006 runs: `labelled` was 0 where such an evaluator says nothing of the steps behind its blame.
    """
    evaluators = connection.execute(select(EvaluatorRow.id, EvaluatorRow.info)).all()
    speaking = [row.id for row in evaluators if row.info.get("outputs") == Outputs.VERDICT]
    connection.execute(delete(ProfileRow).where(ProfileRow.evaluator_id.in_(speaking)))
    _fill(connection, JudgmentRow.evaluator_id.in_(speaking))


def refill(connection: Connection, ids: Sequence[int]) -> None:
    """Write the profiles of the judgments with these ids again."""
    for start in range(0, len(ids), _BATCH):
        part = JudgmentRow.id.in_(ids[start : start + _BATCH])
        keys = tuple_(*(getattr(ProfileRow, name) for name in _KEY))
        connection.execute(
            delete(ProfileRow).where(keys.in_(select(*(getattr(JudgmentRow, name) for name in _KEY)).where(part)))
        )
        _fill(connection, part)


def _fill(connection: Connection, chosen: ColumnElement[bool]) -> None:
    judgments = select(
        JudgmentRow.id, JudgmentRow.trace_id, JudgmentRow.evaluator_id, JudgmentRow.dataset_id, JudgmentRow.mode,
        JudgmentRow.trace_digest, JudgmentRow.probabilities, JudgmentRow.solution,
    ).where(chosen).order_by(JudgmentRow.id).limit(_BATCH)  # fmt: skip
    last = 0
    while batch := connection.execute(judgments.where(JudgmentRow.id > last)).all():
        gold = read_gold_rows(connection, sorted({row.trace_id for row in batch}))
        rows = [_filled(row, gold[row.trace_id]) for row in batch if row.trace_id in gold]
        if rows:
            connection.execute(insert(ProfileRow), rows)
        last = batch[-1].id


def _filled(row: Any, gold: GoldRows) -> dict[str, Any]:
    """A profile's row; without profiles where the judgment is of other steps than the trace has now."""
    key = {name: getattr(row, name) for name in _KEY}
    probs = np.frombuffer(row.probabilities, "<f4").reshape(-1, len(Label)).astype(np.float32)
    size, mode = int(gold[:, 2].sum()), Mode(row.mode)
    if len(probs) != (size * (size + 1) // 2 if mode == Mode.HINDSIGHT else size):
        return key | {"online": None, "offline": None}
    result: StepScores | Hindsight = StepScores(probs)
    if mode == Mode.HINDSIGHT:
        result = replace(Hindsight.from_packed(probs), ends=step_ends(gold))
    return key | _columns(result, mode, gold, row.trace_digest, row.solution)


def step_ends(gold: GoldRows) -> GoldRows:
    """`Trace.step_ends` of the trace of that gold."""
    ends: GoldRows = np.repeat(gold[:, 2].cumsum() - 1, gold[:, 2])
    return ends


def read_gold_rows(connection: Connection, trace_ids: Sequence[int]) -> dict[int, GoldRows]:
    """The gold of traces, by their ids."""
    counts = (
        select(SubstepRow.trace_id, SubstepRow.step, func.count().label("substeps"))
        .where(SubstepRow.trace_id.in_(trace_ids))
        .group_by(SubstepRow.trace_id, SubstepRow.step)
    )
    sizes = {(row.trace_id, row.step): row.substeps for row in connection.execute(counts)}
    steps = select(StepRow.trace_id, StepRow.position, StepRow.label, StepRow.valid)
    result = connection.execute(
        steps.where(StepRow.trace_id.in_(trace_ids)).order_by(StepRow.trace_id, StepRow.position)
    )
    rows: defaultdict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for row in result:
        size = sizes.get((row.trace_id, row.position), 0)
        rows[row.trace_id].append((_or_silent(row.label), _or_silent(row.valid), size))
    return {trace_id: np.array(values, np.int64) for trace_id, values in rows.items()}


def unpack_profiles(profiles: Sequence[bytes]) -> tuple[Any, NDArray[np.int64], NDArray[np.float32]]:
    """The heads of `n` profiles, shape (n,) of `HEAD`; how many steps each has, (n,); and the validities of all
    steps, one profile after the other. Raises `DamagedError` where one is cut off."""
    sizes = np.fromiter(map(len, profiles), np.int64, len(profiles))
    if ((sizes <= HEAD.itemsize) | (sizes % 4 != HEAD.itemsize % 4)).any():
        raise DamagedError("profiles: one is cut off.")
    data = np.frombuffer(b"".join(profiles), np.uint8)
    places = (np.cumsum(sizes) - sizes)[:, None] + np.arange(HEAD.itemsize)
    heads = np.ascontiguousarray(data[places]).view(HEAD)[:, 0]
    of_steps = np.ones(len(data), np.bool_)
    of_steps[places] = False
    return heads, (sizes - HEAD.itemsize) // 4, data[of_steps].view("<f4")
