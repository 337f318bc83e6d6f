"""Add a table for the largest fall in validity when each step is left out, and the columns for jobs that leave
steps out."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import sqlalchemy as sa
from alembic import op
from alembic.op import f

revision = "0022_step_falls"
down_revision = "0021_left_out_scores"
branch_labels = None
depends_on = None

_KEY = ("evaluator_id", "trace_id", "gap")
_MODES = "mode IN ('offline', 'online', 'hindsight', 'deleted', 'placeholder')"


def upgrade() -> None:
    falls = op.create_table(
        "step_falls",
        sa.Column("evaluator_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("trace_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("gap", sa.String(20), primary_key=True),
        sa.Column("step", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("dataset_id", sa.Integer, nullable=False),
        sa.Column("fall", sa.Double, nullable=False),
        sa.ForeignKeyConstraint(
            _KEY, [f"left_out_scores.{name}" for name in _KEY], name=f("fk_step_falls_evaluator_id_trace_id_gap"),
            ondelete="CASCADE",
        ),
    )  # fmt: skip
    place = ["dataset_id", "evaluator_id", "gap", "fall", "trace_id", "step"]
    op.create_index("ix_step_falls_dataset_id", "step_falls", place)
    scores = op.get_bind().execute(sa.text("SELECT * FROM left_out_scores"))
    rows = [row for one in scores.mappings() for row in _falls(dict(one))]
    if rows:
        op.bulk_insert(falls, rows)
    with op.batch_alter_table("jobs") as jobs:
        jobs.drop_constraint(f("ck_jobs_mode"), type_="check")
        jobs.create_check_constraint(f("ck_jobs_mode"), _MODES)


def _falls(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the rows for stored scores: for each left-out sub-step, the largest fall in the validity of a later
    sub-step."""
    whole = np.frombuffer(row["whole"], "<f4").reshape(-1, 3)[:, 1:].sum(axis=1)
    steps = np.frombuffer(row["steps"], "<i4").tolist()
    others = np.frombuffer(row["probabilities"], "<f4").reshape(len(steps), len(whole) - 1, 3)[:, :, 1:].sum(axis=2)
    for step, without in zip(steps, others, strict=True):
        lost = whole[step + 1 :] - without[step:]
        named = {name: row[name] for name in (*_KEY, "dataset_id")}
        yield named | {"step": step, "fall": float(lost.max()) if len(lost) else 0.0}
