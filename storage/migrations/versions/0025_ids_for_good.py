"""Give no id of a deleted dataset, trace, job, campaign or view to a new one, and let campaigns be archived and
deleted: what people did can be deleted only if the campaign is closed and its log has been exported."""

import sqlalchemy as sa
from alembic import op

revision = "0025_ids_for_good"
down_revision = "0024_deletions"
branch_labels = None
depends_on = None

# People delete these, and their ids are in addresses and keys of caches.
_TABLES = ("datasets", "traces", "jobs", "campaigns", "views")
# Whether the log still has to keep a row `old` of a table.
_KEPT = {
    "label_events": "NOT EXISTS (SELECT 1 FROM campaigns WHERE campaigns.id = old.campaign_id"
    " AND campaigns.closed IS NOT NULL AND campaigns.exported IS NOT NULL)",
    "guidelines": "EXISTS (SELECT 1 FROM label_events WHERE label_events.campaign_id = old.campaign_id)",
}


def upgrade() -> None:
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    op.add_column("campaigns", sa.Column("archived", sa.DateTime(timezone=True)))
    op.add_column("campaigns", sa.Column("exported", sa.Integer))
    op.create_index("ix_label_events_of", "label_events", ["of"])
    if is_sqlite:
        _keep_ids()
    for table, kept in _KEPT.items():
        if is_sqlite:
            op.execute(f"DROP TRIGGER {table}_kept_delete")
            op.execute(
                f"CREATE TRIGGER {table}_kept_delete BEFORE DELETE ON {table} WHEN {kept}"
                f" BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
            )
        else:
            op.execute(
                f"CREATE OR REPLACE FUNCTION keep_{table}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                f" IF TG_OP = 'UPDATE' OR {kept} THEN"
                f" RAISE EXCEPTION '{table} is append-only' USING ERRCODE = 'restrict_violation'; END IF;"
                " RETURN old; END $$"
            )


def _keep_ids() -> None:
    """Rebuild the tables, since SQLite cannot change the key of one. PostgreSQL's sequences never go back."""
    trigger = "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = 'traces_deleted'"
    created = op.get_bind().scalar(sa.text(trigger))
    # It names tables that are gone for a moment.
    op.execute("DROP TRIGGER traces_deleted")
    for table in _TABLES:
        with op.batch_alter_table(table, recreate="always", table_kwargs={"sqlite_autoincrement": True}):
            pass
    op.execute(created)
