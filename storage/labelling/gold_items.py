"""Hidden gold items: traces whose verdict is known, mixed into what each annotator gets, to tell how they do."""

import math
import random
from collections.abc import Sequence

from sqlalchemy import exists, func, select
from sqlalchemy.orm import Session

from core.errors import UserError
from storage.labelling.plans import Plan
from storage.schema import DatasetRow, StepRow, TraceRow

GALLERY = "gallery"
"""The dataset of the shipped traces."""

GOLD = "gold"
_SPARE = 10


def draw_gold(session: Session, plan: Plan, ids: Sequence[int]) -> list[int]:
    """Traces for the gold items of a campaign of the traces `ids`, in an order drawn by chance; [] at rate 0.

    As many as one who labels the whole queue needs, and a few more. Raises `UserError` where there is none.
    """
    if not plan.gold_rate:
        return []
    rng = random.Random(f"gold {plan.seed}")
    taken = set(ids)
    most = math.ceil(len(ids) * plan.gold_rate / (1 - plan.gold_rate)) + _SPARE
    sources = (plan.gold_dataset,) if plan.gold_dataset is not None else (plan.dataset, GALLERY)
    for name in sources:
        if found := [id for id in _with_full_gold(session, name) if id not in taken]:
            return rng.sample(found, min(most, len(found)))
    raise UserError(
        f"{' and '.join(sources)}: no trace outside the campaign has gold for all that is labelled.",
        "Name another dataset for the gold items, or set their rate to 0.",
    )


def _with_full_gold(session: Session, dataset: str) -> list[int]:
    """The traces in which gold says of every step up to the first error, or of every step, whether it is valid."""
    last = func.coalesce(TraceRow.first_error, TraceRow.n_steps)
    silent = exists().where(StepRow.trace_id == TraceRow.id, StepRow.position <= last, StepRow.valid.is_(None))
    found = (
        select(TraceRow.id)
        .join(DatasetRow, DatasetRow.id == TraceRow.dataset_id)
        .where(DatasetRow.name == dataset, TraceRow.has_gold, ~silent)
        .order_by(TraceRow.position)
    )
    return list(session.scalars(found))
