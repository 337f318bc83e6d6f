"""How many steps of a trace the gold calls redundant, so that such traces are found as those with an error are."""

import sqlalchemy as sa
from alembic import op

revision = "0007_redundant_gold"
down_revision = "0006_rationales"
branch_labels = None
depends_on = None

# Of `core.label.Label`.
_NEU = 1
_COUNTS = ["dataset_id", "first_error", "has_gold", "n_steps", "n_substeps"]


def upgrade() -> None:
    op.add_column("traces", sa.Column("n_redundant", sa.Integer, nullable=False, server_default="0"))
    traces = sa.table("traces", sa.column("id", sa.Integer), sa.column("n_redundant", sa.Integer))
    steps = sa.table("steps", sa.column("trace_id", sa.Integer), sa.column("label", sa.SmallInteger))
    redundant = sa.select(steps.c.trace_id).where(steps.c.label == _NEU)
    count = sa.select(sa.func.count()).where(steps.c.trace_id == traces.c.id, steps.c.label == _NEU)
    op.execute(sa.update(traces).where(traces.c.id.in_(redundant)).values(n_redundant=count.scalar_subquery()))
    op.drop_index("ix_traces_counts", "traces")
    op.create_index("ix_traces_counts", "traces", [*_COUNTS, "n_redundant"])
