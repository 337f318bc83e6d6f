"""Datasets to be judged outside any request."""

import sqlalchemy as sa
from alembic import op
from alembic.op import f

revision = "0004_jobs"
down_revision = "0003_browsing"
branch_labels = None
depends_on = None


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    counts = ("total", "began", "done", "left_out", "attempts")
    op.create_table(
        "jobs",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("dataset_id", sa.Integer, nullable=False),
        sa.Column("evaluator", sa.String(200), nullable=False),
        sa.Column("spec", sa.Text, nullable=False),
        sa.Column("fingerprint", sa.String(200), nullable=False),
        sa.Column("mode", sa.String(20), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        *[sa.Column(name, sa.Integer, nullable=False) for name in counts],
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("worker", sa.String(200)),
        sa.Column("created", moment, nullable=False),
        *[sa.Column(name, moment) for name in ("started", "heartbeat", "finished")],
        sa.PrimaryKeyConstraint("id", name=f("pk_jobs")),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name=f("fk_jobs_dataset_id"), ondelete="CASCADE"),
        sa.CheckConstraint("mode IN ('offline', 'online', 'hindsight')", name=f("ck_jobs_mode")),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'done', 'failed', 'cancelled')", name=f("ck_jobs_state")
        ),
        sa.CheckConstraint(
            "state <> 'running' OR (worker IS NOT NULL AND heartbeat IS NOT NULL)",
            name=f("ck_jobs_running_has_a_worker"),
        ),
    )
    op.create_index("ix_jobs_state", "jobs", ["state", "id"])
    active = sa.text("state IN ('queued', 'running')")
    op.create_index(
        "uq_jobs_active",
        "jobs",
        ["dataset_id", "fingerprint", "mode"],
        unique=True,
        sqlite_where=active,
        postgresql_where=active,
    )
