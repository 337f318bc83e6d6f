"""Add the columns for the qualification of a campaign: the number of its items, and of those that must be right."""

import sqlalchemy as sa
from alembic import op

revision = "0026_qualifications"
down_revision = "0025_ids_for_good"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("qualification_items", "qualification_right"):
        op.add_column("campaigns", sa.Column(name, sa.Integer, nullable=False, server_default="0"))
