"""The store: schema, migrations, queries, import and export."""
