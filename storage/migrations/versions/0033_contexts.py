"""Add the context of an agent's trace: the messages between its steps, and the calls that the steps make."""

import sqlalchemy as sa
from alembic import op

revision = "0033_contexts"
down_revision = "0030_planted"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("traces", sa.Column("context", sa.JSON, nullable=True))
