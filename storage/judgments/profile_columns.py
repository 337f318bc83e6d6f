"""Step profiles of an evaluator's judgments, read for a whole dataset at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from stepsight.core.arrays import Bools, Floats32, Ints
from stepsight.core.judgment import Mode
from stepsight.core.metrics.table import SILENT
from stepsight.storage.database.schema import JudgmentRow, ProfileRow, TraceRow
from stepsight.storage.database.store import IN_PARTS
from stepsight.storage.judgments.columns import starts, within
from stepsight.storage.judgments.judgments import giving, overruled
from stepsight.storage.judgments.step_profiles import HEAD, unpack_profiles
from stepsight.storage.traces.columns import TraceColumns


@dataclass(frozen=True, eq=False)
class Profiles:
    """The compact verdicts (profiles) of one mode on `m` traces.

    `places` holds the indices of the traces in their columns, `heads` the fixed-size values described at
    `step_profiles.HEAD`, and `counts` the step counts; all three have shape (m,). `validity` holds the validities
    of all steps, trace by trace.
    """

    places: Ints
    heads: Any
    counts: Ints
    validity: Floats32

    def where(self, wanted: Bools) -> "Profiles":
        """Return the profiles of the traces that the mask `wanted` of shape (m,) selects."""
        if wanted.all():
            return self
        steps = np.repeat(wanted, self.counts)
        return Profiles(self.places[wanted], self.heads[wanted], self.counts[wanted], self.validity[steps])

    @classmethod
    def joined(cls, parts: Sequence["Profiles"]) -> "Profiles":
        """Join several parts into one, sorted by the index of the trace."""
        none = cls(np.empty(0, np.int64), np.empty(0, HEAD), np.empty(0, np.int64), np.empty(0, np.float32))
        names = ("places", "heads", "counts", "validity")
        places, heads, counts, validity = (
            np.concatenate([getattr(part, name) for part in (none, *parts)]) for name in names
        )
        order = np.argsort(places, kind="stable")
        steps = np.repeat(starts(counts)[order], counts[order]) + within(counts[order])
        return cls(places[order], heads[order], counts[order], validity[steps])


@dataclass(frozen=True, eq=False)
class JudgedProfiles:
    """The profiles of up-to-date judgments that were made in the mode `stored`.

    `given` and `standing` map modes to profiles. `given` has every mode for which these judgments provide scores.
    `standing` includes only the judgments that stand in the mode.
    """

    stored: Mode
    given: dict[Mode, Profiles]
    standing: dict[Mode, Profiles]


def read_profiles(
    session: Session, traces: TraceColumns, dataset_id: int, evaluator_id: int, wanted: Sequence[Mode] = tuple(Mode)
) -> Iterator[JudgedProfiles]:
    """Yield the profiles of an evaluator's judgments in the modes `wanted`, in batches of traces."""
    row = JudgmentRow
    of_pair = row.evaluator_id == evaluator_id, row.dataset_id == dataset_id
    there = {mode for mode in Mode if session.scalar(select(exists().where(*of_pair, row.mode == mode.value)))}
    for stored in wanted:
        if stored in there:
            yield from _read_stored(session, traces, dataset_id, evaluator_id, stored, there - {stored})


def _read_stored(
    session: Session, traces: TraceColumns, dataset_id: int, evaluator_id: int, stored: Mode, others: set[Mode]
) -> Iterator[JudgedProfiles]:
    row = ProfileRow
    modes = [mode for mode in (Mode.ONLINE, Mode.OFFLINE) if stored in giving(mode)]
    overruled_ids = {
        mode: _overruled_ids(session, dataset_id, evaluator_id, stored, mode)
        for mode in modes
        if others.intersection(giving(mode))
    }
    columns = [getattr(row, mode.value) for mode in modes]
    of_pair = row.evaluator_id == evaluator_id, row.dataset_id == dataset_id, row.mode == stored.value
    wanted = *of_pair, columns[0].is_not(None)
    statement = select(row.trace_id, *columns).where(*wanted).order_by(row.trace_id)
    # Not through the session, whose work on each row would take most of the time.
    for part in session.connection().execute(statement, execution_options=IN_PARTS).partitions():
        ids, *packed = zip(*part, strict=True)
        places = traces.places(np.array(ids, np.int64))
        given = {mode: _fresh_profiles(traces, places, some) for mode, some in zip(modes, packed, strict=True)}
        standing = given | {
            mode: given[mode].where(~np.isin(traces.trace_ids[given[mode].places], ids))
            for mode, ids in overruled_ids.items()
        }
        yield JudgedProfiles(stored, given, standing)


def _fresh_profiles(traces: TraceColumns, places: Ints, packed: Sequence[bytes]) -> Profiles:
    heads, counts, validity = unpack_profiles(packed)
    fresh = (heads["digest"] == traces.digests[places]) & (counts == traces.steps[places])
    return Profiles(places, heads, counts, validity).where((places != SILENT) & fresh)


def _overruled_ids(session: Session, dataset_id: int, evaluator_id: int, stored: Mode, mode: Mode) -> Ints:
    """Return the ids of the traces whose judgment in `stored` does not stand in `mode` because a newer judgment
    does."""
    row = JudgmentRow
    of_pair = row.evaluator_id == evaluator_id, row.dataset_id == dataset_id, row.mode == stored.value
    ids = select(row.trace_id).join(TraceRow, TraceRow.id == row.trace_id).where(*of_pair, overruled(mode))
    return np.array(session.scalars(ids).all(), np.int64)
