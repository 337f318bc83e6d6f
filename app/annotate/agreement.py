"""`/annotate/agreement`: how well a campaign's annotators agree, for people who may see other people's labels.

`measure_agreement` makes the tables; the page and its downloads show them.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, Response
from markupsafe import Markup
from numpy.typing import NDArray
from sqlalchemy import func, select

from stepsight.app.annotate.adjudicate import AdjudicationAddress
from stepsight.app.annotate.agreement_tables import (
    STEPWISE,
    ViewRatings,
    agreeing_shares,
    annotator_table,
    evidence_table,
    gold_name,
    gold_table,
    later_table,
    majority_table,
    mind_table,
    overall_table,
    pair_table,
    shared_traces,
    step_table,
    view_ratings,
    view_table,
)
from stepsight.app.annotate.campaigns import choose_html, links_of, terms
from stepsight.app.markup.text import MARKS
from stepsight.app.web.access import RequiresRight, Right, find_user_of
from stepsight.app.web.html import plain_page, render
from stepsight.app.web.pages import Number, PageNumber, PageQuery, read_query
from stepsight.core.errors import UserError, counted
from stepsight.core.metrics.agreement import RATING_NAMES
from stepsight.core.metrics.bootstrap import DRAWS, Value, resamples
from stepsight.core.trace import LABEL_NAMES, Label
from stepsight.storage.database.labelling_schema import EventRow
from stepsight.storage.database.store import ForbiddenError, NotFoundError, Store
from stepsight.storage.judgments.evaluators import read_versions
from stepsight.storage.labelling.campaigns import Campaign, get_campaign, list_campaigns
from stepsight.storage.labelling.ratings import CampaignRatings, RatedTraces, read_ratings
from stepsight.storage.labelling.submissions import LabelledItem
from stepsight.storage.people.blindness import hidden_error, hidden_traces
from stepsight.training.report.html import table_html
from stepsight.training.report.tables import CellKind, Table, show, to_csv


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
            raise NotFoundError(f"This campaign has no table {name!r:.80}.", "Follow a link on its page.")
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
    `named` means the same as for `read_ratings`, and `draws` is the number of bootstrap draws. Raises `UserError`
    if the campaign is compared with itself.
    """
    if against is not None and against.id == campaign.id:
        raise UserError(f"{campaign.name!r} is compared with itself.", "Name another campaign.")
    ids = [side.id for side in (campaign, against) if side is not None]
    with store.read() as session:
        newest = session.scalar(select(func.max(EventRow.id)).where(EventRow.campaign_id.in_(ids)))
        traces, verdicts = read_versions(session, campaign.dataset_id)
        version = (newest, traces, *verdicts.items())
    key = ("agreement", *ids, named, draws)

    def measure() -> CampaignAgreement:
        ratings = read_ratings(store, campaign, named=named)
        others = None if against is None else read_ratings(store, against, named=named)
        tables = [*_campaign_tables(ratings, draws), *_view_tables(ratings, others, draws)]
        return CampaignAgreement(ratings, others, tuple(table for table in tables if table.rows))

    return store.cache.get(key, version, measure, _size)


def _campaign_tables(ratings: CampaignRatings, draws: int) -> list[Table]:
    queue, hidden = ratings.queue, ratings.hidden
    weights = resamples(len(queue.traces), draws)
    return [
        overall_table(queue, weights),
        pair_table(queue, weights),
        annotator_table(queue, weights),
        gold_table(queue, weights, "gold", "Against the benchmark's gold"),
        gold_table(hidden, resamples(len(hidden.traces), draws), "gold-items", "On hidden gold items"),
    ]


def _view_tables(ratings: CampaignRatings, against: CampaignRatings | None, draws: int) -> list[Table]:
    weights = resamples(len(ratings.queue.traces), draws)
    tables = []
    if ratings.campaign.view == STEPWISE:
        queue = ratings.queue
        tables = [tabulate(queue, weights) for tabulate in (mind_table, later_table, evidence_table)]
    if against is None:
        sides = view_ratings(ratings, ratings.queue)
        return [view_table(sides, ratings.queue, weights), *tables] if len(sides) > 1 else tables
    mine, theirs = shared_traces(ratings.queue, against.queue)
    if not mine.traces:
        return tables
    weights = resamples(len(mine.traces), draws)
    own, others = view_ratings(ratings, mine), view_ratings(against, theirs)
    compared = majority_table(*_pair_ratings(own, others), weights)
    return [view_table([*own, *others], mine, weights), compared, *tables]


def _pair_ratings(own: Sequence[ViewRatings], others: Sequence[ViewRatings]) -> tuple[ViewRatings, ViewRatings]:
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
    sides = [side for part in (agreement.ratings, agreement.against) if part for side in (part.queue, part.hidden)]
    arrays = sum(side.last.codes.size * 32 + side.gold.nbytes * 4 + 500 * len(side.traces) for side in sides)
    return arrays + sum(200 * len(table.rows) * len(table.columns) for table in agreement.tables)


ROWS = 50
"""The number of traces on a page of the heatmap."""

Link = Callable[[LabelledItem, bool], str]
"""The URL for a trace; the second argument is True if people disagree on it."""

# Krippendorff, Content Analysis (2nd edition, 2004), page 241.
RELIABLE, TENTATIVE = 0.8, 0.667
# With more people than this, their pairs are only in the table.
_MOST_PEOPLE = 24
_MEANINGS = (
    "neg against pos counts as further apart than either against neu",
    "any two different labels count as equally far apart",
    "neg against neu and pos together",
    "which step is the first neg one, if any",
)
_SECTIONS = (
    ("People", ("annotators", "pairs")),
    ("Gold", ("gold", "gold-items")),
    ("Views", ("views", "majorities", "minds", "later", "evidence")),
)


@dataclass(frozen=True, eq=False)
class Heatmap:
    """The data of a heatmap: rated traces, their indices in the order in which to show them, the largest
    disagreement first, and how well annotators agree on each step.

    `shares` holds the share of annotator pairs that agree on each step, or NaN if the step has fewer than two
    labels.
    """

    rated: RatedTraces
    shares: NDArray[np.float64]
    places: NDArray[np.int64]

    @classmethod
    def of(cls, rated: RatedTraces) -> "Heatmap":
        shares = agreeing_shares(rated.last)
        apart = np.bincount(rated.last.trace, 1 - np.nan_to_num(shares, nan=1.0), minlength=len(rated.traces))
        return cls(rated, shares, np.argsort(-apart, kind="stable"))

    def without(self, hidden: Collection[int]) -> "Heatmap":
        """Return a heatmap that does not show the traces with these database ids."""
        shown = [place for place in self.places if self.rated.traces[place].trace_id not in hidden]
        return replace(self, places=np.array(shown, dtype=np.int64))

    @property
    def pages(self) -> int:
        return max(1, -(-len(self.places) // ROWS))

    def on_page(self, page: int) -> NDArray[np.int64]:
        """Return the indices of the traces on page `page`, which counts from 1. Larger numbers than the last page
        stand for the last page."""
        start = (min(page, self.pages) - 1) * ROWS
        return self.places[start : start + ROWS]


def heatmap_rows(heatmap: Heatmap, page: int, link: Link) -> list[dict[str, object]]:
    """Return the template's variables for the rows on one page of the heatmap: the name of the trace, its cells,
    and the URL that they link to, which `link` returns."""
    rows = []
    for place in heatmap.on_page(page):
        trace, ratings = heatmap.rated.traces[place], heatmap.rated.last
        start, end = np.searchsorted(ratings.trace, [place, place + 1])
        unsure = ratings.counts[start:end, len(LABEL_NAMES)].any()
        url = link(trace, bool((heatmap.shares[start:end] < 1).any() or unsure))
        cells = [_cell(heatmap, step) for step in range(start, end)]
        rows.append({"name": trace.external_id, "url": url, "cells": cells})
    return rows


def _cell(heatmap: Heatmap, step: int) -> dict[str, object]:
    """Return the template's variables for the cell of one step. `apart` is the disagreement on it, from 0 to 1, or
    None if it has fewer than two labels."""
    rated, share = heatmap.rated, float(heatmap.shares[step])
    counts, gold = rated.last.counts[step], gold_name(rated, step)
    labels = ", ".join(f"{count} {label}" for label, count in zip(RATING_NAMES, counts, strict=True) if count)
    title = f"step {int(rated.last.position[step]) + 1}: {labels or 'not labelled'}"
    classes = [name for name, on in (("alone", np.isnan(share)), ("differs", _differs(rated, step))) if on]
    return {
        "text": _text(counts),
        "title": f"{title}; gold {gold}" if gold else title,
        "apart": None if np.isnan(share) else 1 - share,
        "classes": " ".join(classes),
    }


def _differs(rated: RatedTraces, step: int) -> bool:
    """True if the majority label of a step differs from its gold label, or from its validity where gold gives only
    that. False if there is no majority."""
    majority, gold = float(rated.last.majority[step]), float(rated.gold[step])
    if np.isnan(majority):
        return False
    if np.isnan(gold):
        return bool(rated.valid[step] == (majority == Label.NEG))
    return majority != gold


def _text(counts: Sequence[int]) -> str:
    """Return a cell's text: the mark of a unanimous label, or else the share of the most common label, such as
    `2/3`. `counts` holds the number of annotators who gave each label."""
    votes = [int(count) for count in counts[: len(LABEL_NAMES)]]
    if not any(votes):
        return MARKS["unsure"] if counts[len(LABEL_NAMES)] else ""
    if max(votes) == sum(votes):
        return MARKS[LABEL_NAMES[votes.index(max(votes))]]
    return f"{max(votes)}/{sum(votes)}"


class AgreementAddress(PageQuery):
    """The query of the page.

    `campaign` is the id of the campaign, and `against` the id of a campaign to compare it with. `page` is a page of
    the heatmap, and `table` names a table to download as CSV.
    """

    PATH: ClassVar[str] = "/annotate/agreement"

    campaign: Number = 0
    against: Number = 0
    page: PageNumber = 1
    table: str = ""


def figures(table: Table) -> list[dict[str, object]]:
    """Return the template's variables for the rows of `agreement_tables.overall_table`: each coefficient with words
    on its meaning and its size. `pairs` is a sentence on the share of annotator pairs that agree, or "" if there
    are no such pairs."""
    cards: list[dict[str, object]] = []
    for (name, alpha, agreeing, units, unit, _), meaning in zip(table.rows, _MEANINGS, strict=True):
        assert isinstance(alpha, Value)
        assert isinstance(agreeing, Value)
        share = f"{show(agreeing, CellKind.PERCENT).text} % of pairs agree, on {units:,} {unit}."
        cards.append(
            {
                "name": name,
                "meaning": meaning,
                # Two equal ends, as when all traces are alike, do not make an interval.
                "alpha": show(alpha if alpha.low < alpha.high else Value(alpha.number), CellKind.NUMBER).with_minus,
                "verdict": verdict(alpha),
                "pairs": share if agreeing.exists else "",
            }
        )
    return cards


def headline(table: Table) -> str:
    """Say whose labels lower the agreement, given `agreement_tables.annotator_table`: the person without whom alpha
    rises most, if the interval of the rise lies above zero. Returns "" if there is no such person."""
    places = {column.key: place for place, column in enumerate(table.columns)}
    rises = [(row[places["change"]], row[places["without"]], row[places["annotator"]]) for row in table.rows]
    certain = [
        (change.number, without.number, name)
        for change, without, name in rises
        if isinstance(change, Value) and isinstance(without, Value) and change.exists and change.low > 0
    ]
    if not certain:
        return ""
    change, alpha, name = max(certain)
    less, more = (show(Value(number), CellKind.NUMBER).with_minus.text for number in (alpha - change, alpha))
    return f"{name} disagrees with the others: without {name}, alpha is {more} instead of {less}."


def verdict(alpha: Value) -> str:
    """Describe which conclusions an alpha allows by Krippendorff's rule, or why alpha is undefined."""
    if not alpha.exists:
        return f"No alpha: {alpha.reason}."
    if alpha.number < TENTATIVE:
        return f"Too low to draw conclusions from (below {TENTATIVE:.3f})."
    bar = RELIABLE if alpha.number >= RELIABLE else TENTATIVE
    doubt = f" The interval reaches below {bar:.3f}." if alpha.low < bar else ""
    if alpha.number >= RELIABLE:
        return f"Reliable ({RELIABLE:.3f} or more).{doubt}"
    return f"Good for tentative conclusions ({TENTATIVE:.3f} to {RELIABLE:.3f}).{doubt}"


def matrix(table: Table) -> dict[str, list[tuple[Value | None, int]]]:
    """Turn the rows of `agreement_tables.pair_table` into a matrix of Cohen's kappa, with a row of cells for each
    person.

    A cell holds the kappa of two people, or None if it is undefined, and the number of steps that both people
    labelled. The result is empty if there are fewer than three people or more than `_MOST_PEOPLE`.
    """
    places = {column.key: place for place, column in enumerate(table.columns)}
    pairs = {frozenset(row[:2]): (row[places["kappa"]], row[places["steps"]]) for row in table.rows}
    people = sorted({str(name) for row in table.rows for name in row[:2]})
    if not 2 < len(people) <= _MOST_PEOPLE:
        return {}
    return {one: [pairs.get(frozenset((one, other)), (None, 0)) for other in people] for one in people}  # type: ignore[misc]


def router(store: Store) -> APIRouter:
    """Build the routes of the page and its downloads. The application turns any `UserError` that they raise into a
    response."""
    routes = APIRouter(include_in_schema=False)

    @routes.get(AgreementAddress.PATH, dependencies=[Depends(RequiresRight(Right.READ, Right.ADJUDICATE))])
    def agreement(request: Request) -> Response:
        address = AgreementAddress.exact(read_query(request.url.query))
        if not address.campaign:
            links = choose_html(store, "Agreement", AgreementAddress.PATH)
            return HTMLResponse(plain_page("Agreement", links, "Annotate"))
        user = find_user_of(request)
        if user is None:
            _check_closed(store, address)
        # Visitors of a public server do not see the names of people.
        campaign = get_campaign(store, address.campaign)
        against = get_campaign(store, address.against) if address.against else None
        measured = measure_agreement(store, campaign, against, named=user is not None)
        heatmap = Heatmap.of(measured.ratings.queue)
        hidden = hidden_traces(store, user, [trace.trace_id for trace in measured.ratings.queue.traces])
        heatmap = heatmap.without(hidden)
        if address.table:
            if address.table == "steps" and hidden:
                raise hidden_error()
            table = measured.find_table(address.table)
            name = f"agreement-{campaign.id}-{table.name}.csv"
            headers = {"content-disposition": f'attachment; filename="{name}"'}
            return Response(to_csv(table), media_type="text/csv", headers=headers)
        content = _page(store, address, measured, heatmap, links_of(store, user) if user else {})
        return HTMLResponse(plain_page(f"Agreement: {campaign.name}", content, "Annotate"))

    return routes


def _check_closed(store: Store, address: AgreementAddress) -> None:
    """Raise `ForbiddenError` if the query names a campaign that is still open. Without this check, an annotator
    could log out and look at an open campaign unnoticed."""
    for number in (address.campaign, address.against):
        if number and get_campaign(store, number).closed is None:
            raise ForbiddenError(
                "The labels of an open campaign are not public.", "Log in, or wait until it is closed."
            )


def _page(
    store: Store, address: AgreementAddress, measured: CampaignAgreement, heatmap: Heatmap, links: Mapping[str, str]
) -> Markup:
    campaign = measured.ratings.campaign
    others = [(str(other.id), other.name) for other in list_campaigns(store) if other.id != campaign.id]
    pairs, annotators = map(measured.table, ("pairs", "annotators"))
    # People look for the agreement on labels and on first errors; the other two differ little from the first.
    in_order, equal, validity, first_errors = figures(measured.find_table("agreement"))

    def link(trace: LabelledItem, disagreed: bool) -> str:
        """Return the URL that a trace's cells link to: the trace's adjudication if annotators disagree and the user
        may adjudicate, or else its page in Browse."""
        if disagreed and "Adjudicate" in links:
            return AdjudicationAddress(campaign=campaign.id, item=trace.id).url()
        return f"/browse?trace={trace.trace_id}"

    return render(
        "annotate/agreement.html",
        address=address,
        campaign=campaign,
        links=links,
        terms=terms(campaign),
        others=[("", "no other"), *others],
        summary=_summary(measured.ratings),
        headline=headline(annotators) if annotators is not None else "",
        figures=[in_order, first_errors],
        more_figures=[equal, validity],
        rows=heatmap_rows(heatmap, address.page, link),
        hidden=len(measured.ratings.queue.traces) - len(heatmap.places),
        page=min(address.page, heatmap.pages),
        pages=heatmap.pages,
        sections=[
            (title, [(table.name, partial(table_html, table)) for table in map(measured.table, names) if table])
            for title, names in _SECTIONS
        ],
        matrix=matrix(pairs) if pairs is not None else {},
    )


def _summary(ratings: CampaignRatings) -> str:
    """Describe in words how many annotations count, and how many were left out."""
    people, traces = len(ratings.queue.last.people), len(ratings.queue.traces)
    count = f"{counted(ratings.annotations, 'annotation')} by {counted(people, 'person', 'people')}"
    parts = [f"{count} on {counted(traces, 'trace')}." if traces else "No annotations count here yet."]
    if traces and bool(np.isnan(agreeing_shares(ratings.queue.last)).all()):
        parts.append("No two people have labelled the same step, so there is no agreement to measure.")
        if ratings.campaign.overlap == 1:
            parts.append("The campaign gives each trace to one person.")
    if ratings.changed:
        parts.append(f"{counted(ratings.changed, 'trace')} changed since: their gold is left out.")
    return " ".join(parts)
