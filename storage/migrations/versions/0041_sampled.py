"""Add the rows of a hindsight matrix of which only some prefixes were read."""

import sqlalchemy as sa
from alembic import op

revision = "0041_sampled"
down_revision = "0039_asked"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("judgments", sa.Column("sampled", sa.LargeBinary))
    some = sa.text("sampled IS NOT NULL")
    op.create_index(
        "ix_judgments_sampled",
        "judgments",
        ["evaluator_id", "dataset_id"],
        sqlite_where=some,
        postgresql_where=some,
    )
