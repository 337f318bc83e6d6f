"""The database: its tables, the open store, migrations and memory."""
