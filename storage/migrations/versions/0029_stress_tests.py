"""Add the tables for stress tests, and jobs that carry them out."""

import sqlalchemy as sa
from alembic import op
from alembic.op import f

revision = "0029_stress_tests"
down_revision = "0028_chances"
branch_labels = None
depends_on = None

_MODES = "mode IN ('offline', 'online', 'hindsight', 'deleted', 'placeholder', 'stress')"


def upgrade() -> None:
    op.create_table(
        "stress_variants",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("trace_id", sa.Integer, nullable=False),
        sa.Column("dataset_id", sa.Integer, nullable=False),
        sa.Column("transform", sa.String(200), nullable=False),
        sa.Column("seed", sa.BigInteger, nullable=False),
        sa.Column("trace_digest", sa.String(64), nullable=False),
        sa.Column("content", sa.JSON),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["trace_id", "dataset_id"], ["traces.id", "traces.dataset_id"], ondelete="CASCADE"),
        sa.UniqueConstraint("trace_id", "seed", "transform"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_stress_variants_dataset_id", "stress_variants", ["dataset_id", "seed"])
    op.create_table(
        "stress_scores",
        sa.Column("variant_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("evaluator_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("dataset_id", sa.Integer, nullable=False),
        sa.Column("before", sa.LargeBinary),
        sa.Column("after", sa.LargeBinary),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["variant_id"], ["stress_variants.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["evaluator_id"], ["evaluators.id"], ondelete="RESTRICT"),
        sa.CheckConstraint("(before IS NULL) = (after IS NULL)", "both"),
    )
    op.create_index("ix_stress_scores_dataset_id", "stress_scores", ["dataset_id", "evaluator_id"])
    with op.batch_alter_table("jobs") as jobs:
        jobs.drop_constraint(f("ck_jobs_mode"), type_="check")
        jobs.create_check_constraint(f("ck_jobs_mode"), _MODES)
