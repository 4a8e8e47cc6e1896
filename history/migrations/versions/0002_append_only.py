"""Rows cannot be changed or deleted, and a later row supersedes an earlier one with a reason.

Going back drops the triggers and the supersessions; every measurement stays.
"""

import sqlalchemy as sa
from alembic import op

from history.schema import UtcDateTime

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

TABLES = (
    "writer",
    "release",
    "host",
    "fingerprint",
    "epoch",
    "session",
    "bundle",
    "run",
    "block",
    "series",
    "measurement",
    "detail",
    "detection",
    "finding",
    "event",
    "link",
    "supersession",
)
MESSAGE = "the history is append-only: supersede the row instead"


def upgrade() -> None:
    op.create_table(
        "supersession",
        sa.Column("pk", NUMBER, autoincrement=True, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("target_id", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("replacement_id", sa.Text(), nullable=True),
        sa.Column("at", UtcDateTime(), nullable=False),
        sa.Column("written_at", UtcDateTime(), nullable=False),
        sa.Column("writer_pk", NUMBER, nullable=False),
        sa.ForeignKeyConstraint(["writer_pk"], ["writer.pk"], name="fk_supersession_writer_pk"),
        sa.PrimaryKeyConstraint("pk", name="pk_supersession"),
        sa.UniqueConstraint("digest", name="uq_supersession_digest"),
    )
    op.create_index("ix_supersession_target", "supersession", ["kind", "target_id"])

    if op.get_bind().dialect.name == "sqlite":
        for table in TABLES:
            for verb in ("UPDATE", "DELETE"):
                op.execute(
                    f"CREATE TRIGGER keep_{table}_{verb.lower()} BEFORE {verb} ON {table} "
                    f"BEGIN SELECT RAISE(ABORT, '{MESSAGE}'); END"
                )
        return
    op.execute(
        "CREATE FUNCTION pointdrop_keep() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{MESSAGE}' USING ERRCODE = 'restrict_violation'; END $$"
    )
    for table in TABLES:
        op.execute(
            f"CREATE TRIGGER keep_{table} BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION pointdrop_keep()"
        )


def downgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        for table in TABLES:
            for verb in ("update", "delete"):
                op.execute(f"DROP TRIGGER keep_{table}_{verb}")
    else:
        op.execute("DROP FUNCTION pointdrop_keep() CASCADE")
    op.drop_index("ix_supersession_target", table_name="supersession")
    op.drop_table("supersession")
