"""What a campaign shows and asks, who labels in it, and how its sample was drawn.

Campaigns that are there keep what they had: no answer in view, everything shown after submission, PRMBench's kinds
of error, everybody who may label as their annotators, and no suggestions.
"""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op
from alembic.op import f

revision = "0011_campaign_choices"
down_revision = "0010_views"
branch_labels = None
depends_on = None

_KINDS = [
    "redundency",
    "circular",
    "counterfactual",
    "step_contradiction",
    "domain_inconsistency",
    "confidence",
    "missing_condition",
    "deception",
]


def upgrade() -> None:
    for name in ("shows_answer", "restricted", "suggests"):
        op.add_column("campaigns", sa.Column(name, sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("campaigns", sa.Column("error_kinds", sa.JSON, nullable=False, server_default="[]"))
    campaigns = sa.table("campaigns", sa.column("error_kinds", sa.Text))
    kinds = sa.text(f"'{json.dumps(_KINDS)}'")
    op.execute(sa.update(campaigns).values(error_kinds=sa.cast(kinds, sa.JSON) if _is_postgresql() else kinds))
    _add_checked(
        "after_submission",
        "VARCHAR(20) DEFAULT 'everything' NOT NULL",
        "after_submission IN ('nothing', 'gold', 'everything')",
    )
    _add_checked("sample", "INTEGER", "sample > 0")
    _add_checked("population", "INTEGER", "population >= sample")
    moment = sa.Column("added", sa.DateTime(timezone=True), nullable=False)
    annotators = {"campaign_id": "campaigns", "user_id": "users", "added_by": "users"}
    _create("campaign_annotators", ("campaign_id", "user_id"), annotators, moment)
    campaigns_of = {"invitation_id": "invitations", "campaign_id": "campaigns"}
    _create("invitation_campaigns", ("invitation_id", "campaign_id"), campaigns_of)


def _create(table: str, key: tuple[str, ...], refers: dict[str, str], *columns: sa.Column[Any]) -> None:
    """A table that `refers` by columns to other tables."""
    op.create_table(
        table,
        *[sa.Column(name, sa.Integer, nullable=False) for name in refers],
        *columns,
        sa.PrimaryKeyConstraint(*key, name=f(f"pk_{table}")),
        *[
            sa.ForeignKeyConstraint([column], [f"{other}.id"], name=f(f"fk_{table}_{column}"), ondelete="RESTRICT")
            for column, other in refers.items()
        ],
    )


def _is_postgresql() -> bool:
    return op.get_bind().dialect.name == "postgresql"


def _add_checked(column: str, kind: str, condition: str) -> None:
    """A column with its check: SQLite takes one with a new column, and not later."""
    check = f"CONSTRAINT ck_campaigns_{column} CHECK ({condition})"
    op.execute(f"ALTER TABLE campaigns ADD COLUMN {column} {kind} {check}")
