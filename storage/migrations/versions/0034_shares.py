"""Add the soft label of a step, a share from 0 to 1."""

import sqlalchemy as sa
from alembic import op

revision = "0034_shares"
down_revision = "0033_contexts"
branch_labels = None
depends_on = None

_HAS_SHARE = sa.text("share IS NOT NULL")


def upgrade() -> None:
    op.add_column("steps", sa.Column("share", sa.Double))
    op.create_index("ix_steps_shares", "steps", ["trace_id"], sqlite_where=_HAS_SHARE, postgresql_where=_HAS_SHARE)
