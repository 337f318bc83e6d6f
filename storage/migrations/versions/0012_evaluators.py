"""Fetching an evaluator as a job, and what was verified of its published figures."""

import sqlalchemy as sa
from alembic import op
from alembic.op import f

revision = "0012_evaluators"
down_revision = "0011_campaign_choices"
branch_labels = None
depends_on = None

_TASK = (
    "task = 'judge' AND dataset_id IS NOT NULL AND evaluator IS NOT NULL AND spec IS NOT NULL"
    " AND fingerprint IS NOT NULL AND mode IS NOT NULL OR task IN ('import', 'fetch') AND request IS NOT NULL"
)


def upgrade() -> None:
    with op.batch_alter_table("jobs") as jobs:
        jobs.drop_constraint(f("ck_jobs_task"), type_="check")
        jobs.create_check_constraint(f("ck_jobs_task"), _TASK)
        # Bytes of an evaluator, which are more than four bytes count.
        for name in ("total", "began", "done"):
            jobs.alter_column(name, existing_type=sa.Integer(), type_=sa.BigInteger(), existing_nullable=False)
    op.create_table(
        "verifications",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("repo", sa.String(200), nullable=False),
        sa.Column("revision", sa.String(200), nullable=False),
        sa.Column("fingerprint", sa.String(200), nullable=False),
        sa.Column("dtype", sa.String(20), nullable=False),
        sa.Column("part", sa.String(20), nullable=False),
        sa.Column("traces", sa.Integer, nullable=False),
        sa.Column("whole", sa.Boolean, nullable=False),
        sa.Column("threshold", sa.Double, nullable=False),
        sa.Column("f1", sa.Double, nullable=False),
        sa.Column("low", sa.Double),
        sa.Column("high", sa.Double),
        sa.Column("published", sa.Double),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=f("pk_verifications")),
    )
    op.create_index("ix_verifications_repo", "verifications", ["repo", "id"])
