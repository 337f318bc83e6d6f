"""Estimates for all traces of a campaign from the labels so far."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from stepsight.core.arrays import Floats64, Ints
from stepsight.core.metrics.bootstrap import Value
from stepsight.core.metrics.labels.sampling import estimate_mean
from stepsight.core.metrics.table import SILENT
from stepsight.storage.browse.verdict_columns import read_solution_verdicts
from stepsight.storage.database.labelling_schema import ItemRow, SlotRow
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import StoredEvaluator, evaluators_of, with_distinct_names
from stepsight.storage.labelling.assignments import FREE, LEASED
from stepsight.storage.labelling.campaigns import Campaign
from stepsight.storage.labelling.ordering import GOLD, RANDOM
from stepsight.storage.labelling.plan import Ordering
from stepsight.storage.labelling.results.consensus import LabelledTraces
from stepsight.storage.traces.columns import read_trace_columns

_WHOLLY_DRAWN = (Ordering.RANDOM, Ordering.INFORMATION)


@dataclass(frozen=True)
class CampaignEstimates:
    """Estimates for the `total` traces of a campaign, from `labelled` of them.

    Another `undecided` traces are left out, because their annotators have not agreed on them. `with_error` is the
    share of traces with an error. `right` maps each evaluator to the share of traces on which its verdict, error or
    no error, equals the annotators'. `unjudged` names the evaluators that have not judged all traces.
    """

    total: int
    labelled: int
    undecided: int
    with_error: Value
    right: Mapping[str, Value]
    unjudged: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Verdicts:
    """An evaluator's verdicts on the solutions of a campaign. The arrays have the shape (n,): `valid` holds 1, 0 or
    `SILENT`, and `validity` is NaN if missing."""

    valid: Ints
    validity: Floats64


def estimate(store: Store, campaign: Campaign, *, exposed: bool = False) -> CampaignEstimates | None:
    """Estimate how many traces have an error, and how often each evaluator's verdict is right.

    Traces count in the order of the queue, up to the first that nobody has labelled yet, so that they are a random
    sample. In an order by disagreement or change, only those placed at random count. Annotations by people who had
    seen information that the campaign hides count only with `exposed`. A campaign in file order is not a random
    sample, so the result is None.
    """
    if campaign.ordering == Ordering.FILE:
        return None
    labelled = LabelledTraces(store, campaign, exposed=exposed)
    found = {one.trace_id: _has_error(one.labels) for one in labelled.consensus()}
    evaluators = with_distinct_names(evaluators_of(store, campaign.dataset_id))
    with store.read() as session:
        queue, ids = _read_queue(session, campaign, found)
        verdicts = _read_verdicts(session, campaign.dataset_id, evaluators, ids)
    places = np.searchsorted(ids, [trace_id for trace_id, _ in queue])
    chances = np.array([chance or 1 / (len(ids) - drawn) for drawn, (_, chance) in enumerate(queue)])
    bad = np.array([found.get(trace_id, np.nan) for trace_id, _ in queue])
    clean = _expected([one.validity for one in verdicts.values()], len(ids))
    judged = {name: one.valid for name, one in verdicts.items() if (one.valid != SILENT).all()}
    right = {}
    for name, valid in judged.items():
        hits = np.where(np.isnan(bad), np.nan, valid[places] != bad)
        right[name] = estimate_mean(hits, places, chances, np.where(valid == 1, clean, 1 - clean))
    undecided = int(np.isnan(bad).sum())
    return CampaignEstimates(
        total=len(ids),
        labelled=len(bad) - undecided,
        undecided=undecided,
        with_error=estimate_mean(bad, places, chances, 1 - clean),
        right=right,
        unjudged=tuple(name for name in verdicts if name not in judged),
    )


def _has_error(labels: Sequence[str | None]) -> float:
    """Return 1.0 for labels with an error, 0.0 for complete ones without, and NaN otherwise."""
    if "neg" in labels:
        return 1.0
    return np.nan if None in labels else 0.0


def _expected(validities: Sequence[Floats64], total: int) -> Floats64:
    """Return the mean validity of each trace as the probability that it has no error, or 0.5 if there is none."""
    known = [np.where(np.isnan(one), 0, 1) for one in validities]
    sums = sum(map(np.nan_to_num, validities), np.zeros(total))
    counts = sum(known, np.zeros(total))
    return np.where(counts > 0, sums / np.maximum(counts, 1), 0.5)


def _read_queue(
    session: Session, campaign: Campaign, found: Collection[int]
) -> tuple[list[tuple[int, float | None]], Ints]:
    """Return the random sample of the queue that has been labelled, as pairs of a trace id and its chance, and the
    sorted ids of all traces of the queue. `found` holds the ids of the traces with labels."""
    of_campaign = ItemRow.campaign_id == campaign.id, ItemRow.chosen != GOLD
    items = select(ItemRow.id, ItemRow.trace_id, ItemRow.chosen, ItemRow.chance).where(*of_campaign)
    rows = session.execute(items.order_by(ItemRow.place)).all()
    to_do = select(SlotRow.item_id).where(SlotRow.campaign_id == campaign.id, SlotRow.state.in_((FREE, LEASED)))
    open_items = set(session.scalars(to_do))
    queue = []
    for row in rows:
        if row.chosen != RANDOM and campaign.ordering not in _WHOLLY_DRAWN:
            continue
        if row.trace_id not in found and row.id in open_items:
            break
        queue.append((row.trace_id, row.chance))
    return queue, np.sort(np.array([row.trace_id for row in rows], np.int64))


def _read_verdicts(
    session: Session, dataset_id: int, evaluators: Sequence[StoredEvaluator], ids: Ints
) -> dict[str, _Verdicts]:
    """Return each evaluator's verdicts on the traces `ids`, offline or, where that is missing, online."""
    columns = read_trace_columns(session, dataset_id)
    order = np.argsort(columns.trace_ids)
    places = order[np.searchsorted(columns.trace_ids, ids, sorter=order)]
    found = {}
    for one in evaluators:
        validity, valid = read_solution_verdicts(session, columns, dataset_id, one.id)
        found[one.name] = _Verdicts(valid[places].astype(np.int64), validity[places].astype(np.float64))
    return found
