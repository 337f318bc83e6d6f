"""The tables of unfinished work: jobs, and files that browsers upload for import."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKey,
    Index,
    String,
    Text,
)
from sqlalchemy.orm import Mapped, mapped_column

from stepsight.storage.database.people_schema import UserRow
from stepsight.storage.database.schema import DIGEST_LENGTH, NAME_LENGTH, NEW_IDS, Base, UtcDateTime, now
from stepsight.storage.database.stored_json import StoredJson


class JobRow(Base):
    """Work that runs in the background, outside any request (see `storage.jobs.jobs`).

    `task` says whether the job judges a dataset with an evaluator, imports a file, or fetches an evaluator. For
    imports and fetches, `request` holds the details (see `storage.jobs.imports` and `storage.jobs.fetches`), and
    `subject` is a description to show to users. `attempts` counts the workers that have taken the job since it last
    made progress. Deleting a dataset deletes its jobs. An import job refers to no dataset until the import is done.
    """

    __tablename__ = "jobs"

    id: Mapped[int] = mapped_column(primary_key=True)
    task: Mapped[str] = mapped_column(String(20), server_default="judge")
    subject: Mapped[str] = mapped_column(Text, server_default="")
    request: Mapped[dict[str, Any] | None] = mapped_column(StoredJson("jobs.request", dict[str, Any] | None))
    dataset_id: Mapped[int | None] = mapped_column(ForeignKey("datasets.id", ondelete="CASCADE"))
    evaluator: Mapped[str | None] = mapped_column(String(NAME_LENGTH))
    spec: Mapped[str | None] = mapped_column(Text)
    fingerprint: Mapped[str | None] = mapped_column(String(NAME_LENGTH))
    mode: Mapped[str | None] = mapped_column(String(20))
    state: Mapped[str] = mapped_column(String(20))
    total: Mapped[int] = mapped_column(BigInteger)
    began: Mapped[int] = mapped_column(BigInteger, default=0)
    done: Mapped[int] = mapped_column(BigInteger, default=0)
    left_out: Mapped[int] = mapped_column(default=0)
    attempts: Mapped[int] = mapped_column(default=0)
    reason: Mapped[str] = mapped_column(Text, default="")
    worker: Mapped[str | None] = mapped_column(String(NAME_LENGTH))
    created: Mapped[datetime] = mapped_column(UtcDateTime, default=now)
    started: Mapped[datetime | None] = mapped_column(UtcDateTime)
    heartbeat: Mapped[datetime | None] = mapped_column(UtcDateTime)
    finished: Mapped[datetime | None] = mapped_column(UtcDateTime)

    __table_args__ = (
        CheckConstraint("mode IN ('offline', 'online', 'hindsight')", name="mode"),
        CheckConstraint("state IN ('queued', 'running', 'done', 'failed', 'cancelled')", name="state"),
        CheckConstraint(
            "task = 'judge' AND dataset_id IS NOT NULL AND evaluator IS NOT NULL AND spec IS NOT NULL"
            " AND fingerprint IS NOT NULL AND mode IS NOT NULL"
            " OR task IN ('import', 'fetch') AND request IS NOT NULL",
            name="task",
        ),
        CheckConstraint(
            "state <> 'running' OR (worker IS NOT NULL AND heartbeat IS NOT NULL)", name="running_has_a_worker"
        ),
        Index("ix_jobs_state", "state", "id"),
        NEW_IDS,
    )


# No two jobs do the same at the same time.
Index(
    "uq_jobs_active",
    JobRow.dataset_id,
    JobRow.fingerprint,
    JobRow.mode,
    unique=True,
    sqlite_where=JobRow.state.in_(["queued", "running"]),
    postgresql_where=JobRow.state.in_(["queued", "running"]),
)


class UploadRow(Base):
    """A file that a user's browser has sent, and that lies under the name `file` in the folder of uploads.

    `sha256` is the hash of its content. An upload and its file are deleted once it has been imported, or a day
    after `touched`.
    """

    __tablename__ = "uploads"

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey(UserRow.id, ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(NAME_LENGTH))
    size: Mapped[int]
    sha256: Mapped[str] = mapped_column(String(DIGEST_LENGTH))
    file: Mapped[str] = mapped_column(String(DIGEST_LENGTH))
    created: Mapped[datetime] = mapped_column(UtcDateTime, default=now)
    touched: Mapped[datetime] = mapped_column(UtcDateTime, default=now)

    __table_args__ = (Index("ix_uploads_user_id", "user_id", "id"), NEW_IDS)
