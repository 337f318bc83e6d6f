"""Creating the schema of a store, and checking the version of the schema of an existing one.

The tables are those of the models, stamped with a version. What the models cannot say is here: the search index,
and the triggers of the tables that are append-only.
"""

import sqlite3
from collections.abc import Iterable

from sqlalchemy import Connection, inspect, text

from stepsight.core.errors import UserError
from stepsight.core.text.signs import BREAKS, INVISIBLE, PLAIN, UNSPACED
from stepsight.storage.database.schema import Base
from stepsight.storage.database.stored_json import DamagedError

VERSION = 3
"""The version of the schema."""
STAMP = "stepsight_schema"
"""The table that holds the version of a store's schema."""

# Some of the tables that every store has, and the table with which versions before 1.0.0 stamped it.
_TABLES, _EARLIER = {"datasets", "traces", "judgments"}, "alembic_version"
# Any number will do, as long as every process that creates a store requests the same lock.
_LOCK = 5_749_207_318
# The first version with the tokenizer that search needs.
_SQLITE = (3, 34)
# The append-only tables, each with the condition under which a row `old` must be kept: what people did can be
# deleted only if the campaign is closed and its log has been exported.
_APPEND_ONLY = {
    "label_events": "NOT EXISTS (SELECT 1 FROM campaigns WHERE campaigns.id = old.campaign_id"
    " AND campaigns.closed IS NOT NULL AND campaigns.exported IS NOT NULL)",
    "guidelines": "EXISTS (SELECT 1 FROM label_events WHERE label_events.campaign_id = old.campaign_id)",
    "disputes": "TRUE",
    "dispute_entries": "TRUE",
}


def is_created(connection: Connection, name: str) -> bool:
    """True if the database has the schema of this version, False if it is empty.

    Raises `UserError` if the database belongs to another program or has a schema of another version, and
    `DamagedError` if the store does not record its version. Messages refer to the database by `name`.
    """
    tables = set(inspect(connection).get_table_names())
    if not tables:
        return False
    if tables >= _TABLES | {_EARLIER}:
        raise UserError(
            f"{name}: a store of a version before 1.0.0, which this version cannot read.",
            "Use another store (--db PATH), or move this one away. To keep its labels, export each campaign's"
            " log with that version (stepsight export labels NAME FILE --format events); here, import the traces"
            " again, then each log (stepsight import labels FILE).",
        )
    if not tables >= _TABLES | {STAMP}:
        raise UserError(
            f"{name}: a database of another program (it has a table {min(tables - {STAMP})!r}).",
            "Name a store, or an empty database.",
        )
    versions = connection.scalars(text(f"SELECT version FROM {STAMP}")).all()
    if len(versions) != 1:
        raise DamagedError(f"{STAMP} has {len(versions)} rows, expected one.")
    check_version(versions[0], name)
    return True


def check_version(version: int, name: str) -> None:
    """Raise `UserError` if this version cannot read a schema of `version`. Messages refer to `name`."""
    if version != VERSION:
        raise UserError(
            f"{name}: the version of its schema is {version}, expected {VERSION}.",
            "Update StepSight, or name another store.",
        )


def create(connection: Connection, name: str) -> None:
    """Create the schema in the transaction of `connection`, unless the database has it.

    If several processes open a new store at once, the first one creates the schema while the others wait.
    """
    # Most stores exist, and light commands do not need these models. With what they import, they are all there are.
    from stepsight.storage.database import jobs_schema, labelling_schema  # noqa: F401

    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    if is_created(connection, name):
        return
    Base.metadata.create_all(connection, checkfirst=False)
    statements = _sqlite_rules() if connection.dialect.name == "sqlite" else _postgresql_rules()
    for statement in (*statements, f"CREATE TABLE {STAMP} (version INTEGER NOT NULL)"):
        connection.exec_driver_sql(statement)
    connection.execute(text(f"INSERT INTO {STAMP} VALUES (:version)"), {"version": VERSION})


def _sqlite_rules() -> Iterable[str]:
    if sqlite3.sqlite_version_info < _SQLITE:
        raise UserError(
            f"This Python has SQLite {sqlite3.sqlite_version}.",
            "Use one with SQLite 3.34 or newer, or a store on PostgreSQL.",
        )
    # The texts are stored a second time, so that a text can be removed from the index without knowing it.
    yield "CREATE VIRTUAL TABLE trace_search USING fts5(text, tokenize = 'trigram')"
    yield (
        "CREATE TRIGGER traces_deleted AFTER DELETE ON traces BEGIN"
        " DELETE FROM trace_search WHERE rowid = old.id;"
        " UPDATE datasets SET revision = revision + 1 WHERE id = old.dataset_id;"
        " END"
    )
    for table, is_kept in _APPEND_ONLY.items():
        refuse = f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
        yield f"CREATE TRIGGER {table}_kept_update BEFORE UPDATE ON {table} {refuse}"
        yield f"CREATE TRIGGER {table}_kept_delete BEFORE DELETE ON {table} WHEN {is_kept} {refuse}"


def _postgresql_rules() -> Iterable[str]:
    signs = [*map(chr, PLAIN), *INVISIBLE]
    # `translate` removes characters without a counterpart, which are the invisible ones.
    translated = f"translate($1, {_literal(signs)}, {_literal(PLAIN.values())})"
    is_ascii = "octet_length($1) = char_length($1)"
    plain = f"CASE WHEN {is_ascii} THEN $1 ELSE normalize({translated}, NFC) END"
    form = f"regexp_replace({plain}, '{_character_class(' ' + BREAKS)}+', ' ', 'g')"
    form = f"regexp_replace({form}, ' ?({_character_class(UNSPACED)}) ?', '\\1', 'g')"
    yield _search_function("search_form", "text", f"SELECT {form}")
    # All trigrams: PostgreSQL's own words would not find 3/4 or x^2. The function does not call the other one,
    # which could not be found while a dump is being restored.
    yield _search_function(
        "search_trigrams",
        "text[]",
        "SELECT coalesce(array_agg(DISTINCT substr(form, i, 3)), '{}')"
        f" FROM (SELECT lower({form}) AS form OFFSET 0) AS forms, generate_series(1, char_length(form) - 2) AS i",
    )
    yield "CREATE INDEX ix_search_problem ON traces USING gin (search_trigrams(problem))"
    yield "CREATE INDEX ix_search_text ON substeps USING gin (search_trigrams(text))"
    yield _trigger_function(
        "note_deleted_traces",
        "UPDATE datasets SET revision = revision + 1 WHERE id IN (SELECT dataset_id FROM gone); RETURN NULL;",
    )
    yield (
        "CREATE TRIGGER traces_deleted AFTER DELETE ON traces REFERENCING OLD TABLE AS gone"
        " FOR EACH STATEMENT EXECUTE FUNCTION note_deleted_traces()"
    )
    for table, is_kept in _APPEND_ONLY.items():
        yield _trigger_function(
            f"keep_{table}",
            f"IF TG_OP = 'UPDATE' OR {is_kept} THEN"
            f" RAISE EXCEPTION '{table} is append-only' USING ERRCODE = 'restrict_violation'; END IF; RETURN old;",
        )
        yield (
            f"CREATE TRIGGER {table}_kept BEFORE UPDATE OR DELETE ON {table}"
            f" FOR EACH ROW EXECUTE FUNCTION keep_{table}()"
        )


def _search_function(name: str, result: str, body: str) -> str:
    return f"CREATE FUNCTION {name}(text) RETURNS {result} LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ {body} $$"


def _trigger_function(name: str, body: str) -> str:
    return f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$"


def _literal(signs: Iterable[str]) -> str:
    return "U&'" + "".join(f"\\+{ord(sign):06X}" for sign in signs) + "'"


def _character_class(signs: str) -> str:
    return "[" + "".join(f"\\u{ord(sign):04X}" for sign in signs) + "]"
