"""Gold of every step of a dataset as a column: by what the distribution of validities is told apart."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import text
from sqlalchemy.orm import Session

from stepsight.core.metrics.table import SILENT
from stepsight.storage.database.store import IN_PARTS
from stepsight.storage.traces.columns import TraceColumns

STEP_GOLD = ("wrong", "redundant", "right")
"""What the gold says of a step: that it is not valid; redundant; valid, and not that it is redundant."""

# One text for each trace: a row for each step would take three times as long to fetch.
_KIND = "CASE WHEN NOT s.valid THEN '0' WHEN s.label = 1 THEN '1' WHEN s.valid THEN '2' ELSE '-' END"
_STEPS = "FROM steps AS s JOIN traces AS t ON t.id = s.trace_id WHERE t.dataset_id = :dataset"
_TEXTS = {
    "sqlite": "SELECT id, group_concat(kind, '') FROM"
    f" (SELECT s.trace_id AS id, {_KIND} AS kind {_STEPS} ORDER BY s.trace_id, s.position) GROUP BY id",
    "postgresql": f"SELECT s.trace_id, string_agg({_KIND}, '' ORDER BY s.position) {_STEPS} GROUP BY s.trace_id",
}
_NONE = "-"


@dataclass(frozen=True, eq=False)
class StepGold:
    """The place in `STEP_GOLD` of what the gold says of each step, `SILENT` where it is; the steps of all traces
    one after the other."""

    kinds: NDArray[np.int8]

    @property
    def nbytes(self) -> int:
        return self.kinds.nbytes


def read_step_gold(session: Session, dataset_id: int, traces: TraceColumns) -> StepGold:
    """The gold of the steps of a dataset's traces."""
    statement = text(_TEXTS[session.get_bind().dialect.name])
    texts = [_NONE * steps for steps in traces.steps.tolist()]
    # Not through the session: what that does with each row would take most of the time.
    result = session.connection().execute(statement, {"dataset": dataset_id}, execution_options=IN_PARTS)
    for part in result.partitions():
        ids, found = zip(*part, strict=True)
        for place, kinds in zip(traces.places(np.array(ids, np.int64)).tolist(), found, strict=True):
            # Traces that came since their columns were read are passed over.
            if place != SILENT and len(kinds) == len(texts[place]):
                texts[place] = kinds
    signs = np.frombuffer("".join(texts).encode(), np.uint8)
    return StepGold(np.where(signs == ord(_NONE), SILENT, signs.astype(np.int16) - ord("0")).astype(np.int8))
