"""Readings of the machine canary travel with the results of their host.

Going back drops them; every measurement stays.
"""

import sqlalchemy as sa
from alembic import op

from history.schema import UtcDateTime

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MESSAGE = "the history is append-only: supersede the row instead"


def upgrade() -> None:
    op.create_table(
        "reading",
        sa.Column("pk", NUMBER, autoincrement=True, nullable=False),
        sa.Column("host_pk", NUMBER, nullable=False),
        sa.Column("at", UtcDateTime(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("cpu_ms", sa.Float(precision=53), nullable=False),
        sa.Column("memory_ms", sa.Float(precision=53), nullable=False),
        sa.Column("sync_ms", sa.Float(precision=53), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("reasons", sa.Text(), nullable=False),
        sa.Column("quarantine", sa.Boolean(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("written_at", UtcDateTime(), nullable=False),
        sa.Column("writer_pk", NUMBER, nullable=False),
        sa.ForeignKeyConstraint(["host_pk"], ["host.pk"], name="fk_reading_host_pk"),
        sa.ForeignKeyConstraint(["writer_pk"], ["writer.pk"], name="fk_reading_writer_pk"),
        sa.PrimaryKeyConstraint("pk", name="pk_reading"),
        sa.UniqueConstraint("digest", name="uq_reading_digest"),
    )
    op.create_index("ix_reading_host_pk_at", "reading", ["host_pk", "at"])
    if op.get_bind().dialect.name == "sqlite":
        for verb in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER keep_reading_{verb.lower()} BEFORE {verb} ON reading "
                f"BEGIN SELECT RAISE(ABORT, '{MESSAGE}'); END"
            )
    else:
        op.execute(
            "CREATE TRIGGER keep_reading BEFORE UPDATE OR DELETE OR TRUNCATE ON reading "
            "FOR EACH STATEMENT EXECUTE FUNCTION pointdrop_keep()"
        )


def downgrade() -> None:
    op.drop_index("ix_reading_host_pk_at", table_name="reading")
    op.drop_table("reading")
