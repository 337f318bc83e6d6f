"""Add the links of gold: the step that repairs a wrong one, the step that another one notices, and a mark of traces
in which every error is repaired."""

import sqlalchemy as sa
from alembic import op

revision = "0035_repairs"
down_revision = "0034_shares"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("repaired", "notices"):
        op.add_column("steps", sa.Column(name, sa.Integer))
    op.add_column("traces", sa.Column("repaired", sa.Boolean, nullable=False, server_default=sa.false()))
    counted = ["dataset_id", "first_error", "has_gold", "n_steps", "n_substeps", "n_redundant", "repaired"]
    op.drop_index("ix_traces_counts", "traces")
    op.create_index("ix_traces_counts", "traces", counted)
