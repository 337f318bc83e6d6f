"""Let the traces of a campaign be drawn by information, and keep the chance with which each was drawn."""

import sqlalchemy as sa
from alembic import op
from alembic.op import f

revision = "0028_chances"
down_revision = "0027_searchable_texts"
branch_labels = None
depends_on = None

_ORDERINGS = "ordering IN ('file', 'random', 'disagreement', 'change', 'information')"
_TRIGGERS = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND sql LIKE '%campaigns%'"
_LAST_ID = "SELECT seq FROM sqlite_sequence WHERE name = 'campaigns'"


def upgrade() -> None:
    op.add_column("campaign_items", sa.Column("chance", sa.Double))
    if op.get_bind().dialect.name == "sqlite":
        _rebuild()
    else:
        _change_orderings()


def _rebuild() -> None:
    """Rebuild the table, since SQLite cannot change a constraint. No id of a deleted campaign is given again."""
    connection = op.get_bind()
    triggers = connection.execute(sa.text(_TRIGGERS)).all()
    last = connection.scalar(sa.text(_LAST_ID))
    # They name a table that is gone for a moment.
    for trigger in triggers:
        op.execute(f"DROP TRIGGER {trigger.name}")
    _change_orderings()
    for trigger in triggers:
        op.execute(trigger.sql)
    if last is not None:
        connection.execute(sa.text("DELETE FROM sqlite_sequence WHERE name = 'campaigns'"))
        insert = sa.text("INSERT INTO sqlite_sequence (name, seq) VALUES ('campaigns', :last)")
        connection.execute(insert, {"last": last})


def _change_orderings() -> None:
    with op.batch_alter_table("campaigns", table_kwargs={"sqlite_autoincrement": True}) as campaigns:
        campaigns.drop_constraint(f("ck_campaigns_ordering"), type_="check")
        campaigns.create_check_constraint(f("ck_campaigns_ordering"), _ORDERINGS)
