"""Add the columns for archived and deleted datasets, and a table that records deletions."""

import sqlalchemy as sa
from alembic import op

revision = "0024_deletions"
down_revision = "0023_equivalent_signs"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("archived", "withdrawn"):
        op.add_column("datasets", sa.Column(name, sa.DateTime(timezone=True)))
    op.create_table(
        "deletions",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("person", sa.String(200), nullable=False),
        sa.Column("moment", sa.DateTime(timezone=True), nullable=False),
        sa.Column("counts", sa.JSON, nullable=False),
    )
    if op.get_bind().dialect.name == "sqlite":
        for act in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER deletions_kept_{act.lower()} BEFORE {act} ON deletions"
                " BEGIN SELECT RAISE(ABORT, 'deletions is append-only'); END"
            )
        return
    op.execute(
        "CREATE FUNCTION keep_deletions() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " RAISE EXCEPTION 'deletions is append-only' USING ERRCODE = 'restrict_violation'; END $$"
    )
    op.execute(
        "CREATE TRIGGER deletions_kept BEFORE UPDATE OR DELETE ON deletions"
        " FOR EACH ROW EXECUTE FUNCTION keep_deletions()"
    )
