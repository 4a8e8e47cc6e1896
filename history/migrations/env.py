"""Alembic's entry: runs the revisions on the connection that `history.database.migrate` hands over."""

from alembic import context

from history.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=False,  # the caller's transaction holds the lock and covers every revision
    transaction_per_migration=False,
)
context.run_migrations()
