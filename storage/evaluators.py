"""The evaluators that the store has judgments of."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Select, select

from storage.names import check_name
from storage.schema import EvaluatorRow
from storage.store import NotFoundError, Store
from storage.upsert import insert_once

if TYPE_CHECKING:
    # Loading it takes seconds, and only its fields are read here.
    from core.evaluator import Evaluator


@dataclass(frozen=True)
class StoredEvaluator:
    """What the store knows of an evaluator. The fingerprint tells it from others, the name is for people."""

    id: int
    name: str
    fingerprint: str
    format: str
    attention: str
    info: Mapping[str, Any]
    created: datetime


def register_evaluator(
    store: Store,
    *,
    name: str,
    fingerprint: str,
    format: str,
    attention: str,
    info: Mapping[str, Any] | None = None,
) -> StoredEvaluator:
    """The evaluator with that fingerprint, added where there is none; one that is there stays as it is.

    Raises `UserError` where the name cannot be stored.
    """
    check_name(name, "the name of the evaluator")
    row = {"name": name, "fingerprint": fingerprint, "format": format, "attention": attention}
    with store.write() as session:
        insert_once(session, EvaluatorRow, [row | {"info": dict(info or {})}], "fingerprint")
        found = session.execute(_evaluators().where(EvaluatorRow.fingerprint == fingerprint))
        return StoredEvaluator(**found.mappings().one())


def register_loaded(store: Store, evaluator: "Evaluator") -> StoredEvaluator:
    """The row of an evaluator that is in memory, added where there is none."""
    return register_evaluator(
        store,
        name=evaluator.name,
        fingerprint=evaluator.fingerprint,
        format=evaluator.format,
        attention=evaluator.attention,
        info={"parameters": evaluator.parameters, "context": evaluator.context},
    )


def list_evaluators(store: Store) -> list[StoredEvaluator]:
    """Every evaluator, by name and then in the order in which they were added."""
    with store.read() as session:
        found = session.execute(_evaluators().order_by(EvaluatorRow.name, EvaluatorRow.id))
        return [StoredEvaluator(**row) for row in found.mappings()]


def find_evaluator(store: Store, fingerprint: str) -> StoredEvaluator:
    """The evaluator with that fingerprint. Raises `NotFoundError`."""
    with store.read() as session:
        found = session.execute(_evaluators().where(EvaluatorRow.fingerprint == fingerprint)).mappings()
        row = found.one_or_none()
    if row is None:
        raise NotFoundError(f"There is no evaluator with the fingerprint {fingerprint!r}.")
    return StoredEvaluator(**row)


def _evaluators() -> Select[Any]:
    names = ("id", "name", "fingerprint", "format", "attention", "info", "created")
    return select(*[getattr(EvaluatorRow, name) for name in names])
