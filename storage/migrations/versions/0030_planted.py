"""Add the share of the gold items of a campaign whose suggested labels are wrong on purpose."""

import sqlalchemy as sa
from alembic import op

revision = "0030_planted"
down_revision = "0029_stress_tests"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("campaigns", sa.Column("planted_share", sa.Double, nullable=False, server_default="0"))
