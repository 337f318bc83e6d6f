"""The tables of stress tests."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    String,
    UniqueConstraint,
)
from sqlalchemy.orm import Mapped, mapped_column

from stepsight.storage.database.schema import DIGEST_LENGTH, NAME_LENGTH, NEW_IDS, Base, UtcDateTime, now
from stepsight.storage.database.stored_json import StoredJson, VariantContent


class StressVariantRow(Base):
    """A solution that a stress test changed by a transform (see `core.stress.variant`), or a record that the
    transform found nothing to change in it.

    `content` is packed by `storage.judgments.stress_tests`, and is NULL if there was nothing to change. All
    evaluators are tested on the same variants.
    """

    __tablename__ = "stress_variants"

    id: Mapped[int] = mapped_column(primary_key=True)
    trace_id: Mapped[int]
    dataset_id: Mapped[int]
    transform: Mapped[str] = mapped_column(String(NAME_LENGTH))
    seed: Mapped[int] = mapped_column(BigInteger)
    trace_digest: Mapped[str] = mapped_column(String(DIGEST_LENGTH))
    content: Mapped[dict[str, Any] | None] = mapped_column(
        StoredJson("stress_variants.content", VariantContent, none_as_null=True)
    )
    created: Mapped[datetime] = mapped_column(UtcDateTime, default=now)

    __table_args__ = (
        ForeignKeyConstraint(["trace_id", "dataset_id"], ["traces.id", "traces.dataset_id"], ondelete="CASCADE"),
        UniqueConstraint("trace_id", "seed", "transform"),
        Index("ix_stress_variants_dataset_id", "dataset_id", "seed"),
        NEW_IDS,
    )


class StressScoresRow(Base):
    """An evaluator's offline scores in a stress test.

    `before` and `after` are little-endian float32 arrays of shape (sub-steps, 3) with the scores of the original
    solution and of the variant. They are NULL if the variant has no content or the evaluator could not score one of
    the two.
    """

    __tablename__ = "stress_scores"

    variant_id: Mapped[int] = mapped_column(
        ForeignKey("stress_variants.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    evaluator_id: Mapped[int] = mapped_column(
        ForeignKey("evaluators.id", ondelete="RESTRICT"), primary_key=True, autoincrement=False
    )
    dataset_id: Mapped[int]
    before: Mapped[bytes | None] = mapped_column(LargeBinary)
    after: Mapped[bytes | None] = mapped_column(LargeBinary)
    created: Mapped[datetime] = mapped_column(UtcDateTime, default=now)

    __table_args__ = (
        CheckConstraint("(before IS NULL) = (after IS NULL)", name="both"),
        Index("ix_stress_scores_dataset_id", "dataset_id", "evaluator_id"),
    )
