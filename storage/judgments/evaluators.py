"""The evaluators that have judgments in the store, and their calibrated thresholds.

Thresholds are kept as a history, in which the newest thresholds are in force.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Select, exists, func, select
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.core.evaluator_summary import OWN_READING, Reading, sees_later_steps
from stepsight.core.scores import Outputs, Thresholds
from stepsight.storage.database.schema import (
    CalibrationRow,
    DatasetRow,
    EvaluatorRow,
    JudgedRow,
    JudgmentRow,
    TraceRow,
    check_name,
)
from stepsight.storage.database.store import Store, insert_once
from stepsight.storage.traces.queries import Dataset

if TYPE_CHECKING:
    # Loading these takes seconds, and only their attributes are read here.
    from stepsight.core.evaluator_summary import EvaluatorSummary
    from stepsight.core.models.evaluator_base import Evaluator


_DTYPE = "float32"


@dataclass(frozen=True)
class StoredEvaluator:
    """An evaluator in the store. The fingerprint identifies it, while the name is only for display."""

    id: int
    name: str
    fingerprint: str
    format: str
    attention: str
    info: Mapping[str, Any]
    created: datetime

    @classmethod
    def of(cls, row: EvaluatorRow) -> "StoredEvaluator":
        """Return the evaluator that a database row describes."""
        return cls(**{name: getattr(row, name) for name in cls.__dataclass_fields__})

    @property
    def sees_later_steps(self) -> bool:
        """True if a later step can change its judgment of an earlier one, or its attention is unknown."""
        return sees_later_steps(self.attention)

    @property
    def reading_note(self) -> str:
        """A note that the evaluator was not trained for its reading, or "" if the reading is its own."""
        return self.reading.note(self.name)

    @property
    def reading(self) -> Reading:
        """Its reading, if that is not its own."""
        return Reading(**self.info.get("reading", {}))

    @property
    def outputs(self) -> Outputs:
        """The kind of scores that the evaluator gives, by default probabilities of the three classes."""
        return Outputs(self.info.get("outputs", Outputs.THREE_WAY))

    @property
    def dtype(self) -> str:
        """The data type that the evaluator's weights had when it judged."""
        return str(self.info.get("dtype", _DTYPE))

    @property
    def thresholds(self) -> Thresholds:
        """The evaluator's own thresholds, which apply until calibrated ones replace them."""
        return own_thresholds(self.info)


def own_thresholds(info: Mapping[str, Any]) -> Thresholds:
    """Return an evaluator's own thresholds, which are stored in the `info` of its row, or the defaults if there are
    none."""
    return Thresholds.from_dict(info.get("thresholds", {}))


def register_evaluator(
    store: Store,
    *,
    name: str,
    fingerprint: str,
    format: str,
    attention: str,
    info: Mapping[str, Any] | None = None,
) -> StoredEvaluator:
    """Return the evaluator with this fingerprint, adding it to the store if necessary. An existing evaluator is
    unchanged. Raises `UserError` if the name cannot be stored."""
    check_name(name, "the name of the evaluator")
    row = {"name": name, "fingerprint": fingerprint, "format": format, "attention": attention}
    with store.write() as session:
        return add_evaluator(session, row | {"info": dict(info or {})})


def add_evaluator(session: Session, row: Mapping[str, Any], *, lock: bool = False) -> StoredEvaluator:
    """Like `register_evaluator`, but within the caller's transaction and without checking the name.

    With `lock`, other transactions that ask for the lock wait until this one ends.
    """
    insert_once(session, EvaluatorRow, [dict(row)], "fingerprint")
    chosen = _select().where(EvaluatorRow.fingerprint == row["fingerprint"])
    stored = session.execute(chosen.with_for_update(key_share=True) if lock else chosen)
    return StoredEvaluator(**stored.mappings().one())


def amend_evaluator(session: Session, evaluator_id: int, info: Mapping[str, Any]) -> None:
    """Merge `info` into the facts stored about an evaluator."""
    row = session.get_one(EvaluatorRow, evaluator_id, with_for_update=True)
    row.info = row.info | dict(info)


def register_loaded(store: Store, evaluator: "Evaluator | EvaluatorSummary") -> StoredEvaluator:
    """Return the stored form of an evaluator that is or was loaded, adding it to the store if necessary. If the
    evaluator's own thresholds have changed, they are updated in the store."""
    own: dict[str, Any] = {"thresholds": vars(evaluator.thresholds)}
    # Properties with their default values are not stored.
    kind = {} if evaluator.outputs == Outputs.THREE_WAY else {"outputs": evaluator.outputs.value}
    kind |= {} if evaluator.dtype == _DTYPE else {"dtype": evaluator.dtype}
    reading = {} if evaluator.reading == OWN_READING else {"reading": asdict(evaluator.reading)}
    stored = register_evaluator(
        store,
        name=evaluator.name,
        fingerprint=evaluator.fingerprint,
        format=evaluator.format,
        attention=evaluator.attention,
        info=own | {"parameters": evaluator.parameters, "context": evaluator.context} | kind | reading,
    )
    if stored.thresholds == evaluator.thresholds:
        return stored
    with store.write() as session:
        amend_evaluator(session, stored.id, own)
    return replace(stored, info=dict(stored.info) | own)


def is_stored(store: Store, fingerprint: str) -> bool:
    """True if the store has the evaluator with this fingerprint."""
    with store.read() as session:
        return session.scalar(select(EvaluatorRow.id).where(EvaluatorRow.fingerprint == fingerprint)) is not None


def list_evaluators(store: Store) -> list[StoredEvaluator]:
    """List all evaluators, sorted by name and then in the order they were added."""
    with store.read() as session:
        rows = session.execute(_select().order_by(EvaluatorRow.name, EvaluatorRow.id))
        return [StoredEvaluator(**row) for row in rows.mappings()]


def find_by_name(store: Store, name: str) -> StoredEvaluator:
    """Return the evaluator with this name or fingerprint. Raises `UserError` if no evaluator or several evaluators
    match."""
    evaluators = list_evaluators(store)
    matches = [evaluator for evaluator in evaluators if name in (evaluator.name, evaluator.fingerprint)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UserError(f"{len(matches)} evaluators are called {name!r:.80}.", "Give the fingerprint instead.")
    names = ", ".join(sorted({evaluator.name for evaluator in evaluators})) or "none"
    raise UserError(f"There is no evaluator {name!r:.80} in the store.", f"It has {names}.")


def evaluators_of(store: Store, dataset_id: int) -> list[StoredEvaluator]:
    """List the evaluators that have judged at least one trace of a dataset, sorted by name."""
    judged = exists().where(JudgmentRow.evaluator_id == EvaluatorRow.id, JudgmentRow.dataset_id == dataset_id)
    with store.read() as session:
        rows = session.execute(_select().where(judged).order_by(EvaluatorRow.name, EvaluatorRow.id))
        return [StoredEvaluator(**row) for row in rows.mappings()]


def with_distinct_names(evaluators: Iterable[StoredEvaluator]) -> list[StoredEvaluator]:
    """Return the evaluators sorted by name. If several share a name, their fingerprints are added to it."""
    chosen = sorted(evaluators, key=lambda evaluator: (evaluator.name, evaluator.id))
    often = Counter(evaluator.name for evaluator in chosen)
    return [
        evaluator
        if often[evaluator.name] == 1
        else replace(evaluator, name=f"{evaluator.name} ({evaluator.fingerprint[:8]})")
        for evaluator in chosen
    ]


def count_evaluators(store: Store) -> dict[int, int]:
    """Return the number of evaluators that have judged each dataset, keyed by dataset id.

    Datasets that no evaluator has judged are omitted.
    """
    counts = select(JudgedRow.dataset_id, func.count()).group_by(JudgedRow.dataset_id)
    with store.read() as session:
        return dict(session.execute(counts).all())


def datasets_judged_by(store: Store, fingerprint: str) -> set[int]:
    """Return the ids of the datasets that the evaluator with this fingerprint has judged traces of."""
    judged = select(JudgedRow.dataset_id).join(EvaluatorRow, EvaluatorRow.id == JudgedRow.evaluator_id)
    with store.read() as session:
        return set(session.scalars(judged.where(EvaluatorRow.fingerprint == fingerprint)))


def _select() -> Select[Any]:
    return select(*[getattr(EvaluatorRow, name) for name in StoredEvaluator.__dataclass_fields__])


class Threshold(StrEnum):
    """The kinds of threshold, which are chosen independently. The values are field names of `Thresholds`."""

    VALIDITY = "validity"
    REDUNDANCY = "redundancy"


@dataclass(frozen=True)
class ThresholdOrigin:
    """A record of how a threshold was chosen, and on which dataset. `dataset_id` is None if the dataset was
    deleted."""

    dataset_id: int | None
    dataset: str
    info: Mapping[str, Any]
    created: datetime


@dataclass(frozen=True)
class Calibration:
    """The thresholds in force. A threshold that is missing from `origins` is the evaluator's own."""

    thresholds: Thresholds
    origins: Mapping[Threshold, ThresholdOrigin] = field(default_factory=dict)

    @property
    def datasets(self) -> tuple[str, ...]:
        """The names of the datasets on which the thresholds were chosen, without duplicates."""
        return tuple(dict.fromkeys(origin.dataset for origin in self.origins.values()))


def save_calibration(
    store: Store, evaluator_id: int, dataset: Dataset, chosen: Threshold, value: float, info: Mapping[str, Any]
) -> Calibration:
    """Put a threshold chosen on a dataset into force and return the new calibration. The other threshold is
    unchanged."""
    with store.write() as session:
        before = thresholds_in_force(session, evaluator_id)
        session.add(
            CalibrationRow(
                evaluator_id=evaluator_id,
                dataset_id=dataset.id,
                dataset=dataset.name,
                info=dict(info) | {"threshold": chosen.value},
                **(vars(before) | {chosen.value: value}),
            )
        )
    calibration = find_calibration(store, evaluator_id)
    assert calibration is not None
    return calibration


def find_calibration(store: Store, evaluator_id: int) -> Calibration | None:
    """Return the thresholds in force, or None if no threshold has been calibrated."""
    with store.read() as session:
        rows = session.scalars(_history(evaluator_id)).all()
    if not rows:
        return None
    origins: dict[Threshold, ThresholdOrigin] = {}
    for row in rows:
        chosen = Threshold(row.info["threshold"])
        origins.setdefault(chosen, ThresholdOrigin(row.dataset_id, row.dataset, row.info, row.created))
    return Calibration(Thresholds(rows[0].validity, rows[0].redundancy), origins)


def outputs_of_evaluator(session: Session, evaluator_id: int) -> Outputs:
    """Return the kind of scores that an evaluator gives."""
    info = session.scalar(select(EvaluatorRow.info).where(EvaluatorRow.id == evaluator_id)) or {}
    return Outputs(info.get("outputs", Outputs.THREE_WAY))


def thresholds_in_force(session: Session, evaluator_id: int) -> Thresholds:
    """Return an evaluator's newest calibrated thresholds, or its own if none have been calibrated."""
    newest = session.scalars(_history(evaluator_id).limit(1)).one_or_none()
    if newest:
        return Thresholds(newest.validity, newest.redundancy)
    info = session.scalars(select(EvaluatorRow.info).where(EvaluatorRow.id == evaluator_id)).one_or_none()
    return own_thresholds(info or {})


def find_thresholds(store: Store, evaluator_id: int) -> Thresholds:
    """Like `thresholds_in_force`, but in a transaction of its own."""
    with store.read() as session:
        return thresholds_in_force(session, evaluator_id)


def count_shared(store: Store, dataset_id: int, other_id: int) -> int:
    """Count the traces of a dataset that a second dataset also contains, including their gold labels."""
    digests = select(TraceRow.digest).where(TraceRow.dataset_id == other_id)
    shared = TraceRow.dataset_id == dataset_id, TraceRow.digest.in_(digests)
    counted = select(func.count()).select_from(TraceRow).where(*shared)
    with store.read() as session:
        return session.scalar(counted) or 0


def _history(evaluator_id: int) -> Select[CalibrationRow]:
    return (
        select(CalibrationRow).where(CalibrationRow.evaluator_id == evaluator_id).order_by(CalibrationRow.id.desc())
    )


class VerdictVersion(NamedTuple):
    """The values that change with an evaluator's verdicts on a dataset: when the evaluator was added, since the id
    of a deleted one may be used again, the revision of its `judgments`, and the id of its newest `thresholds`."""

    created: datetime
    judgments: int | None
    thresholds: int | None


class Versions(NamedTuple):
    """Keys that change whenever the data does: `traces` with the traces of a dataset, and `verdicts` with what
    evaluators say about them, by the id of the evaluator."""

    traces: tuple[datetime, int] | None
    verdicts: Mapping[int, VerdictVersion]


def read_versions(session: Session, dataset_id: int, evaluators: Collection[int] | None = None) -> Versions:
    """Return the versions of a dataset's traces, and of the verdicts of the evaluators with these ids, by default
    of all that have judged it. Evaluators that do not exist are left out."""
    if evaluators is None:
        named = EvaluatorRow.id.in_(select(JudgedRow.evaluator_id).where(JudgedRow.dataset_id == dataset_id))
    else:
        named = EvaluatorRow.id.in_(evaluators)
    newest = select(func.max(CalibrationRow.id)).where(CalibrationRow.evaluator_id == EvaluatorRow.id)
    of_dataset = (JudgedRow.evaluator_id == EvaluatorRow.id) & (JudgedRow.dataset_id == DatasetRow.id)
    verdict = EvaluatorRow.id, EvaluatorRow.created, JudgedRow.revision, newest.scalar_subquery()
    statement = (
        select(DatasetRow.created, DatasetRow.revision, *verdict)
        .select_from(DatasetRow)
        .outerjoin(EvaluatorRow, named)
        .outerjoin(JudgedRow, of_dataset)
        .where(DatasetRow.id == dataset_id)
        .order_by(EvaluatorRow.id)
    )
    rows = session.execute(statement).all()
    traces = (rows[0][0], rows[0][1]) if rows else None
    return Versions(traces, {id: VerdictVersion(*version) for _, _, id, *version in rows if id is not None})
