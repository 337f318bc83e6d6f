"""What Alembic runs: the migrations, on the connection that `storage.revisions` hands over."""

from alembic import context

from storage.schema import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    # SQLite can roll a schema change back as well, once the driver is kept from committing on its own.
    transactional_ddl=True,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
