"""Where people have logged in: nobody is shut out there by failures elsewhere. So far that is nowhere."""

import sqlalchemy as sa
from alembic import op
from alembic.op import f

revision = "0017_homes"
down_revision = "0016_texts_seen"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "homes",
        sa.Column("key", sa.String(200), nullable=False),
        sa.Column("moment", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("key", name=f("pk_homes")),
    )
