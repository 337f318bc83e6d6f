"""Converting the gold of a dataset to a convention (`core.repair`), for figures and exports.

Gold is read by the convention that its dataset names, and by `until-ceased` if that names none.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from stepsight.core.metrics.table import SILENT, codes_of_gold, gold_of_codes
from stepsight.core.repair import Convention, convert, find_convention
from stepsight.storage.database.schema import DatasetRow, TraceRow
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.columns import TraceGold, starts
from stepsight.storage.traces.columns import read_links

# The traces whose links are read at once.
_MOST = 2_000
_G = TypeVar("_G", bound=TraceGold)


def in_convention(store: Store, gold: _G, name: str) -> _G:
    """Like `apply_convention`, but with a store."""
    if not name:
        return gold
    with store.read() as session:
        return apply_convention(session, gold, name)


def apply_convention(session: Session, gold: _G, name: str) -> _G:
    """Return a copy of gold labels that follows a convention, or the unchanged labels if its name is "". Raises
    `UserError` if there is no such convention."""
    convention = find_convention(name)
    wrong = np.flatnonzero(gold.valid == 0)
    if convention is None or not len(wrong):
        return gold
    first = starts(gold.counts)
    label, valid = gold.label.copy(), gold.valid.copy()
    places = np.unique(gold.trace[wrong]).tolist()
    ids = [int(gold.trace_ids[place]) for place in places]
    sources = _read_sources(session, ids)
    if not sources and convention == Convention.UNTIL_CEASED:
        return gold
    links = read_links(session, ids)
    for place in places:
        size, start = int(gold.counts[place]), int(first[place])
        of_trace = links.get(int(gold.trace_ids[place]), {})
        steps = range(start, start + size)
        before = [gold_of_codes(int(label[step]), int(valid[step])) for step in steps]
        repairs = [of_trace.get(step, (None, None))[0] for step in range(size)]
        source = sources.get(int(gold.trace_ids[place]), Convention.UNTIL_CEASED)
        after = convert(before, repairs, source, convention)
        for step, old, new in zip(steps, before, after, strict=True):
            if old != new:
                label[step], valid[step] = codes_of_gold(new)
    repaired = None if gold.repaired is None else np.where(valid == 0, gold.repaired, SILENT)
    return replace(gold, label=label, valid=valid, repaired=repaired)


def _read_sources(session: Session, trace_ids: list[int]) -> dict[int, Convention]:
    """Return the convention that the gold of each trace follows, by trace id, if its dataset names one."""
    sources: dict[int, Convention] = {}
    named = select(TraceRow.id, DatasetRow.convention).join(DatasetRow, DatasetRow.id == TraceRow.dataset_id)
    for part in _parts(trace_ids):
        rows = session.execute(named.where(TraceRow.id.in_(part), DatasetRow.convention != ""))
        sources.update((trace_id, Convention(name)) for trace_id, name in rows)
    return sources


def _parts(trace_ids: list[int]) -> Iterable[list[int]]:
    return (trace_ids[start : start + _MOST] for start in range(0, len(trace_ids), _MOST))
