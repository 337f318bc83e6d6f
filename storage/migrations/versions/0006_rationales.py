"""The rationale of a verdict in words, and first errors of evaluators that say nothing behind their blame."""

import sqlalchemy as sa
from alembic import op

from stepsight.storage.judgments.packed_judgments import refill_verdicts

revision = "0006_rationales"
down_revision = "0005_labelling"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("judgments", sa.Column("rationale", sa.Text))
    refill_verdicts(op.get_bind())
