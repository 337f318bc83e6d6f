"""Exposures by text in the place of by trace, random public ids of slots, and secrets of the server.

Whoever had a trace in a campaign that shows scores or marks equations has seen them: that was not noted in every
version.
"""

import secrets
from itertools import groupby
from operator import itemgetter

import sqlalchemy as sa
from alembic import op
from alembic.op import f

from stepsight.core.trace import digest_text

revision = "0016_texts_seen"
down_revision = "0015_whole_steps"
branch_labels = None
depends_on = None

_DIGEST = sa.String(64)
# Traces or slots in memory at once.
_BATCH = 1000

_traces = sa.table("traces", *map(sa.column, ("id", "problem", "text_digest")))
_substeps = sa.table("substeps", *map(sa.column, ("trace_id", "step", "position", "text")))
_items = sa.table("campaign_items", *map(sa.column, ("id", "campaign_id", "trace_id", "text_digest")))
_slots = sa.table("slots", *map(sa.column, ("id", "campaign_id", "item_id", "user_id", "taken", "public_id")))
_events = sa.table("label_events", *map(sa.column, ("item_id", "user_id", "slot_id", "moment")))
_campaigns = sa.table("campaigns", *map(sa.column, ("id", "shows")), sa.column("shows_equations", sa.Boolean))
_EXPOSURE = ("user_id", "text_digest", "what", "moment")


def upgrade() -> None:
    for table in ("traces", "campaign_items"):
        op.add_column(table, sa.Column("text_digest", _DIGEST, nullable=False, server_default=""))
    _digest_traces(op.get_bind())
    of_trace = sa.select(_traces.c.text_digest).where(_traces.c.id == _items.c.trace_id)
    op.execute(sa.update(_items).values(text_digest=of_trace.scalar_subquery()))
    op.create_index("ix_campaign_items_text_digest", "campaign_items", ["text_digest", "campaign_id"])
    _expose_by_text()
    op.add_column("slots", sa.Column("public_id", sa.String(16), nullable=False, server_default=""))
    _name_slots(op.get_bind())
    op.create_index("ix_slots_public_id", "slots", ["public_id"], unique=True)
    op.create_table(
        "server_secrets",
        sa.Column("name", sa.String(20), nullable=False),
        sa.Column("secret", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("name", name=f("pk_server_secrets")),
    )


def _digest_traces(connection: sa.Connection) -> None:
    new = sa.update(_traces).where(_traces.c.id == sa.bindparam("of"))
    new = new.values(text_digest=sa.bindparam("digest"))
    last = 0
    while True:
        wanted = sa.select(_traces.c.id, _traces.c.problem).where(_traces.c.id > last)
        problems = connection.execute(wanted.order_by(_traces.c.id).limit(_BATCH)).all()
        if not problems:
            return
        first, last = problems[0].id, problems[-1].id
        key = (_substeps.c.trace_id, _substeps.c.step, _substeps.c.position)
        texts = sa.select(_substeps.c.trace_id, _substeps.c.text).where(_substeps.c.trace_id.between(first, last))
        rows = groupby(connection.execute(texts.order_by(*key)), key=itemgetter(0))
        solutions = {trace: [row.text for row in group] for trace, group in rows}
        digests = [{"of": id, "digest": digest_text(problem, solutions.get(id, ()))} for id, problem in problems]
        connection.execute(new, digests)


def _name_slots(connection: sa.Connection) -> None:
    new = sa.update(_slots).where(_slots.c.id == sa.bindparam("of")).values(public_id=sa.bindparam("public"))
    ids = connection.scalars(sa.select(_slots.c.id)).all()
    for start in range(0, len(ids), _BATCH):
        part = ids[start : start + _BATCH]
        connection.execute(new, [{"of": id, "public": secrets.token_hex(8)} for id in part])


def _expose_by_text() -> None:
    """A row per person, text and what was seen, of the moment at which that was first."""
    by_trace = sa.table("exposures", *map(sa.column, ("user_id", "trace_id", "what", "moment")))
    seen = sa.select(by_trace.c.user_id, _traces.c.text_digest, by_trace.c.what, by_trace.c.moment)
    every = sa.union_all(
        seen.join_from(by_trace, _traces, _traces.c.id == by_trace.c.trace_id),
        *(
            _shown(rows, what, condition)
            for rows in (_had_slot(), _had_events())
            for what, condition in (
                ("scores", _campaigns.c.shows == "scores"),
                ("equations", _campaigns.c.shows_equations.is_(True)),
            )
        ),
    ).subquery()
    group = (every.c.user_id, every.c.text_digest, every.c.what)
    op.create_table("exposures_collected", *_columns())
    collected = sa.table("exposures_collected", *map(sa.column, _EXPOSURE))
    first = sa.select(*group, sa.func.min(every.c.moment)).group_by(*group)
    op.execute(sa.insert(collected).from_select(_EXPOSURE, first))
    # The old table goes before the new one comes: on PostgreSQL a name of a constraint is there once.
    op.drop_table("exposures")
    op.create_table(
        "exposures",
        *_columns(),
        sa.PrimaryKeyConstraint("user_id", "text_digest", "what", name=f("pk_exposures")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=f("fk_exposures_user_id"), ondelete="RESTRICT"),
        sa.CheckConstraint("what IN ('scores', 'gold', 'labels', 'equations')", name=f("ck_exposures_what")),
    )
    exposures = sa.table("exposures", *map(sa.column, _EXPOSURE))
    op.execute(sa.insert(exposures).from_select(_EXPOSURE, sa.select(collected)))
    op.drop_table("exposures_collected")


def _columns() -> list[sa.Column[object]]:
    return [
        sa.Column("user_id", sa.Integer, nullable=False),
        sa.Column("text_digest", _DIGEST, nullable=False),
        sa.Column("what", sa.String(20), nullable=False),
        sa.Column("moment", sa.DateTime(timezone=True), nullable=False),
    ]


def _had_slot() -> sa.Subquery:
    had = sa.select(_slots.c.item_id, _slots.c.user_id, _slots.c.taken.label("moment"))
    return had.where(_slots.c.user_id.is_not(None), _slots.c.taken.is_not(None)).subquery()


def _had_events() -> sa.Subquery:
    """Of those, too, who lost a slot to somebody else."""
    had = sa.select(_events.c.item_id, _events.c.user_id, _events.c.moment)
    return had.where(_events.c.slot_id.is_not(None)).subquery()


def _shown(rows: sa.Subquery, what: str, condition: sa.ColumnElement[bool]) -> sa.Select[tuple[object, ...]]:
    shown = sa.select(rows.c.user_id, _items.c.text_digest, sa.literal(what).label("what"), rows.c.moment)
    joined = shown.join_from(rows, _items, _items.c.id == rows.c.item_id)
    return joined.join(_campaigns, _campaigns.c.id == _items.c.campaign_id).where(condition)
