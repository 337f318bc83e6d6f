"""The spread of an ensemble's members, with its judgments."""

import sqlalchemy as sa
from alembic import op

revision = "0014_spread"
down_revision = "0013_equation_marks"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("judgments", sa.Column("spread", sa.LargeBinary))
