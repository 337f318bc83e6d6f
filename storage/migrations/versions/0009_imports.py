"""Imports as jobs, and the files that browsers send for them."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from alembic.op import f

revision = "0009_imports"
down_revision = "0008_invitations"
branch_labels = None
depends_on = None

_OF_JUDGING: dict[str, sa.types.TypeEngine[Any]] = {
    "dataset_id": sa.Integer(),
    "evaluator": sa.String(200),
    "spec": sa.Text(),
    "fingerprint": sa.String(200),
    "mode": sa.String(20),
}
_TASK = (
    "task = 'judge' AND dataset_id IS NOT NULL AND evaluator IS NOT NULL AND spec IS NOT NULL"
    " AND fingerprint IS NOT NULL AND mode IS NOT NULL OR task = 'import' AND request IS NOT NULL"
)


def upgrade() -> None:
    with op.batch_alter_table("jobs") as jobs:
        jobs.add_column(sa.Column("task", sa.String(20), nullable=False, server_default="judge"))
        jobs.add_column(sa.Column("subject", sa.Text, nullable=False, server_default=""))
        jobs.add_column(sa.Column("request", sa.JSON))
        for name, kind in _OF_JUDGING.items():
            jobs.alter_column(name, existing_type=kind, nullable=True)
        jobs.create_check_constraint(f("ck_jobs_task"), _TASK)
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "uploads",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("user_id", sa.Integer, nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("modified", sa.String(40), nullable=False),
        sa.Column("received", sa.Integer, nullable=False),
        sa.Column("sha256", sa.String(64)),
        sa.Column("created", moment, nullable=False),
        sa.Column("touched", moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name=f("pk_uploads")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=f("fk_uploads_user_id"), ondelete="CASCADE"),
        sa.CheckConstraint("size > 0 AND received >= 0 AND received <= size", name=f("ck_uploads_received")),
        sa.CheckConstraint("sha256 IS NULL OR received = size", name=f("ck_uploads_whole")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_uploads_user_id", "uploads", ["user_id", "id"])
    op.create_table(
        "upload_parts",
        sa.Column("upload_id", sa.Integer, nullable=False),
        sa.Column("start", sa.Integer, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("upload_id", "start", name=f("pk_upload_parts")),
        sa.ForeignKeyConstraint(
            ["upload_id"], ["uploads.id"], name=f("fk_upload_parts_upload_id"), ondelete="CASCADE"
        ),
    )
