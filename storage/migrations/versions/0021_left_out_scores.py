"""Add a table for the scores of traces with steps left out."""

import sqlalchemy as sa
from alembic import op

revision = "0021_left_out_scores"
down_revision = "0020_version_1"
branch_labels = None
depends_on = None

_GAPS = "gap IN ('deleted', 'placeholder')"


def upgrade() -> None:
    op.create_table(
        "left_out_scores",
        sa.Column("evaluator_id", sa.Integer, primary_key=True),
        sa.Column("trace_id", sa.Integer, primary_key=True),
        sa.Column("gap", sa.String(20), primary_key=True),
        sa.Column("dataset_id", sa.Integer, nullable=False),
        sa.Column("trace_digest", sa.String(64), nullable=False),
        sa.Column("whole", sa.LargeBinary, nullable=False),
        sa.Column("steps", sa.LargeBinary, nullable=False),
        sa.Column("probabilities", sa.LargeBinary, nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["evaluator_id"], ["evaluators.id"], ondelete="RESTRICT"),
        sa.ForeignKeyConstraint(["trace_id", "dataset_id"], ["traces.id", "traces.dataset_id"], ondelete="CASCADE"),
        sa.CheckConstraint(_GAPS, "gap"),
    )
    op.create_index("ix_left_out_scores_dataset_id", "left_out_scores", ["dataset_id", "evaluator_id", "gap"])
