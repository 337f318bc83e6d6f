"""Invitations by link, and when somebody last logged in."""

import sqlalchemy as sa
from alembic import op
from alembic.op import f

revision = "0008_invitations"
down_revision = "0007_redundant_gold"
branch_labels = None
depends_on = None


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    op.add_column("users", sa.Column("last_login", moment))
    # Those that have not expired are all that is known.
    op.execute(
        "UPDATE users SET last_login = (SELECT max(logins.created) FROM logins WHERE logins.user_id = users.id)"
    )
    op.create_table(
        "invitations",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("name", sa.String(200)),
        sa.Column("role", sa.String(20), nullable=False),
        sa.Column("user_id", sa.Integer),
        sa.Column("created", moment, nullable=False),
        sa.Column("created_by", sa.Integer, nullable=False),
        sa.Column("expires", moment, nullable=False),
        *[sa.Column(name, moment) for name in ("used", "revoked")],
        sa.PrimaryKeyConstraint("id", name=f("pk_invitations")),
        sa.UniqueConstraint("digest", name=f("uq_invitations_digest")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=f("fk_invitations_user_id"), ondelete="RESTRICT"),
        sa.ForeignKeyConstraint(
            ["created_by"], ["users.id"], name=f("fk_invitations_created_by"), ondelete="RESTRICT"
        ),
        sa.CheckConstraint(
            "role IN ('viewer', 'annotator', 'adjudicator', 'admin')", name=f("ck_invitations_role")
        ),
    )
