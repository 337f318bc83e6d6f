"""What every route of the API works on."""

from dataclasses import dataclass

from app.evaluators import Evaluators
from storage.store import Store


@dataclass(frozen=True)
class Context:
    store: Store
    evaluators: Evaluators
    read_only: bool = False
