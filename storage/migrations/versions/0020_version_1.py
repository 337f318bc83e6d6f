"""The schema of version 1.0. Constraints are named by the convention of `storage.database.schema.Base`.

Stores with the previous schema, 0019, have the same tables, so `storage.database.migrate` uses them as they are.
"""

import sqlite3
from typing import Any

import sqlalchemy as sa
from alembic import op

from stepsight.core.errors import UserError

revision = "0020_version_1"
down_revision = None
branch_labels = None
depends_on = None

_NAME, _DIGEST, _WORD = sa.String(200), sa.String(64), sa.String(20)
_MOMENT = sa.DateTime(timezone=True)
_MODES = "mode IN ('offline', 'online', 'hindsight')"
_ROLES = "role IN ('viewer', 'annotator', 'adjudicator', 'admin')"
_APPEND_ONLY = ("label_events", "guidelines", "disputes", "dispute_entries")
# The first with the tokenizer that the search rests on.
_SQLITE = (3, 34)


def upgrade() -> None:
    _create_traces()
    _create_judgments()
    _create_people()
    _create_campaigns()
    _create_queue()
    _create_events()
    _create_disputes()
    _create_jobs()
    if op.get_bind().dialect.name == "sqlite":
        _add_search_to_sqlite()
    else:
        _add_search_to_postgresql()
    for table in _APPEND_ONLY:
        _refuse_changes(table)


def _create_traces() -> None:
    op.create_table(
        "datasets",
        _id(),
        _column("name", _NAME, unique=True),
        *_columns(kind=_NAME, source=sa.Text, sha256=_DIGEST, created=_MOMENT),
        _column("revision", sa.Integer, server_default="0"),
    )
    op.create_table(
        "left_out",
        _reference("dataset_id", "datasets", "CASCADE", primary_key=True),
        _column("digest", _DIGEST, primary_key=True),
        *_columns(source=sa.Text, place=sa.Text, error=sa.Text),
    )
    op.create_table(
        "traces",
        _id(),
        _reference("dataset_id", "datasets", "CASCADE"),
        *_columns(external_id=sa.String(500), position=sa.Integer, problem=sa.Text, digest=_DIGEST),
        *_columns(n_steps=sa.Integer, n_substeps=sa.Integer),
        *_optional(first_error=sa.Integer),
        *_columns(has_gold=sa.Boolean),
        _column("n_redundant", sa.Integer, server_default="0"),
        *_columns(meta=sa.JSON),
        _column("text_digest", _DIGEST, server_default=""),
        sa.UniqueConstraint("dataset_id", "external_id"),
        sa.UniqueConstraint("dataset_id", "position"),
        sa.UniqueConstraint("id", "dataset_id"),
        sa.CheckConstraint("position >= 0", "position"),
        sa.CheckConstraint("n_steps > 0 AND n_substeps >= n_steps", "counts"),
        sa.CheckConstraint("first_error >= 0 AND first_error < n_steps", "first_error"),
        sa.CheckConstraint("first_error IS NULL OR has_gold", "has_gold"),
    )
    counted = ["dataset_id", "first_error", "has_gold", "n_steps", "n_substeps", "n_redundant"]
    op.create_index("ix_traces_counts", "traces", counted)
    op.create_index("ix_traces_text_digest", "traces", ["text_digest"])
    op.create_table(
        "steps",
        _reference("trace_id", "traces", "CASCADE", primary_key=True),
        _column("position", sa.Integer, primary_key=True),
        *_optional(label=sa.SmallInteger, valid=sa.Boolean),
        sa.CheckConstraint("position >= 0", "position"),
        sa.CheckConstraint("label IN (0, 1, 2)", "label"),
        sa.CheckConstraint("label IS NULL OR (valid IS NOT NULL AND valid = (label <> 0))", "label_says_valid"),
    )
    op.create_table(
        "substeps",
        _column("trace_id", sa.Integer, primary_key=True),
        _column("step", sa.Integer, primary_key=True),
        _column("position", sa.Integer, primary_key=True),
        *_columns(text=sa.Text),
        sa.ForeignKeyConstraint(["trace_id", "step"], ["steps.trace_id", "steps.position"], ondelete="CASCADE"),
        sa.CheckConstraint("position >= 0", "position"),
    )


def _create_judgments() -> None:
    key = ["evaluator_id", "dataset_id", "mode", "trace_id"]
    op.create_table(
        "evaluators",
        _id(),
        *_columns(name=_NAME),
        _column("fingerprint", _NAME, unique=True),
        *_columns(format=_NAME, attention=_NAME, info=sa.JSON, created=_MOMENT),
    )
    op.create_table(
        "judgments",
        _id(),
        *_columns(trace_id=sa.Integer, dataset_id=sa.Integer),
        _reference("evaluator_id", "evaluators"),
        *_columns(mode=_WORD, trace_digest=_DIGEST, probabilities=sa.LargeBinary),
        *_columns(validity=sa.Double, redundancy=sa.Double),
        *_optional(online_validity=sa.Double, online_redundancy=sa.Double, retroactive=sa.Double),
        *_columns(created=_MOMENT),
        *_optional(solution=sa.Double, rationale=sa.Text, spread=sa.LargeBinary, spent=sa.JSON),
        sa.ForeignKeyConstraint(["trace_id", "dataset_id"], ["traces.id", "traces.dataset_id"], ondelete="CASCADE"),
        sa.UniqueConstraint("trace_id", "evaluator_id", "mode"),
        sa.CheckConstraint(_MODES, "mode"),
        sa.CheckConstraint(
            "(mode = 'hindsight') = (online_validity IS NOT NULL)"
            " AND (mode = 'hindsight') = (online_redundancy IS NOT NULL)"
            " AND (mode = 'hindsight') = (retroactive IS NOT NULL)",
            "hindsight_columns",
        ),
    )
    op.create_index("ix_judgments_evaluator_id", "judgments", key, unique=True)
    op.create_table(
        "profiles",
        _column("evaluator_id", sa.Integer, primary_key=True),
        _column("dataset_id", sa.Integer, primary_key=True),
        _column("mode", _WORD, primary_key=True),
        _column("trace_id", sa.Integer, primary_key=True),
        *_optional(online=sa.LargeBinary, offline=sa.LargeBinary),
        sa.ForeignKeyConstraint(key, [f"judgments.{name}" for name in key], ondelete="CASCADE"),
        sa.CheckConstraint(_MODES, "mode"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "judged",
        _reference("dataset_id", "datasets", "CASCADE", primary_key=True),
        _reference("evaluator_id", "evaluators", "CASCADE", primary_key=True),
        *_columns(revision=sa.Integer),
    )
    op.create_table(
        "calibrations",
        _id(),
        _reference("evaluator_id", "evaluators", "CASCADE"),
        _reference("dataset_id", "datasets", "SET NULL", nullable=True),
        *_columns(dataset=_NAME, validity=sa.Double, redundancy=sa.Double, info=sa.JSON, created=_MOMENT),
    )
    op.create_index("ix_calibrations_evaluator_id", "calibrations", ["evaluator_id", "id"])
    op.create_table(
        "verifications",
        _id(),
        *_columns(repo=_NAME, revision=_NAME, fingerprint=_NAME, dtype=_WORD, part=_WORD),
        *_columns(traces=sa.Integer, whole=sa.Boolean, threshold=sa.Double, f1=sa.Double),
        *_optional(low=sa.Double, high=sa.Double, published=sa.Double),
        *_columns(created=_MOMENT),
    )
    op.create_index("ix_verifications_repo", "verifications", ["repo", "id"])


def _create_people() -> None:
    op.create_table(
        "users",
        _id(),
        _column("name", _NAME, unique=True),
        *_columns(role=_WORD),
        *_optional(password=sa.Text),
        *_columns(created=_MOMENT),
        *_optional(ended=_MOMENT, last_login=_MOMENT),
        sa.CheckConstraint(_ROLES, "role"),
    )
    op.create_table("server_secrets", _column("name", _WORD, primary_key=True), _column("secret", sa.LargeBinary))
    op.create_table(
        "logins",
        _column("digest", _DIGEST, primary_key=True),
        _reference("user_id", "users", "CASCADE"),
        *_columns(created=_MOMENT, expires=_MOMENT),
    )
    op.create_index("ix_logins_user_id", "logins", ["user_id"])
    op.create_table("failed_logins", _id(), _column("key", _NAME), _column("moment", _MOMENT))
    op.create_index("ix_failed_logins_key", "failed_logins", ["key", "moment"])
    op.create_table("homes", _column("key", _NAME, primary_key=True), _column("moment", _MOMENT))
    op.create_table(
        "invitations",
        _id(),
        _column("digest", _DIGEST, unique=True),
        *_optional(name=_NAME),
        *_columns(role=_WORD),
        _reference("user_id", "users", nullable=True),
        *_columns(created=_MOMENT),
        _reference("created_by", "users"),
        *_columns(expires=_MOMENT),
        *_optional(used=_MOMENT, revoked=_MOMENT),
        sa.CheckConstraint(_ROLES, "role"),
    )
    op.create_table(
        "views",
        _id(),
        _reference("user_id", "users", "CASCADE"),
        *_columns(name=_NAME, dataset=_NAME, query=sa.Text, created=_MOMENT),
        sa.UniqueConstraint("user_id", "name"),
    )


def _create_campaigns() -> None:
    op.create_table(
        "campaigns",
        _id(),
        _column("name", _NAME, unique=True),
        _reference("dataset_id", "datasets"),
        *_columns(conditions=sa.JSON, overlap=sa.Integer, after_error=sa.Boolean, view=_WORD, shows=_WORD),
        _reference("evaluator_id", "evaluators", nullable=True),
        *_columns(ordering=_WORD, random_share=sa.Double, gold_rate=sa.Double),
        *_columns(lease=sa.Integer, seed=sa.Integer, created=_MOMENT),
        _reference("created_by", "users"),
        *_optional(closed=_MOMENT),
        _column("shows_answer", sa.Boolean, server_default=sa.false()),
        _column("restricted", sa.Boolean, server_default=sa.false()),
        _column("error_kinds", sa.JSON, server_default="[]"),
        _column("after_submission", _WORD, server_default="everything"),
        *_optional(sample=sa.Integer, population=sa.Integer),
        _column("suggests", sa.Boolean, server_default=sa.false()),
        _column("shows_equations", sa.Boolean, server_default=sa.false()),
        sa.CheckConstraint("overlap > 0", "overlap"),
        sa.CheckConstraint("view IN ('whole', 'stepwise')", "view"),
        sa.CheckConstraint("shows IN ('nothing', 'scores')", "shows"),
        sa.CheckConstraint("shows = 'nothing' OR evaluator_id IS NOT NULL", "shows_an_evaluator"),
        sa.CheckConstraint("ordering IN ('file', 'random', 'disagreement', 'change')", "ordering"),
        sa.CheckConstraint("random_share BETWEEN 0 AND 1 AND gold_rate BETWEEN 0 AND 0.5", "shares"),
        sa.CheckConstraint("lease > 0", "lease"),
        sa.CheckConstraint("after_submission IN ('nothing', 'gold', 'everything')", "after_submission"),
        sa.CheckConstraint("sample > 0", "sample"),
        sa.CheckConstraint("population >= sample", "population"),
    )
    op.create_table(
        "campaign_annotators",
        _reference("campaign_id", "campaigns", primary_key=True),
        _reference("user_id", "users", primary_key=True),
        *_columns(added=_MOMENT),
        _reference("added_by", "users"),
    )
    op.create_table(
        "invitation_campaigns",
        _reference("invitation_id", "invitations", primary_key=True),
        _reference("campaign_id", "campaigns", primary_key=True),
    )
    op.create_table(
        "guidelines",
        _reference("campaign_id", "campaigns", primary_key=True),
        _column("version", sa.Integer, primary_key=True),
        *_columns(text=sa.Text, created=_MOMENT),
        _reference("created_by", "users"),
        sa.CheckConstraint("version > 0", "version"),
    )


def _create_queue() -> None:
    op.create_table(
        "campaign_items",
        _id(),
        _reference("campaign_id", "campaigns"),
        _reference("trace_id", "traces"),
        *_columns(digest=_DIGEST, place=sa.Integer, chosen=_WORD),
        _column("text_digest", _DIGEST, server_default=""),
        sa.UniqueConstraint("campaign_id", "trace_id"),
        sa.UniqueConstraint("campaign_id", "place"),
        sa.UniqueConstraint("id", "campaign_id"),
        sa.CheckConstraint("chosen IN ('ordered', 'random', 'gold')", "chosen"),
    )
    op.create_index("ix_campaign_items_trace_id", "campaign_items", ["trace_id"])
    op.create_index("ix_campaign_items_text_digest", "campaign_items", ["text_digest", "campaign_id"])
    op.create_table(
        "slots",
        _id(),
        *_columns(campaign_id=sa.Integer, item_id=sa.Integer, number=sa.Integer, state=_WORD),
        _reference("user_id", "users", nullable=True),
        *_optional(taken=_MOMENT, expires=_MOMENT, ended=_MOMENT),
        _column("public_id", sa.String(16), server_default=""),
        sa.ForeignKeyConstraint(
            ["item_id", "campaign_id"], ["campaign_items.id", "campaign_items.campaign_id"], ondelete="RESTRICT"
        ),
        sa.UniqueConstraint("item_id", "number"),
        sa.UniqueConstraint("item_id", "user_id"),
        sa.CheckConstraint("state IN ('free', 'leased', 'submitted', 'skipped')", "state"),
        sa.CheckConstraint("(state = 'free') = (user_id IS NULL)", "free_has_nobody"),
        sa.CheckConstraint("(state = 'leased') = (expires IS NOT NULL)", "leased_expires"),
        sa.CheckConstraint("(state IN ('submitted', 'skipped')) = (ended IS NOT NULL)", "ended"),
    )
    op.create_index("ix_slots_campaign_id", "slots", ["campaign_id", "state"])
    op.create_index("ix_slots_user_id", "slots", ["user_id", "campaign_id"])
    op.create_index("ix_slots_public_id", "slots", ["public_id"], unique=True)
    op.create_table(
        "exposures",
        _reference("user_id", "users", primary_key=True),
        _column("text_digest", _DIGEST, primary_key=True),
        _column("what", _WORD, primary_key=True),
        *_columns(moment=_MOMENT),
        sa.CheckConstraint("what IN ('scores', 'gold', 'labels', 'equations')", "what"),
    )


def _create_events() -> None:
    op.create_table(
        "label_events",
        _id(),
        _reference("campaign_id", "campaigns"),
        _reference("item_id", "campaign_items"),
        _reference("slot_id", "slots", nullable=True),
        _reference("user_id", "users"),
        *_columns(kind=_WORD),
        *_optional(step=sa.Integer, old=sa.JSON, new=sa.JSON),
        *_columns(cause=_WORD),
        _reference("of", "label_events", nullable=True),
        *_columns(key=_DIGEST, moment=_MOMENT),
        *_optional(seconds=sa.Double),
        *_columns(digest=_DIGEST, guideline=sa.Integer, view=_WORD),
        *_optional(revealed=sa.Integer),
        *_columns(visible=sa.JSON),
        sa.UniqueConstraint("user_id", "key"),
        sa.CheckConstraint("step >= 0", "step"),
        sa.CheckConstraint("cause IN ('', 'undo', 'redo')", "cause"),
        sa.CheckConstraint("(cause = '') = (of IS NULL)", "cause_of"),
    )
    for column in ("campaign_id", "slot_id", "item_id"):
        op.create_index(f"ix_label_events_{column}", "label_events", [column, "id"])


def _create_disputes() -> None:
    op.create_table(
        "disputes",
        _id(),
        _reference("trace_id", "traces"),
        *_columns(digest=_DIGEST, step=sa.Integer),
        *_optional(gold=_WORD, proposed=_WORD),
        *_columns(reason=sa.Text),
        _reference("user_id", "users"),
        *_columns(moment=_MOMENT),
        sa.CheckConstraint("step >= 0", "step"),
    )
    op.create_index("ix_disputes_trace_id", "disputes", ["trace_id"])
    op.create_table(
        "dispute_entries",
        _id(),
        _reference("dispute_id", "disputes"),
        _reference("user_id", "users"),
        *_optional(state=_WORD),
        *_columns(text=sa.Text, moment=_MOMENT),
        sa.CheckConstraint("state IN ('open', 'accepted', 'rejected', 'withdrawn')", "state"),
    )
    op.create_index("ix_dispute_entries_dispute_id", "dispute_entries", ["dispute_id", "id"])


def _create_jobs() -> None:
    op.create_table(
        "jobs",
        _id(),
        _column("task", _WORD, server_default="judge"),
        _column("subject", sa.Text, server_default=""),
        *_optional(request=sa.JSON),
        _reference("dataset_id", "datasets", "CASCADE", nullable=True),
        *_optional(evaluator=_NAME, spec=sa.Text, fingerprint=_NAME, mode=_WORD),
        *_columns(state=_WORD, total=sa.BigInteger, began=sa.BigInteger, done=sa.BigInteger),
        *_columns(left_out=sa.Integer, attempts=sa.Integer, reason=sa.Text),
        *_optional(worker=_NAME),
        *_columns(created=_MOMENT),
        *_optional(started=_MOMENT, heartbeat=_MOMENT, finished=_MOMENT),
        sa.CheckConstraint(_MODES, "mode"),
        sa.CheckConstraint("state IN ('queued', 'running', 'done', 'failed', 'cancelled')", "state"),
        sa.CheckConstraint(
            "task = 'judge' AND dataset_id IS NOT NULL AND evaluator IS NOT NULL AND spec IS NOT NULL"
            " AND fingerprint IS NOT NULL AND mode IS NOT NULL"
            " OR task IN ('import', 'fetch') AND request IS NOT NULL",
            "task",
        ),
        sa.CheckConstraint(
            "state <> 'running' OR (worker IS NOT NULL AND heartbeat IS NOT NULL)", "running_has_a_worker"
        ),
    )
    op.create_index("ix_jobs_state", "jobs", ["state", "id"])
    active = sa.text("state IN ('queued', 'running')")
    same = ["dataset_id", "fingerprint", "mode"]
    op.create_index("uq_jobs_active", "jobs", same, unique=True, sqlite_where=active, postgresql_where=active)
    op.create_table(
        "uploads",
        _id(),
        _reference("user_id", "users", "CASCADE"),
        *_columns(name=_NAME, size=sa.Integer, modified=sa.String(40), received=sa.Integer),
        *_optional(sha256=_DIGEST),
        *_columns(created=_MOMENT, touched=_MOMENT),
        sa.CheckConstraint("size > 0 AND received >= 0 AND received <= size", "received"),
        sa.CheckConstraint("sha256 IS NULL OR received = size", "whole"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_uploads_user_id", "uploads", ["user_id", "id"])
    op.create_table(
        "upload_parts",
        _reference("upload_id", "uploads", "CASCADE", primary_key=True),
        _column("start", sa.Integer, primary_key=True, autoincrement=False),
        *_columns(content=sa.LargeBinary),
    )


def _add_search_to_sqlite() -> None:
    if sqlite3.sqlite_version_info < _SQLITE:
        found = f"This Python has SQLite {sqlite3.sqlite_version}."
        raise UserError(found, "Use one with SQLite 3.34 or newer, or a store on PostgreSQL.")
    # The texts are stored once more, so that one can be taken out of the index without knowing what it was.
    op.execute("CREATE VIRTUAL TABLE trace_search USING fts5(text, tokenize = 'trigram')")
    op.execute(
        "CREATE TRIGGER traces_deleted AFTER DELETE ON traces BEGIN"
        " DELETE FROM trace_search WHERE rowid = old.id;"
        " UPDATE datasets SET revision = revision + 1 WHERE id = old.dataset_id;"
        " END"
    )


def _add_search_to_postgresql() -> None:
    # Every three characters in a row. PostgreSQL's own words would not find 3/4 or x^2.
    op.execute(
        "CREATE FUNCTION search_trigrams(text) RETURNS text[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$"
        " SELECT coalesce(array_agg(DISTINCT substr(lower($1), i, 3)), '{}')"
        " FROM generate_series(1, char_length(lower($1)) - 2) AS i $$"
    )
    op.execute("CREATE INDEX ix_search_problem ON traces USING gin (search_trigrams(problem))")
    op.execute("CREATE INDEX ix_search_text ON substeps USING gin (search_trigrams(text))")
    op.execute(
        "CREATE FUNCTION note_deleted_traces() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " UPDATE datasets SET revision = revision + 1 WHERE id IN (SELECT dataset_id FROM gone);"
        " RETURN NULL; END $$"
    )
    op.execute(
        "CREATE TRIGGER traces_deleted AFTER DELETE ON traces REFERENCING OLD TABLE AS gone"
        " FOR EACH STATEMENT EXECUTE FUNCTION note_deleted_traces()"
    )


def _refuse_changes(table: str) -> None:
    """Create triggers that refuse to change or delete rows of a table."""
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


def _id() -> sa.Column[Any]:
    return sa.Column("id", sa.Integer, primary_key=True)


def _column(name: str, kind: Any, **options: Any) -> sa.Column[Any]:
    """Return a column that is never NULL."""
    return sa.Column(name, kind, nullable=False, **options)


def _columns(**kinds: Any) -> list[sa.Column[Any]]:
    """Return columns with the given names and types that are never NULL."""
    return [_column(name, kind) for name, kind in kinds.items()]


def _optional(**kinds: Any) -> list[sa.Column[Any]]:
    """Return columns with the given names and types that may be NULL."""
    return [sa.Column(name, kind) for name, kind in kinds.items()]


def _reference(
    name: str, table: str, ondelete: str = "RESTRICT", *, nullable: bool = False, primary_key: bool = False
) -> sa.Column[Any]:
    """Return a column for the id of a row in a different table."""
    foreign = sa.ForeignKey(f"{table}.id", ondelete=ondelete)
    return sa.Column(name, sa.Integer, foreign, nullable=nullable, primary_key=primary_key)
