"""Migrations and models agree, and a store of another version is told apart."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from alembic import op
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, NullPool, create_engine, inspect, text

import storage
from core.errors import UserError
from storage import revisions
from storage.location import locate
from storage.schema import Base
from storage.store import Store, open_store


def test_migrations_give_what_the_models_say(store: Store) -> None:
    with store.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []


def test_migrations_give_the_checks_and_rules_of_the_models(address: str) -> None:
    """What Alembic does not compare: checks, delete rules, index conditions."""
    open_store(address).close()
    engine = create_engine(locate(address), poolclass=NullPool)
    migrated = _describe(engine)
    Base.metadata.drop_all(engine)
    Base.metadata.create_all(engine)
    assert migrated == _describe(engine)
    assert "label IN" in str(migrated) or "label = ANY" in str(migrated)


def _describe(engine: Engine) -> dict[str, list[list[str]]]:
    inspector = inspect(engine)
    readers: list[Callable[[str], Any]] = [
        inspector.get_columns,
        inspector.get_check_constraints,
        inspector.get_foreign_keys,
        inspector.get_indexes,
        inspector.get_unique_constraints,
        lambda table: [inspector.get_pk_constraint(table)],
    ]
    return {table: [_comparable(read(table)) for read in readers] for table in sorted(inspector.get_table_names())}


def _comparable(found: list[Any]) -> list[str]:
    return sorted(json.dumps(one, default=str, sort_keys=True) for one in found)


def test_revisions_are_one_line_with_names_that_postgresql_can_keep() -> None:
    scripts = ScriptDirectory.from_config(revisions._config())
    assert len(scripts.get_heads()) == 1
    for script in scripts.walk_revisions():
        assert len(script.revision) <= 32
        assert Path(script.path).stem == script.revision


def test_every_package_is_installed() -> None:
    root = Path(storage.__file__).parent
    folders = {path.parent for path in root.rglob("__init__.py")}
    names = {".".join(("storage", *folder.relative_to(root).parts)) for folder in folders}
    project = tomllib.loads((root.parent / "pyproject.toml").read_text())
    assert names <= set(project["tool"]["setuptools"]["packages"])


def test_a_newer_store_is_refused_and_left_alone(address: str) -> None:
    with open_store(address) as store, store.write() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999_later'"))
    with pytest.raises(UserError, match=r"schema is '9999_later', this version knows up to '0.*Update StepSight"):
        open_store(address)


def test_a_database_of_something_else_is_refused_and_left_alone(address: str) -> None:
    engine = create_engine(locate(address), poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE recipes (id INTEGER)"))
    with pytest.raises(UserError, match="a database of something else"):
        open_store(address)
    assert inspect(engine).get_table_names() == ["recipes"]


def test_a_migration_that_fails_leaves_nothing(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **options: object) -> None:
        raise RuntimeError("in the middle")

    with monkeypatch.context() as patched:
        patched.setattr(op, "create_index", fail)
        with pytest.raises(RuntimeError, match="in the middle"):
            open_store(address)
    engine = create_engine(locate(address), poolclass=NullPool)
    assert inspect(engine).get_table_names() == []
    open_store(address).close()
