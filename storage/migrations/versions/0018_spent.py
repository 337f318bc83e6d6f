"""What servers were asked for judgments that they wrote: calls and tokens."""

import sqlalchemy as sa
from alembic import op

revision = "0018_spent"
down_revision = "0017_homes"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("judgments", sa.Column("spent", sa.JSON))
