"""The tables of the first history."""

import sqlalchemy as sa
from alembic import op

from history.schema import UtcDateTime

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "writer",
        sa.Column("pk", NUMBER, autoincrement=True, nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("pk", name="pk_writer"),
        sa.UniqueConstraint("version", name="uq_writer_version"),
    )
    op.create_table(
        "bundle",
        sa.Column("pk", NUMBER, autoincrement=True, nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.Column("written_at", UtcDateTime(), nullable=False),
        sa.Column("writer_pk", NUMBER, nullable=False),
        sa.ForeignKeyConstraint(["writer_pk"], ["writer.pk"], name="fk_bundle_writer_pk"),
        sa.PrimaryKeyConstraint("pk", name="pk_bundle"),
        sa.UniqueConstraint("digest", name="uq_bundle_digest"),
    )
    op.create_table(
        "detection",
        sa.Column("pk", NUMBER, autoincrement=True, nullable=False),
        sa.Column("at", UtcDateTime(), nullable=False),
        sa.Column("settings_digest", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("written_at", UtcDateTime(), nullable=False),
        sa.Column("writer_pk", NUMBER, nullable=False),
        sa.ForeignKeyConstraint(["writer_pk"], ["writer.pk"], name="fk_detection_writer_pk"),
        sa.PrimaryKeyConstraint("pk", name="pk_detection"),
    )
    op.create_table(
        "event",
        sa.Column("pk", NUMBER, autoincrement=True, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("at", UtcDateTime(), nullable=False),
        sa.Column("written_at", UtcDateTime(), nullable=False),
        sa.Column("writer_pk", NUMBER, nullable=False),
        sa.ForeignKeyConstraint(["writer_pk"], ["writer.pk"], name="fk_event_writer_pk"),
        sa.PrimaryKeyConstraint("pk", name="pk_event"),
        sa.UniqueConstraint("digest", name="uq_event_digest"),
    )
    op.create_index("ix_event_key", "event", ["key"])
    op.create_table(
        "fingerprint",
        sa.Column("pk", NUMBER, autoincrement=True, nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("facts", sa.Text(), nullable=False),
        sa.Column("written_at", UtcDateTime(), nullable=False),
        sa.Column("writer_pk", NUMBER, nullable=False),
        sa.ForeignKeyConstraint(["writer_pk"], ["writer.pk"], name="fk_fingerprint_writer_pk"),
        sa.PrimaryKeyConstraint("pk", name="pk_fingerprint"),
        sa.UniqueConstraint("digest", name="uq_fingerprint_digest"),
    )
    op.create_table(
        "host",
        sa.Column("pk", NUMBER, autoincrement=True, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("written_at", UtcDateTime(), nullable=False),
        sa.Column("writer_pk", NUMBER, nullable=False),
        sa.ForeignKeyConstraint(["writer_pk"], ["writer.pk"], name="fk_host_writer_pk"),
        sa.PrimaryKeyConstraint("pk", name="pk_host"),
        sa.UniqueConstraint("name", name="uq_host_name"),
    )
    op.create_table(
        "link",
        sa.Column("pk", NUMBER, autoincrement=True, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("tracker", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("written_at", UtcDateTime(), nullable=False),
        sa.Column("writer_pk", NUMBER, nullable=False),
        sa.ForeignKeyConstraint(["writer_pk"], ["writer.pk"], name="fk_link_writer_pk"),
        sa.PrimaryKeyConstraint("pk", name="pk_link"),
        sa.UniqueConstraint("digest", name="uq_link_digest"),
    )
    op.create_index("ix_link_key", "link", ["key"])
    op.create_table(
        "release",
        sa.Column("pk", NUMBER, autoincrement=True, nullable=False),
        sa.Column("dbms", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("line", sa.Text(), nullable=False),
        sa.Column("build", sa.Text(), nullable=False),
        sa.Column("archive_digest", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("released", sa.Date(), nullable=True),
        sa.Column("pinned", sa.Boolean(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("written_at", UtcDateTime(), nullable=False),
        sa.Column("writer_pk", NUMBER, nullable=False),
        sa.ForeignKeyConstraint(["writer_pk"], ["writer.pk"], name="fk_release_writer_pk"),
        sa.PrimaryKeyConstraint("pk", name="pk_release"),
        sa.UniqueConstraint("digest", "pinned", name="uq_release_digest_pinned"),
    )
    op.create_index("ix_release_dbms_version", "release", ["dbms", "version"])
    op.create_index(
        "uq_release_pin",
        "release",
        ["dbms", "version", "build"],
        unique=True,
        sqlite_where=sa.text("pinned"),
        postgresql_where=sa.text("pinned"),
    )
    op.create_table(
        "series",
        sa.Column("pk", NUMBER, autoincrement=True, nullable=False),
        sa.Column("dbms", sa.Text(), nullable=False),
        sa.Column("line", sa.Text(), nullable=False),
        sa.Column("server", sa.Text(), nullable=False),
        sa.Column("config", sa.Text(), nullable=False),
        sa.Column("benchmark", sa.Text(), nullable=False),
        sa.Column("test", sa.Text(), nullable=False),
        sa.Column("metric", sa.Text(), nullable=False),
        sa.Column("test_group", sa.Text(), nullable=False),
        sa.Column("unit", sa.Text(), nullable=False),
        sa.Column("better", sa.Text(), nullable=False),
        sa.Column("writer_pk", NUMBER, nullable=False),
        sa.ForeignKeyConstraint(["writer_pk"], ["writer.pk"], name="fk_series_writer_pk"),
        sa.PrimaryKeyConstraint("pk", name="pk_series"),
        sa.UniqueConstraint(
            "dbms",
            "server",
            "config",
            "benchmark",
            "line",
            "test",
            "metric",
            "test_group",
            "unit",
            "better",
            name="uq_series_key",
        ),
    )
    op.create_table(
        "epoch",
        sa.Column("pk", NUMBER, autoincrement=True, nullable=False),
        sa.Column("host_pk", NUMBER, nullable=False),
        sa.Column("fingerprint_pk", NUMBER, nullable=False),
        sa.Column("written_at", UtcDateTime(), nullable=False),
        sa.Column("writer_pk", NUMBER, nullable=False),
        sa.ForeignKeyConstraint(["fingerprint_pk"], ["fingerprint.pk"], name="fk_epoch_fingerprint_pk"),
        sa.ForeignKeyConstraint(["host_pk"], ["host.pk"], name="fk_epoch_host_pk"),
        sa.ForeignKeyConstraint(["writer_pk"], ["writer.pk"], name="fk_epoch_writer_pk"),
        sa.PrimaryKeyConstraint("pk", name="pk_epoch"),
        sa.UniqueConstraint("host_pk", "fingerprint_pk", name="uq_epoch_host_pk_fingerprint_pk"),
    )
    op.create_table(
        "finding",
        sa.Column("pk", NUMBER, autoincrement=True, nullable=False),
        sa.Column("detection_pk", NUMBER, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("tier", sa.Text(), nullable=False),
        sa.Column("dbms", sa.Text(), nullable=False),
        sa.Column("line", sa.Text(), nullable=False),
        sa.Column("release", sa.Text(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["detection_pk"], ["detection.pk"], name="fk_finding_detection_pk"),
        sa.PrimaryKeyConstraint("pk", name="pk_finding"),
        sa.UniqueConstraint("detection_pk", "key", name="uq_finding_detection_pk_key"),
    )
    op.create_index("ix_finding_key", "finding", ["key"])
    op.create_table(
        "session",
        sa.Column("pk", NUMBER, autoincrement=True, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("epoch_pk", NUMBER, nullable=False),
        sa.Column("server", sa.Text(), nullable=False),
        sa.Column("plan", sa.Text(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("started", UtcDateTime(), nullable=False),
        sa.Column("control", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("written_at", UtcDateTime(), nullable=False),
        sa.Column("writer_pk", NUMBER, nullable=False),
        sa.ForeignKeyConstraint(["epoch_pk"], ["epoch.pk"], name="fk_session_epoch_pk"),
        sa.ForeignKeyConstraint(["writer_pk"], ["writer.pk"], name="fk_session_writer_pk"),
        sa.PrimaryKeyConstraint("pk", name="pk_session"),
        sa.UniqueConstraint("id", name="uq_session_id"),
    )
    op.create_table(
        "run",
        sa.Column("pk", NUMBER, autoincrement=True, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("session_pk", NUMBER, nullable=False),
        sa.Column("release_pk", NUMBER, nullable=False),
        sa.Column("bundle_pk", NUMBER, nullable=False),
        sa.Column("config", sa.Text(), nullable=False),
        sa.Column("benchmark", sa.Text(), nullable=False),
        sa.Column("profile", sa.Text(), nullable=False),
        sa.Column("lane", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("written_at", UtcDateTime(), nullable=False),
        sa.Column("writer_pk", NUMBER, nullable=False),
        sa.ForeignKeyConstraint(["bundle_pk"], ["bundle.pk"], name="fk_run_bundle_pk"),
        sa.ForeignKeyConstraint(["release_pk"], ["release.pk"], name="fk_run_release_pk"),
        sa.ForeignKeyConstraint(["session_pk"], ["session.pk"], name="fk_run_session_pk"),
        sa.ForeignKeyConstraint(["writer_pk"], ["writer.pk"], name="fk_run_writer_pk"),
        sa.PrimaryKeyConstraint("pk", name="pk_run"),
        sa.UniqueConstraint("id", name="uq_run_id"),
    )
    op.create_index("ix_run_release_pk", "run", ["release_pk"])
    op.create_index("ix_run_session_pk", "run", ["session_pk"])
    op.create_table(
        "block",
        sa.Column("pk", NUMBER, autoincrement=True, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("run_pk", NUMBER, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("started", UtcDateTime(), nullable=False),
        sa.Column("ended", UtcDateTime(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("warnings", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("written_at", UtcDateTime(), nullable=False),
        sa.Column("writer_pk", NUMBER, nullable=False),
        sa.ForeignKeyConstraint(["run_pk"], ["run.pk"], name="fk_block_run_pk"),
        sa.ForeignKeyConstraint(["writer_pk"], ["writer.pk"], name="fk_block_writer_pk"),
        sa.PrimaryKeyConstraint("pk", name="pk_block"),
        sa.UniqueConstraint("id", name="uq_block_id"),
    )
    op.create_index("ix_block_run_pk", "block", ["run_pk"])
    op.create_table(
        "detail",
        sa.Column("block_pk", NUMBER, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("test", sa.Text(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["block_pk"], ["block.pk"], name="fk_detail_block_pk"),
        sa.PrimaryKeyConstraint("block_pk", "kind", "test", name="pk_detail"),
    )
    op.create_table(
        "measurement",
        sa.Column("series_pk", NUMBER, nullable=False),
        sa.Column("block_pk", NUMBER, nullable=False),
        sa.Column("value", sa.Float(precision=53), nullable=False),
        sa.Column("operations", sa.BigInteger(), nullable=True),
        sa.Column("warnings", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("series_pk", "block_pk", name="pk_measurement"),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    op.drop_table("measurement")
    op.drop_table("detail")
    op.drop_index("ix_block_run_pk", table_name="block")
    op.drop_table("block")
    op.drop_index("ix_run_session_pk", table_name="run")
    op.drop_index("ix_run_release_pk", table_name="run")
    op.drop_table("run")
    op.drop_table("session")
    op.drop_index("ix_finding_key", table_name="finding")
    op.drop_table("finding")
    op.drop_table("epoch")
    op.drop_table("series")
    op.drop_index("uq_release_pin", table_name="release")
    op.drop_index("ix_release_dbms_version", table_name="release")
    op.drop_table("release")
    op.drop_index("ix_link_key", table_name="link")
    op.drop_table("link")
    op.drop_table("host")
    op.drop_table("fingerprint")
    op.drop_index("ix_event_key", table_name="event")
    op.drop_table("event")
    op.drop_table("detection")
    op.drop_table("bundle")
    op.drop_table("writer")
