"""The tables of unfinished work: jobs, and files that browsers upload for import."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, Enum, ForeignKey, Index, String, Text, func, select
from sqlalchemy.orm import Mapped, column_property, mapped_column

from stepsight.core.judgment import Mode
from stepsight.storage.database.schema import (
    DIGEST_LENGTH,
    NAME_LENGTH,
    NEW_IDS,
    Base,
    DatasetRow,
    UserRow,
    UtcDateTime,
    now,
)
from stepsight.storage.database.stored_json import DamagedError, RequestInfo, StoredJson


class Task(StrEnum):
    JUDGE = "judge"
    IMPORT = "import"
    FETCH = "fetch"


class State(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_active(self) -> bool:
        return self in ACTIVE


ACTIVE = (State.QUEUED, State.RUNNING)


def _words(kind: type[StrEnum]) -> Enum:
    return Enum(
        kind,
        native_enum=False,
        # A new kind of job does not change the schema.
        create_constraint=kind is not Task,
        length=20,
        name=kind.__name__.lower(),
        values_callable=lambda members: [member.value for member in members],
    )


class Job(Base):
    """Work that runs in the background, outside any request, and its progress (see `storage.jobs.jobs`).

    `request` holds the parameters of the task: those of `storage.jobs.jobs.Judging`, `storage.jobs.imports` or
    `storage.jobs.jobs`. `subject` describes an import or a fetch to users. `dataset` is the name of the dataset
    `dataset_id`, or "" as long as an import has none. Deleting a dataset deletes its jobs.

    For a judging job, `total` counts the traces to judge, and `done` those already judged, of which `began` were
    done before the current worker took the job. `left_out` counts the traces that are too long for the evaluator.
    For an import or a fetch, the first three are in bytes, and `left_out` counts rows. `reason` says why the job
    failed, or why the first trace was left out; it may also be the outcome in words. `attempts` counts the workers
    that have taken the job since it last made progress.
    """

    __tablename__ = "jobs"

    id: Mapped[int] = mapped_column(primary_key=True)
    task: Mapped[Task] = mapped_column(_words(Task))
    subject: Mapped[str] = mapped_column(Text, default="")
    request: Mapped[dict[str, Any]] = mapped_column(StoredJson("jobs.request", RequestInfo))
    dataset_id: Mapped[int | None] = mapped_column(ForeignKey(DatasetRow.id, ondelete="CASCADE"))
    state: Mapped[State] = mapped_column(_words(State), default=State.QUEUED)
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
    dataset: Mapped[str] = column_property(
        select(func.coalesce(func.max(DatasetRow.name), ""))
        .where(DatasetRow.id == dataset_id)
        .correlate_except(DatasetRow)
        .scalar_subquery()
    )

    __table_args__ = (
        CheckConstraint("task <> 'judge' OR dataset_id IS NOT NULL", name="judges_a_dataset"),
        CheckConstraint(
            "state <> 'running' OR (worker IS NOT NULL AND heartbeat IS NOT NULL)", name="running_has_a_worker"
        ),
        Index("ix_jobs_state", "state", "id"),
        NEW_IDS,
    )

    @property
    def evaluator(self) -> str:
        """The name of the evaluator that judges, or ""."""
        return str(self.request.get("evaluator", "")) if self.task == Task.JUDGE else ""

    @property
    def fingerprint(self) -> str:
        return str(self.request.get("fingerprint", ""))

    @property
    def mode(self) -> Mode | None:
        """The mode to judge in, or None for other tasks."""
        if self.task != Task.JUDGE:
            return None
        if "mode" not in self.request:
            raise DamagedError("jobs.request: mode is missing.")
        return Mode(self.request["mode"])

    @property
    def progress(self) -> float:
        """The fraction of the work that is done, from 0 to 1. A dataset without traces counts as done."""
        if self.task != Task.JUDGE:
            return 1.0 if self.state == State.DONE else min(1.0, self.done / self.total) if self.total else 0.0
        return min(1.0, (self.done + self.left_out) / self.total) if self.total else 1.0

    @property
    def rate(self) -> float | None:
        """Traces or bytes per second since the worker took the job, or None if that is not yet known."""
        if self.state != State.RUNNING or self.started is None or self.heartbeat is None:
            return None
        seconds = (self.heartbeat - self.started).total_seconds()
        return (self.done - self.began) / seconds if seconds > 0 and self.done > self.began else None

    @property
    def seconds_left(self) -> float | None:
        """The estimated remaining time in seconds at the current rate, or None if it is unknown."""
        passed = self.done + (self.left_out if self.task == Task.JUDGE else 0)
        return max(0, self.total - passed) / self.rate if self.rate else None


class UploadRow(Base):
    """A file that a user's browser has sent, and that is stored under the name `file` in the folder of uploads.

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
