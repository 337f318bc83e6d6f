"""What Browse filters, sorts and searches by: profiles of judgments, counts of changes, an index of texts."""

import sqlite3

import sqlalchemy as sa
from alembic import op
from alembic.op import f

from stepsight.core.errors import UserError
from stepsight.storage.judgments.packed_judgments import fill_profiles

revision = "0003_browsing"
down_revision = "0002_evaluation"
branch_labels = None
depends_on = None

# The first with the tokenizer that the search rests on.
_SQLITE = (3, 34)


def upgrade() -> None:
    op.add_column("datasets", sa.Column("revision", sa.Integer, nullable=False, server_default="0"))
    _indexes()
    _judged()
    _profiles()
    if op.get_bind().dialect.name == "sqlite":
        _search_sqlite()
    else:
        _search_postgresql()
    fill_profiles(op.get_bind())


def _indexes() -> None:
    # Pages are filtered and sorted by columns in memory.
    for name in ("error", "clean", "missing"):
        op.drop_index(f"ix_traces_gold_{name}", "traces")
    op.drop_index("ix_judgments_evaluator_validity", "judgments")
    columns = ["evaluator_id", "dataset_id", "mode", "trace_id"]
    op.create_index("ix_judgments_evaluator_id", "judgments", columns, unique=True)


def _judged() -> None:
    op.create_table(
        "judged",
        sa.Column("dataset_id", sa.Integer, nullable=False),
        sa.Column("evaluator_id", sa.Integer, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("dataset_id", "evaluator_id", name=f("pk_judged")),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["datasets.id"], name=f("fk_judged_dataset_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["evaluator_id"], ["evaluators.id"], name=f("fk_judged_evaluator_id"), ondelete="CASCADE"
        ),
    )


def _profiles() -> None:
    key = ["evaluator_id", "dataset_id", "mode", "trace_id"]
    op.create_table(
        "profiles",
        sa.Column("evaluator_id", sa.Integer, nullable=False),
        sa.Column("dataset_id", sa.Integer, nullable=False),
        sa.Column("mode", sa.String(20), nullable=False),
        sa.Column("trace_id", sa.Integer, nullable=False),
        sa.Column("online", sa.LargeBinary),
        sa.Column("offline", sa.LargeBinary),
        sa.PrimaryKeyConstraint(*key, name=f("pk_profiles")),
        sa.ForeignKeyConstraint(
            key,
            [f"judgments.{name}" for name in key],
            name=f("fk_profiles_evaluator_id_dataset_id_mode_trace_id"),
            ondelete="CASCADE",
        ),
        sa.CheckConstraint("mode IN ('offline', 'online', 'hindsight')", name=f("ck_profiles_mode")),
        sqlite_with_rowid=False,
    )


def _search_sqlite() -> None:
    if sqlite3.sqlite_version_info < _SQLITE:
        found = f"This Python has SQLite {sqlite3.sqlite_version}."
        raise UserError(found, "Use one with SQLite 3.34 or newer, or a store on PostgreSQL.")
    # The texts are stored once more, so that one can be taken out of the index without knowing what it was.
    op.execute("CREATE VIRTUAL TABLE trace_search USING fts5(text, tokenize = 'trigram')")
    op.execute(
        "INSERT INTO trace_search (rowid, text) SELECT id, problem || char(31) || ("
        "SELECT group_concat(text, char(31)) FROM ("
        "SELECT text FROM substeps WHERE trace_id = traces.id ORDER BY step, position)) FROM traces"
    )
    op.execute(
        "CREATE TRIGGER traces_deleted AFTER DELETE ON traces BEGIN"
        " DELETE FROM trace_search WHERE rowid = old.id;"
        " UPDATE datasets SET revision = revision + 1 WHERE id = old.dataset_id;"
        " END"
    )


def _search_postgresql() -> None:
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
