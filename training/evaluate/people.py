"""Agreement of an evaluator with people who labelled a dataset in campaigns, beside the agreement among people.

Only blind labels count, and hidden gold items do not. Verdicts on validity are compared.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import func, select

from stepsight.core.metrics.agreement import RaterPair, agreeing, alpha, kappa
from stepsight.core.metrics.bootstrap import Value, Weights
from stepsight.core.metrics.figures import Subject
from stepsight.core.metrics.ratings import Ratings, valid_of
from stepsight.storage.database.labelling_schema import CampaignRow, EventRow
from stepsight.storage.database.schema import TraceRow
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.campaigns import list_campaigns
from stepsight.storage.labelling.results.ratings import read_ratings


@dataclass(frozen=True)
class PeopleAgreement:
    """The agreement of an evaluator's verdicts with the majority label of a campaign.

    `agreeing` is the share of equal verdicts over `steps` steps of `traces` traces, and `kappa` Cohen's kappa.
    `among_people` is the share of equal pairs of labels, by validity, that two people gave to one step.
    """

    campaign: str
    people: int
    traces: int
    steps: int
    agreeing: Value
    kappa: Value
    among_people: Value


def agreement_with_people(
    store: Store, dataset_id: int, subject: Subject, weights: Weights
) -> Iterator[PeopleAgreement]:
    """Yield the agreement with each campaign of a dataset in which a step was labelled that the evaluator judged.
    `weights` are the resamples of the dataset's traces."""
    columns = select(TraceRow.id, TraceRow.digest).where(TraceRow.dataset_id == dataset_id)
    with store.read() as session:
        found = session.execute(columns.order_by(TraceRow.position))
        places = {(id, digest): place for place, (id, digest) in enumerate(found)}
    for campaign in list_campaigns(store):
        if campaign.dataset_id != dataset_id:
            continue
        rated = read_ratings(store, campaign).queue
        # A trace that has changed since it was rated has no place.
        of_trace = np.array([places.get((one.trace_id, one.digest), -1) for one in rated.traces], np.int64)
        trace = of_trace[rated.last.trace]
        pair = _compared(rated.last, trace, subject)
        if not len(pair):
            continue
        known = trace >= 0
        yield PeopleAgreement(
            campaign.name,
            len(rated.last.people),
            pair.traces,
            len(pair),
            agreeing(pair, weights),
            kappa(pair, weights),
            alpha(rated.last.validity[:, known], trace=trace[known], weights=weights).agreeing,
        )


def labels_version(store: Store, dataset_id: int) -> tuple[int, int]:
    """Return a version key that changes whenever people's labels of a dataset may change."""
    events = (
        select(func.count(), func.max(EventRow.id))
        .join(CampaignRow, CampaignRow.id == EventRow.campaign_id)
        .where(CampaignRow.dataset_id == dataset_id)
    )
    with store.read() as session:
        count, newest = session.execute(events).one()
    return count, newest or 0


def _compared(ratings: Ratings, trace: NDArray[np.int64], subject: Subject) -> RaterPair:
    """Return people's majority verdicts beside the evaluator's, on the steps that have both. `trace` is the place
    in the dataset of the trace of each rated step, or -1."""
    table = subject.table
    limit = np.float32(0.5 if subject.outputs.in_words else subject.thresholds.validity)
    said = np.where(np.isnan(table.validity), np.nan, table.validity >= limit)
    begins = np.searchsorted(table.trace, np.arange(table.traces + 1))
    counts = np.diff(begins)
    there = (trace >= 0) & (ratings.position < counts[trace])
    row = np.where(there, begins[trace] + ratings.position, 0)
    verdicts = np.where(there, said[row], np.nan) if len(said) else np.full(len(trace), np.nan)
    return RaterPair.of(valid_of(ratings.majority), verdicts, trace)
