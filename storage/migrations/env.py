"""The Alembic environment script, which runs the migrations on the connection of `storage.database.migrate`."""

from alembic import context

from stepsight.storage.database import jobs_schema, labelling_schema, stress_schema

_LAST = jobs_schema.UploadRow, labelling_schema.EventRow, stress_schema.StressScoresRow

context.configure(
    connection=context.config.attributes["connection"],
    # The metadata of every table, since these modules import those of all the others.
    target_metadata=_LAST[0].metadata,
    # SQLite can roll a schema change back as well, once the driver is kept from committing on its own.
    transactional_ddl=True,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
