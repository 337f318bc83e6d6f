"""The tables as typed models, from which `storage.database.creation` creates them.

Steps and sub-steps are keyed by trace and position, so reading a trace touches adjacent rows and needs no join.
`valid` and `label` are NULL, never 0, where there is no gold label.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    DateTime,
    Dialect,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Text,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from stepsight.core.errors import UserError
from stepsight.core.trace import check_text
from stepsight.storage.database.stored_json import (
    CalibrationInfo,
    EvaluatorFacts,
    SpentInfo,
    StoredJson,
)

# PostgreSQL refuses to index a text longer than about 2,700 bytes; four bytes a character stay below it.
NAME_LENGTH = 200
ID_LENGTH = 500
DIGEST_LENGTH = 64
_LARGEST_ID = 2**31 - 1
# For tables from which people can delete rows: SQLite would reuse the largest id once it is free, and open pages,
# addresses and caches would mistake the new row for the old one.
NEW_IDS = {"sqlite_autoincrement": True}


class UtcDateTime(TypeDecorator[datetime]):
    """A timestamp in UTC. SQLite drops the time zone, so it is added back on reading."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


# Tests replace this clock.
_clock: Callable[[], datetime] = partial(datetime.now, UTC)


def now() -> datetime:
    """Return the current time of the system clock. The clock can be set back, so this time must not be used to
    order records, with the exception of judgments."""
    return _clock()


def in_range(number: int) -> int:
    """Return `number` if it can be a row id, and otherwise 0, which is never an id. Databases raise an error when
    an id is compared with a number that is too large."""
    return number if 0 < number <= _LARGEST_ID else 0


class Base(DeclarativeBase):
    """The base class of all tables. It names every constraint."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class DatasetRow(Base):
    """A dataset: the traces imported under one name.

    `source` and `sha256` describe the last file that added a trace. `revision` counts the changes to the dataset's
    traces (a trigger counts deletions), and the deletions of an evaluator's scores or a campaign.
    """

    __tablename__ = "datasets"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)
    kind: Mapped[str] = mapped_column(String(NAME_LENGTH))
    source: Mapped[str] = mapped_column(Text)
    sha256: Mapped[str] = mapped_column(String(DIGEST_LENGTH))
    created: Mapped[datetime] = mapped_column(UtcDateTime, default=now)
    revision: Mapped[int] = mapped_column(server_default="0")

    __table_args__ = (NEW_IDS,)


class DeletedRow(Base):
    """The name of a dataset, or of an evaluator's scores on one, that people have deleted, so that the gallery does
    not come back by itself."""

    __tablename__ = "deleted"

    name: Mapped[str] = mapped_column(String(3 * NAME_LENGTH), primary_key=True)


class LeftOutRow(Base):
    """A bad row that was left out when a dataset was imported.

    `digest` is a hash of the row's content, so that the row is counted only once if the file, or a longer version
    of it, is imported again. `place` says where the row is in the file `source`, such as `line 3`.
    """

    __tablename__ = "left_out"

    dataset_id: Mapped[int] = mapped_column(ForeignKey("datasets.id", ondelete="CASCADE"), primary_key=True)
    digest: Mapped[str] = mapped_column(String(DIGEST_LENGTH), primary_key=True)
    source: Mapped[str] = mapped_column(Text)
    place: Mapped[str] = mapped_column(Text)
    error: Mapped[str] = mapped_column(Text)


class TraceRow(Base):
    """A trace: its problem, metadata and a summary of its steps and gold labels.

    `first_error` is 0-based. `digest` is `Trace.digest` and `text_digest` is `Trace.text_digest`.
    """

    __tablename__ = "traces"

    id: Mapped[int] = mapped_column(primary_key=True)
    dataset_id: Mapped[int] = mapped_column(ForeignKey("datasets.id", ondelete="CASCADE"))
    external_id: Mapped[str] = mapped_column(String(ID_LENGTH))
    position: Mapped[int]
    problem: Mapped[str] = mapped_column(Text)
    digest: Mapped[str] = mapped_column(String(DIGEST_LENGTH))
    n_steps: Mapped[int]
    n_substeps: Mapped[int]
    first_error: Mapped[int | None]
    has_gold: Mapped[bool]
    n_redundant: Mapped[int] = mapped_column(server_default="0")
    meta: Mapped[dict[str, Any]] = mapped_column(StoredJson("traces.meta", dict[str, Any]))
    text_digest: Mapped[str] = mapped_column(String(DIGEST_LENGTH), server_default="")

    __table_args__ = (
        UniqueConstraint("dataset_id", "external_id"),
        UniqueConstraint("dataset_id", "position"),
        UniqueConstraint("id", "dataset_id"),
        CheckConstraint("position >= 0", name="position"),
        CheckConstraint("n_steps > 0 AND n_substeps >= n_steps", name="counts"),
        CheckConstraint("first_error >= 0 AND first_error < n_steps", name="first_error"),
        CheckConstraint("first_error IS NULL OR has_gold", name="has_gold"),
        Index("ix_traces_text_digest", "text_digest"),
        NEW_IDS,
    )


# The counts of a dataset are read from this index alone, without the texts.
Index(
    "ix_traces_counts",
    TraceRow.dataset_id,
    TraceRow.first_error,
    TraceRow.has_gold,
    TraceRow.n_steps,
    TraceRow.n_substeps,
    TraceRow.n_redundant,
)


class StepRow(Base):
    """A step of a trace and its gold label.

    `label` is 0, 1 or 2 for neg, neu and pos, or NULL if the step is unlabelled. `valid` and `share`
    have the same meaning as in `core.trace.Step`.
    """

    __tablename__ = "steps"

    trace_id: Mapped[int] = mapped_column(ForeignKey("traces.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    label: Mapped[int | None] = mapped_column(SmallInteger)
    valid: Mapped[bool | None]
    share: Mapped[float | None] = mapped_column(Double)

    __table_args__ = (
        CheckConstraint("position >= 0", name="position"),
        CheckConstraint("label IN (0, 1, 2)", name="label"),
        CheckConstraint("label IS NULL OR (valid IS NOT NULL AND valid = (label <> 0))", name="label_says_valid"),
    )


# Most datasets have no shares, so their rows are not searched for them.
_HAS_SHARE = StepRow.share.is_not(None)
Index("ix_steps_shares", StepRow.trace_id, sqlite_where=_HAS_SHARE, postgresql_where=_HAS_SHARE)


class SubstepRow(Base):
    """A sub-step. `step` is the index of its step in the trace, and `position` is its own index in that step."""

    __tablename__ = "substeps"

    trace_id: Mapped[int] = mapped_column(primary_key=True)
    step: Mapped[int] = mapped_column(primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    text: Mapped[str] = mapped_column(Text)

    __table_args__ = (
        ForeignKeyConstraint(["trace_id", "step"], ["steps.trace_id", "steps.position"], ondelete="CASCADE"),
        CheckConstraint("position >= 0", name="position"),
    )


class EvaluatorRow(Base):
    """A model or an imported score file. The fingerprint identifies it; the name is only for display."""

    __tablename__ = "evaluators"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(NAME_LENGTH))
    fingerprint: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)
    format: Mapped[str] = mapped_column(String(NAME_LENGTH))
    attention: Mapped[str] = mapped_column(String(NAME_LENGTH))
    info: Mapped[dict[str, Any]] = mapped_column(StoredJson("evaluators.info", EvaluatorFacts))
    created: Mapped[datetime] = mapped_column(UtcDateTime, default=now)


class JudgmentRow(Base):
    """An evaluator's scores of a trace in one mode, online or offline.

    `scores` are the probabilities of the sub-steps, little-endian float32 in rows of neg, neu, pos. `solution` is
    the evaluator's own score of the whole solution, if any, and `rationale` its reasoning. `spread` is the spread
    of an ensemble: one little-endian float32 per sub-step. `spent` is the usage reported by the server that
    produced the judgment. If `derived` is true, the scores are an end of the evaluator's hindsight triangle.

    Every judgment replaces the earlier one of the same trace, evaluator and mode. Rows of an evaluator on a dataset
    are stored next to each other, so that they are read at once. An evaluator that has judgments cannot be deleted,
    because they are costly to produce.
    """

    __tablename__ = "judgments"

    evaluator_id: Mapped[int] = mapped_column(ForeignKey("evaluators.id", ondelete="RESTRICT"), primary_key=True)
    dataset_id: Mapped[int] = mapped_column(primary_key=True)
    mode: Mapped[str] = mapped_column(String(20), primary_key=True)
    trace_id: Mapped[int] = mapped_column(primary_key=True)
    digest: Mapped[str] = mapped_column(String(DIGEST_LENGTH))
    created: Mapped[datetime] = mapped_column(UtcDateTime, default=now)
    derived: Mapped[bool]
    scores: Mapped[bytes] = mapped_column(LargeBinary)
    solution: Mapped[float | None]
    spread: Mapped[bytes | None] = mapped_column(LargeBinary)
    rationale: Mapped[str | None] = mapped_column(Text)
    spent: Mapped[dict[str, Any] | None] = mapped_column(
        StoredJson("judgments.spent", SpentInfo, none_as_null=True)
    )

    __table_args__ = (
        ForeignKeyConstraint(["trace_id", "dataset_id"], ["traces.id", "traces.dataset_id"], ondelete="CASCADE"),
        CheckConstraint("mode IN ('offline', 'online')", name="mode"),
        Index("ix_judgments_trace_id", "trace_id", "evaluator_id", "mode"),
        {"sqlite_with_rowid": False},
    )


class TriangleRow(Base):
    """An evaluator's hindsight judgment of a trace of n sub-steps.

    `packed` is the triangle of n (n + 1) / 2 rows, encoded like `JudgmentRow.scores`; `online` and `offline` are
    its ends, and `change` is the largest absolute retroactive change. The ends are also the evaluator's judgments
    in these modes, until others replace them. The other columns are those of `JudgmentRow`.
    """

    __tablename__ = "triangles"

    evaluator_id: Mapped[int] = mapped_column(ForeignKey("evaluators.id", ondelete="RESTRICT"), primary_key=True)
    dataset_id: Mapped[int] = mapped_column(primary_key=True)
    trace_id: Mapped[int] = mapped_column(primary_key=True)
    digest: Mapped[str] = mapped_column(String(DIGEST_LENGTH))
    created: Mapped[datetime] = mapped_column(UtcDateTime, default=now)
    change: Mapped[float]
    online: Mapped[bytes] = mapped_column(LargeBinary)
    offline: Mapped[bytes] = mapped_column(LargeBinary)
    solution: Mapped[float | None]
    spread: Mapped[bytes | None] = mapped_column(LargeBinary)
    rationale: Mapped[str | None] = mapped_column(Text)
    spent: Mapped[dict[str, Any] | None] = mapped_column(
        StoredJson("triangles.spent", SpentInfo, none_as_null=True)
    )
    # The last column, so that the others can be read without it.
    packed: Mapped[bytes] = mapped_column(LargeBinary)

    __table_args__ = (
        ForeignKeyConstraint(["trace_id", "dataset_id"], ["traces.id", "traces.dataset_id"], ondelete="CASCADE"),
        Index("ix_triangles_trace_id", "trace_id", "evaluator_id"),
    )


class LeftOutScoresRow(Base):
    """An evaluator's offline scores of a trace, both complete and with sub-steps left out one at a time.

    All arrays are little-endian. `whole` is a float32 array of shape (n, 3) with the probabilities of the complete
    trace. `steps` is an int32 array of shape (m,) with the indices of the sub-steps that were left out, in
    ascending order. `probabilities` is a float32 array of shape (m, n - 1, 3) with the probabilities of the
    remaining sub-steps in each case.
    """

    __tablename__ = "left_out_scores"

    evaluator_id: Mapped[int] = mapped_column(ForeignKey("evaluators.id", ondelete="RESTRICT"), primary_key=True)
    trace_id: Mapped[int] = mapped_column(primary_key=True)
    dataset_id: Mapped[int]
    trace_digest: Mapped[str] = mapped_column(String(DIGEST_LENGTH))
    whole: Mapped[bytes] = mapped_column(LargeBinary)
    steps: Mapped[bytes] = mapped_column(LargeBinary)
    probabilities: Mapped[bytes] = mapped_column(LargeBinary)
    created: Mapped[datetime] = mapped_column(UtcDateTime, default=now)

    __table_args__ = (
        ForeignKeyConstraint(["trace_id", "dataset_id"], ["traces.id", "traces.dataset_id"], ondelete="CASCADE"),
        Index("ix_left_out_scores_dataset_id", "dataset_id", "evaluator_id"),
    )


class JudgedRow(Base):
    """A pair of a dataset and an evaluator that has judged traces of it. `revision` counts the changes to those
    judgments."""

    __tablename__ = "judged"

    dataset_id: Mapped[int] = mapped_column(ForeignKey("datasets.id", ondelete="CASCADE"), primary_key=True)
    evaluator_id: Mapped[int] = mapped_column(ForeignKey("evaluators.id", ondelete="CASCADE"), primary_key=True)
    revision: Mapped[int]


class CalibrationRow(Base):
    """Thresholds chosen for an evaluator on a dataset. The newest row is in force, and rows are never changed.

    `dataset` is the dataset's name, which is still known after the dataset has been deleted. `info` records how the
    thresholds were chosen.
    """

    __tablename__ = "calibrations"

    id: Mapped[int] = mapped_column(primary_key=True)
    evaluator_id: Mapped[int] = mapped_column(ForeignKey("evaluators.id", ondelete="CASCADE"))
    dataset_id: Mapped[int | None] = mapped_column(ForeignKey("datasets.id", ondelete="SET NULL"))
    dataset: Mapped[str] = mapped_column(String(NAME_LENGTH))
    validity: Mapped[float]
    redundancy: Mapped[float]
    info: Mapped[dict[str, Any]] = mapped_column(StoredJson("calibrations.info", CalibrationInfo))
    created: Mapped[datetime] = mapped_column(UtcDateTime, default=now)

    __table_args__ = (Index("ix_calibrations_evaluator_id", "evaluator_id", "id"),)


def check_name(name: str, what: str) -> str:
    """Return `name`, or raise `UserError` if it cannot name a dataset or an evaluator. Error messages refer to it
    as `what`."""
    check_text(name, what)
    if len(name) > NAME_LENGTH:
        raise UserError(f"{what} has {len(name):,} characters.", f"Use at most {NAME_LENGTH}.")
    if name != name.strip() or not name.isprintable():
        raise UserError(f"{what} is {name!r}.", "Remove outer spaces, line breaks and control characters.")
    return name


class UserRow(Base):
    """A user.

    `password` is a password hash with its parameters. It is NULL for the local user of a server without user
    accounts, who cannot log in. `ended` is when the user was deactivated; the row is kept because the user's work
    is kept.
    """

    __tablename__ = "users"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)
    role: Mapped[str] = mapped_column(String(20))
    password: Mapped[str | None] = mapped_column(Text)
    created: Mapped[datetime] = mapped_column(UtcDateTime, default=now)
    ended: Mapped[datetime | None] = mapped_column(UtcDateTime)
    last_login: Mapped[datetime | None] = mapped_column(UtcDateTime)

    __table_args__ = (CheckConstraint("role IN ('viewer', 'annotator', 'adjudicator', 'admin')", name="role"),)


class ServerSecretRow(Base):
    """A random secret of the server, created on first use. Only backups carry it out of the database."""

    __tablename__ = "server_secrets"

    name: Mapped[str] = mapped_column(String(20), primary_key=True)
    secret: Mapped[bytes] = mapped_column(LargeBinary)


class LoginRow(Base):
    """A browser session of a logged-in user. Its cookie holds a secret, of which only a hash is stored."""

    __tablename__ = "logins"

    digest: Mapped[str] = mapped_column(String(DIGEST_LENGTH), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    created: Mapped[datetime] = mapped_column(UtcDateTime, default=now)
    expires: Mapped[datetime] = mapped_column(UtcDateTime)

    __table_args__ = (Index("ix_logins_user_id", "user_id"),)


class FailedLoginRow(Base):
    """A failed login, counted under `key`, which stands for a user name, a network address, or both."""

    __tablename__ = "failed_logins"

    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(String(NAME_LENGTH))
    moment: Mapped[datetime] = mapped_column(UtcDateTime, default=now)

    __table_args__ = (Index("ix_failed_logins_key", "key", "moment"),)


class HomeRow(Base):
    """A network address from which a user has logged in. `key` is a hash of the user name together with the
    address."""

    __tablename__ = "homes"

    key: Mapped[str] = mapped_column(String(NAME_LENGTH), primary_key=True)
    moment: Mapped[datetime] = mapped_column(UtcDateTime, default=now)
