"""Views: addresses of Browse that people keep under names."""

import sqlalchemy as sa
from alembic import op
from alembic.op import f

revision = "0010_views"
down_revision = "0009_imports"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "views",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("user_id", sa.Integer, nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("dataset", sa.String(200), nullable=False),
        sa.Column("query", sa.Text, nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=f("pk_views")),
        sa.UniqueConstraint("user_id", "name", name=f("uq_views_user_id_name")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=f("fk_views_user_id"), ondelete="CASCADE"),
    )
