"""Add the answers of critics about sections of traces that are not judged yet."""

import sqlalchemy as sa
from alembic import op

revision = "0038_critic_answers"
down_revision = "0035_repairs"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "critic_answers",
        sa.Column("trace_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("evaluator_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("question", sa.String(64), primary_key=True),
        sa.Column("dataset_id", sa.Integer, nullable=False),
        sa.Column("mode", sa.String(20), nullable=False),
        sa.Column("content", sa.JSON, nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["evaluator_id"], ["evaluators.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["trace_id", "dataset_id"], ["traces.id", "traces.dataset_id"], ondelete="CASCADE"),
    )
    op.create_index("ix_critic_answers_dataset_id", "critic_answers", ["dataset_id", "evaluator_id"])
