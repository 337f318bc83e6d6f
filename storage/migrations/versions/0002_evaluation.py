"""Rows left out of an import, scores of whole solutions, and calibrated thresholds."""

import sqlalchemy as sa
from alembic import op
from alembic.op import f

revision = "0002_evaluation"
down_revision = "0001_traces_and_judgments"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("judgments", sa.Column("solution", sa.Double))
    _left_out()
    _calibrations()


def _left_out() -> None:
    op.create_table(
        "left_out",
        sa.Column("dataset_id", sa.Integer, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("place", sa.Text, nullable=False),
        sa.Column("error", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("dataset_id", "digest", name=f("pk_left_out")),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["datasets.id"], name=f("fk_left_out_dataset_id"), ondelete="CASCADE"
        ),
    )


def _calibrations() -> None:
    op.create_table(
        "calibrations",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("evaluator_id", sa.Integer, nullable=False),
        sa.Column("dataset_id", sa.Integer),
        sa.Column("dataset", sa.String(200), nullable=False),
        sa.Column("validity", sa.Double, nullable=False),
        sa.Column("redundancy", sa.Double, nullable=False),
        sa.Column("info", sa.JSON, nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=f("pk_calibrations")),
        sa.ForeignKeyConstraint(
            ["evaluator_id"], ["evaluators.id"], name=f("fk_calibrations_evaluator_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["datasets.id"], name=f("fk_calibrations_dataset_id"), ondelete="SET NULL"
        ),
    )
    op.create_index("ix_calibrations_evaluator_id", "calibrations", ["evaluator_id", "id"])
