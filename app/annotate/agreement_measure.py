"""Measuring how well a campaign's annotators agree, and tabulating the results."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import func, select

from stepsight.app.annotate.agreement_tables import (
    STEPWISE,
    ViewRatings,
    annotator_table,
    evidence_table,
    gold_table,
    later_table,
    majority_table,
    mind_table,
    overall_table,
    pair_table,
    position_table,
    shared_traces,
    step_table,
    view_ratings,
    view_table,
)
from stepsight.core.metrics.bootstrap import DRAWS, resamples
from stepsight.storage.database.labelling_schema import EventRow
from stepsight.storage.database.store import NotFoundError, Store
from stepsight.storage.judgments.evaluators import read_data_version
from stepsight.storage.labelling.campaigns import Campaign
from stepsight.storage.labelling.results.ratings import CampaignRatings, read_ratings
from stepsight.training.report.tables import Table


@dataclass(frozen=True, eq=False)
class CampaignAgreement:
    """The ratings of a campaign, the ratings of a second campaign to compare with, and the tables of agreement.
    `against` is None without a comparison. Tables without rows are left out."""

    ratings: CampaignRatings
    against: CampaignRatings | None
    tables: tuple[Table, ...]

    def table(self, name: str) -> Table | None:
        """Return the table with this name, or None if it does not exist."""
        return next((table for table in self.tables if table.name == name), None)

    def find_table(self, name: str) -> Table:
        """Return the table with this name. Raises `NotFoundError` if it does not exist. The name `steps` stands for
        the table of all steps, which is built on demand and not listed in `tables`."""
        table = step_table(self.ratings.queue) if name == "steps" else self.table(name)
        if table is None:
            raise NotFoundError(f"There is no table {name!r:.80} of this campaign.", "Follow a link of its page.")
        return table


def measure_agreement(
    store: Store,
    campaign: Campaign,
    against: Campaign | None = None,
    *,
    named: bool = True,
    draws: int = DRAWS,
) -> CampaignAgreement:
    """Measure the agreement of a campaign's annotators, optionally compared with the campaign `against`.

    The result is cached until an event is logged in one of the campaigns, or the dataset or its judgments change.
    `named` means the same as for `read_ratings`, and `draws` is the number of bootstrap draws.
    """
    ids = [one.id for one in (campaign, against) if one is not None]
    with store.read() as session:
        # The number of the last event alone is not enough: of two events, the one with the larger number may be
        # stored first.
        newest = select(func.count(), func.max(EventRow.id)).where(EventRow.campaign_id.in_(ids))
        version = (*session.execute(newest).one(), *read_data_version(store, campaign.dataset_id))
    key = ("agreement", *ids, named, draws)

    def measure() -> CampaignAgreement:
        read = partial(read_ratings, store, named=named)
        return _measure(read(campaign), None if against is None else read(against), draws)

    return store.cache.get(key, version, measure, _size)


def _measure(ratings: CampaignRatings, against: CampaignRatings | None, draws: int) -> CampaignAgreement:
    tables = [*_of_campaign(ratings, draws), *_of_views(ratings, against, draws)]
    return CampaignAgreement(ratings, against, tuple(table for table in tables if table.rows))


def _of_campaign(ratings: CampaignRatings, draws: int) -> list[Table]:
    queue, hidden = ratings.queue, ratings.hidden
    weights = resamples(len(queue.traces), draws)
    return [
        overall_table(queue, weights),
        pair_table(queue, weights),
        annotator_table(queue, weights),
        gold_table(queue, weights, "gold", "Against the benchmark's gold"),
        gold_table(hidden, resamples(len(hidden.traces), draws), "gold-items", "On hidden gold items"),
        position_table(queue, weights),
    ]


def _of_views(ratings: CampaignRatings, against: CampaignRatings | None, draws: int) -> list[Table]:
    weights = resamples(len(ratings.queue.traces), draws)
    tables = []
    if ratings.campaign.view == STEPWISE:
        queue = ratings.queue
        tables = [one(queue, weights) for one in (mind_table, later_table, evidence_table)]
    if against is None:
        sides = view_ratings(ratings, ratings.queue)
        return [view_table(sides, ratings.queue, weights), *tables] if len(sides) > 1 else tables
    mine, theirs = shared_traces(ratings.queue, against.queue)
    if not mine.traces:
        return tables
    weights = resamples(len(mine.traces), draws)
    own, others = view_ratings(ratings, mine), view_ratings(against, theirs)
    compared = majority_table(*_opposed(own, others), weights)
    return [view_table([*own, *others], mine, weights), compared, *tables]


def _opposed(own: Sequence[ViewRatings], others: Sequence[ViewRatings]) -> tuple[ViewRatings, ViewRatings]:
    """Choose which ratings of two campaigns to compare.

    The labels that a stepwise campaign collected first, while later steps were hidden, are compared with the labels
    of a campaign that shows whole traces. If both campaigns are stepwise, or neither is, the final labels are
    compared.
    """
    if len(own) == len(others):
        return own[-1], others[-1]
    return (own[0], others[-1]) if len(own) > len(others) else (others[0], own[-1])


def _size(agreement: CampaignAgreement) -> int:
    """Estimate the size of the result in bytes."""
    sides = [side for one in (agreement.ratings, agreement.against) if one for side in (one.queue, one.hidden)]
    arrays = sum(side.last.codes.size * 32 + side.gold.nbytes * 4 + 500 * len(side.traces) for side in sides)
    return arrays + sum(200 * len(table.rows) * len(table.columns) for table in agreement.tables)
