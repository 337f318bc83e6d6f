"""Online results in which a step is judged when all its sub-steps are there, no longer sub-step by sub-step."""

from alembic import op

from stepsight.storage.judgments.judgments import judge_whole_steps

revision = "0015_whole_steps"
down_revision = "0014_spread"
branch_labels = None
depends_on = None


def upgrade() -> None:
    judge_whole_steps(op.get_bind())
