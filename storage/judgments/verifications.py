"""Verifications, in which results that were published for public evaluators are reproduced."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import select

from stepsight.storage.database.schema import VerificationRow
from stepsight.storage.database.store import Store


@dataclass(frozen=True)
class Verification:
    """A measured F1 on a `part` of ProcessBench and its confidence interval, beside the published F1, in percent.

    The evaluator is the hub model `repo` at `revision`, with weights of type `dtype`. The first error that it finds
    in a trace is the first step whose validity is below `threshold`. `whole` is True if all traces of the part were
    scored.
    """

    repo: str
    revision: str
    fingerprint: str
    dtype: str
    part: str
    traces: int
    whole: bool
    threshold: float
    f1: float
    low: float | None
    high: float | None
    published: float | None

    @property
    def agrees(self) -> bool | None:
        """True if the published F1 is within the measured interval, with both rounded to one decimal. None if the
        published F1 or the interval is missing."""
        if self.published is None or self.low is None or self.high is None:
            return None
        return round(self.low, 1) <= self.published <= round(self.high, 1)

    @property
    def words(self) -> str:
        """A line of text that compares the measured F1 with the published one. For example, `ProcessBench gsm8k
        (400 traces): F1 61.2 (57.9 to 64.1) at threshold 0.5, published 59.0: differs`."""
        ends = "" if self.low is None or self.high is None else f" ({self.low:.1f} to {self.high:.1f})"
        verdict = {True: "agrees", False: "differs", None: "cannot be compared"}[self.agrees]
        beside = "nothing is published" if self.published is None else f"published {self.published:.1f}: {verdict}"
        of = f"{self.traces:,} traces{'' if self.whole else ' of it'}"
        return (
            f"ProcessBench {self.part} ({of}): F1 {self.f1:.1f}{ends} at threshold {self.threshold:.4g}, {beside}"
        )


def save_verification(store: Store, verification: Verification) -> None:
    """Store a verification."""
    with store.write() as session:
        session.add(VerificationRow(**asdict(verification)))


def list_verifications(store: Store, repos: Sequence[str] | None = None) -> list[Verification]:
    """Return the newest verification of each model, revision, weight type and part, in the order in which they were
    stored. If `repos` is given, only these models are included."""
    rows = select(VerificationRow).order_by(VerificationRow.id)
    if repos is not None:
        rows = rows.where(VerificationRow.repo.in_(repos))
    with store.read() as session:
        found = [_verification(row) for row in session.scalars(rows)]
    newest = {(one.repo, one.revision, one.dtype, one.part): one for one in found}
    return list(newest.values())


def _verification(row: VerificationRow) -> Verification:
    return Verification(**{name: getattr(row, name) for name in Verification.__dataclass_fields__})
