"""Users, campaigns, and the logs of what people did."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op
from alembic.op import f

revision = "0005_labelling"
down_revision = "0004_jobs"
branch_labels = None
depends_on = None

_APPEND_ONLY = ("label_events", "guidelines", "disputes", "dispute_entries")
_NAME, _DIGEST, _WORD = sa.String(200), sa.String(64), sa.String(20)


def upgrade() -> None:
    _people()
    _campaigns()
    _queue()
    _events()
    _disputes()
    for table in _APPEND_ONLY:
        _keep(table)


def _people() -> None:
    _create(
        "users",
        _column("name", _NAME),
        _column("role", _WORD),
        _column("password", sa.Text, optional=True),
        _moment("created"),
        _moment("ended", optional=True),
        _check("users", "role", "role IN ('viewer', 'annotator', 'adjudicator', 'admin')"),
        sa.UniqueConstraint("name", name=f("uq_users_name")),
    )
    _create(
        "logins",
        _column("digest", _DIGEST),
        _column("user_id", sa.Integer),
        _moment("created"),
        _moment("expires"),
        _foreign("logins", "user_id", "users", "CASCADE"),
        key=["digest"],
    )
    op.create_index("ix_logins_user_id", "logins", ["user_id"])
    _create("failed_logins", _column("key", _NAME), _moment("moment"))
    op.create_index("ix_failed_logins_key", "failed_logins", ["key", "moment"])


def _campaigns() -> None:
    _create(
        "campaigns",
        _column("name", _NAME),
        _column("dataset_id", sa.Integer),
        _column("conditions", sa.JSON),
        _column("overlap", sa.Integer),
        _column("after_error", sa.Boolean),
        _column("view", _WORD),
        _column("shows", _WORD),
        _column("evaluator_id", sa.Integer, optional=True),
        _column("ordering", _WORD),
        _column("random_share", sa.Double),
        _column("gold_rate", sa.Double),
        _column("lease", sa.Integer),
        _column("seed", sa.Integer),
        _moment("created"),
        _column("created_by", sa.Integer),
        _moment("closed", optional=True),
        _check("campaigns", "overlap", "overlap > 0"),
        _check("campaigns", "view", "view IN ('whole', 'stepwise')"),
        _check("campaigns", "shows", "shows IN ('nothing', 'scores')"),
        _check("campaigns", "shows_an_evaluator", "shows = 'nothing' OR evaluator_id IS NOT NULL"),
        _check("campaigns", "ordering", "ordering IN ('file', 'random', 'disagreement', 'change')"),
        _check("campaigns", "shares", "random_share BETWEEN 0 AND 1 AND gold_rate BETWEEN 0 AND 0.5"),
        _check("campaigns", "lease", "lease > 0"),
        _foreign("campaigns", "dataset_id", "datasets"),
        _foreign("campaigns", "evaluator_id", "evaluators"),
        _foreign("campaigns", "created_by", "users"),
        sa.UniqueConstraint("name", name=f("uq_campaigns_name")),
    )
    _create(
        "guidelines",
        _column("campaign_id", sa.Integer),
        _column("version", sa.Integer),
        _column("text", sa.Text),
        _moment("created"),
        _column("created_by", sa.Integer),
        _check("guidelines", "version", "version > 0"),
        _foreign("guidelines", "campaign_id", "campaigns"),
        _foreign("guidelines", "created_by", "users"),
        key=["campaign_id", "version"],
    )


def _queue() -> None:
    _create(
        "campaign_items",
        _column("campaign_id", sa.Integer),
        _column("trace_id", sa.Integer),
        _column("digest", _DIGEST),
        _column("place", sa.Integer),
        _column("chosen", _WORD),
        _check("campaign_items", "chosen", "chosen IN ('ordered', 'random', 'gold')"),
        _foreign("campaign_items", "campaign_id", "campaigns"),
        _foreign("campaign_items", "trace_id", "traces"),
        _unique("campaign_items", "campaign_id", "trace_id"),
        _unique("campaign_items", "campaign_id", "place"),
        _unique("campaign_items", "id", "campaign_id"),
    )
    op.create_index("ix_campaign_items_trace_id", "campaign_items", ["trace_id"])
    _create(
        "slots",
        _column("campaign_id", sa.Integer),
        _column("item_id", sa.Integer),
        _column("number", sa.Integer),
        _column("state", _WORD),
        _column("user_id", sa.Integer, optional=True),
        _moment("taken", optional=True),
        _moment("expires", optional=True),
        _moment("ended", optional=True),
        _check("slots", "state", "state IN ('free', 'leased', 'submitted', 'skipped')"),
        _check("slots", "free_has_nobody", "(state = 'free') = (user_id IS NULL)"),
        _check("slots", "leased_expires", "(state = 'leased') = (expires IS NOT NULL)"),
        _check("slots", "ended", "(state IN ('submitted', 'skipped')) = (ended IS NOT NULL)"),
        sa.ForeignKeyConstraint(
            ["item_id", "campaign_id"],
            ["campaign_items.id", "campaign_items.campaign_id"],
            name=f("fk_slots_item_id_campaign_id"),
            ondelete="RESTRICT",
        ),
        _foreign("slots", "user_id", "users"),
        _unique("slots", "item_id", "number"),
        _unique("slots", "item_id", "user_id"),
    )
    op.create_index("ix_slots_campaign_id", "slots", ["campaign_id", "state"])
    op.create_index("ix_slots_user_id", "slots", ["user_id", "campaign_id"])
    _create(
        "exposures",
        _column("user_id", sa.Integer),
        _column("trace_id", sa.Integer),
        _column("what", _WORD),
        _moment("moment"),
        _check("exposures", "what", "what IN ('scores', 'gold', 'labels')"),
        _foreign("exposures", "user_id", "users"),
        _foreign("exposures", "trace_id", "traces"),
        key=["user_id", "trace_id", "what"],
    )


def _events() -> None:
    references = {"campaign_id": "campaigns", "item_id": "campaign_items", "slot_id": "slots", "user_id": "users"}
    _create(
        "label_events",
        _column("campaign_id", sa.Integer),
        _column("item_id", sa.Integer),
        _column("slot_id", sa.Integer, optional=True),
        _column("user_id", sa.Integer),
        _column("kind", _WORD),
        _column("step", sa.Integer, optional=True),
        _column("old", sa.JSON, optional=True),
        _column("new", sa.JSON, optional=True),
        _column("cause", _WORD),
        _column("of", sa.Integer, optional=True),
        _column("key", _DIGEST),
        _moment("moment"),
        _column("seconds", sa.Double, optional=True),
        _column("digest", _DIGEST),
        _column("guideline", sa.Integer),
        _column("view", _WORD),
        _column("revealed", sa.Integer, optional=True),
        _column("visible", sa.JSON),
        _check("label_events", "step", "step >= 0"),
        _check("label_events", "cause", "cause IN ('', 'undo', 'redo')"),
        _check("label_events", "cause_of", "(cause = '') = (of IS NULL)"),
        *[_foreign("label_events", column, table) for column, table in references.items()],
        _foreign("label_events", "of", "label_events"),
        _unique("label_events", "user_id", "key"),
    )
    for column in ("campaign_id", "slot_id", "item_id"):
        op.create_index(f"ix_label_events_{column}", "label_events", [column, "id"])


def _disputes() -> None:
    _create(
        "disputes",
        _column("trace_id", sa.Integer),
        _column("digest", _DIGEST),
        _column("step", sa.Integer),
        _column("gold", _WORD, optional=True),
        _column("proposed", _WORD, optional=True),
        _column("reason", sa.Text),
        _column("user_id", sa.Integer),
        _moment("moment"),
        _check("disputes", "step", "step >= 0"),
        _foreign("disputes", "trace_id", "traces"),
        _foreign("disputes", "user_id", "users"),
    )
    op.create_index("ix_disputes_trace_id", "disputes", ["trace_id"])
    _create(
        "dispute_entries",
        _column("dispute_id", sa.Integer),
        _column("user_id", sa.Integer),
        _column("state", _WORD, optional=True),
        _column("text", sa.Text),
        _moment("moment"),
        _check("dispute_entries", "state", "state IN ('open', 'accepted', 'rejected', 'withdrawn')"),
        _foreign("dispute_entries", "dispute_id", "disputes"),
        _foreign("dispute_entries", "user_id", "users"),
    )
    op.create_index("ix_dispute_entries_dispute_id", "dispute_entries", ["dispute_id", "id"])


def _keep(table: str) -> None:
    """Have the database refuse to change or delete a row."""
    if op.get_bind().dialect.name == "sqlite":
        for act in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER {table}_kept_{act.lower()} BEFORE {act} ON {table}"
                f" BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
            )
        return
    op.execute(
        f"CREATE FUNCTION keep_{table}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" RAISE EXCEPTION '{table} is append-only' USING ERRCODE = 'restrict_violation'; END $$"
    )
    op.execute(
        f"CREATE TRIGGER {table}_kept BEFORE UPDATE OR DELETE ON {table}"
        f" FOR EACH ROW EXECUTE FUNCTION keep_{table}()"
    )


def _create(table: str, *parts: Any, key: Sequence[str] = ("id",)) -> None:
    ids = [sa.Column("id", sa.Integer, nullable=False)] if key == ("id",) else []
    op.create_table(table, *ids, *parts, sa.PrimaryKeyConstraint(*key, name=f(f"pk_{table}")))


def _column(name: str, kind: Any, optional: bool = False) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=optional)


def _moment(name: str, optional: bool = False) -> sa.Column[Any]:
    return _column(name, sa.DateTime(timezone=True), optional)


def _check(table: str, name: str, condition: str) -> sa.CheckConstraint:
    return sa.CheckConstraint(condition, name=f(f"ck_{table}_{name}"))


def _unique(table: str, *columns: str) -> sa.UniqueConstraint:
    return sa.UniqueConstraint(*columns, name=f(f"uq_{table}_{'_'.join(columns)}"))


def _foreign(table: str, column: str, other: str, ondelete: str = "RESTRICT") -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{other}.id"], name=f(f"fk_{table}_{column}"), ondelete=ondelete)
