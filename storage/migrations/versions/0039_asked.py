"""Add the mark of campaigns that ask which step changed a label, and the convention that the gold of a dataset
follows.

A campaign of an earlier version asks from now on if nothing has been labelled in it.
"""

import sqlalchemy as sa
from alembic import op

revision = "0039_asked"
down_revision = "0038_critic_answers"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("campaigns", sa.Column("asks_evidence", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("datasets", sa.Column("convention", sa.String(20), nullable=False, server_default=""))
    campaigns = sa.table("campaigns", sa.column("id"), sa.column("view"), sa.column("asks_evidence"))
    events = sa.table("label_events", sa.column("campaign_id"))
    begun = sa.exists().where(events.c.campaign_id == campaigns.c.id)
    op.execute(campaigns.update().where(campaigns.c.view == "stepwise", ~begun).values(asks_evidence=True))
