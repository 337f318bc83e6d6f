"""Measure the agreement among the annotators of a campaign.

stepsight agreement "MR-MATH again"
stepsight agreement "MR-MATH again" --against "MR-MATH step by step" --json
"""

import argparse
import json

from stepsight.app.annotate.agreement_measure import CampaignAgreement, measure_agreement
from stepsight.app.options.shared import add_db
from stepsight.core.errors import UserError
from stepsight.core.metrics.bootstrap import Value
from stepsight.storage.database.store import open_store
from stepsight.storage.labelling.campaigns import find_campaign
from stepsight.storage.labelling.results.ratings import CampaignRatings
from stepsight.training.report.tables import Cell, Table, to_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Measure how far the annotators of a campaign agree: Krippendorff's alpha, Cohen's kappa by pairs,"
        " first errors, each person with the others and with the gold, by step number, and what changes once more"
        " steps are in view."
    )
    parser.add_argument("campaign", metavar="CAMPAIGN", help="its name")
    parser.add_argument("--against", metavar="OTHER", help="a campaign over the same traces to compare with")
    parser.add_argument("--draws", type=int, default=1000, help="bootstrap draws (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="as JSON, with fractions and null")
    add_db(parser)


def run(args: argparse.Namespace) -> None:
    """Print all tables of agreement, as text or as a single JSON object."""
    if args.draws < 1:
        raise UserError(f"--draws is {args.draws}, expected more than 0.")
    with open_store(args.db) as store:
        campaign = find_campaign(store, args.campaign)
        against = find_campaign(store, args.against) if args.against else None
        if against is not None and against.id == campaign.id:
            raise UserError(f"{campaign.name!r} is compared with itself.", "Name another campaign.")
        agreement = measure_agreement(store, campaign, against, draws=args.draws)
    if args.json:
        print(json.dumps(_as_json(agreement), indent=1, allow_nan=False))
        return
    print(_summary(agreement.ratings))
    for table in agreement.tables:
        print(f"\n{to_text(table)}", end="")


def _summary(ratings: CampaignRatings) -> str:
    return (
        f"{ratings.campaign.name}: {ratings.annotations:,} annotations; {len(ratings.queue.traces):,} traces and"
        f" {len(ratings.hidden.traces):,} hidden gold items"
    )


def _as_json(agreement: CampaignAgreement) -> dict[str, object]:
    ratings = agreement.ratings
    return {
        "campaign": ratings.campaign.name,
        "against": agreement.against.campaign.name if agreement.against else None,
        "answers": ratings.annotations,
        "traces": len(ratings.queue.traces),
        "hidden_gold_items": len(ratings.hidden.traces),
        "changed_traces": ratings.changed,
        "tables": {table.name: _rows(table) for table in agreement.tables},
    }


def _rows(table: Table) -> list[dict[str, object]]:
    keys = [column.key for column in table.columns]
    return [dict(zip(keys, map(_cell, row), strict=True)) for row in table.rows]


def _cell(cell: Cell) -> object:
    return cell.as_json() if isinstance(cell, Value) else cell
