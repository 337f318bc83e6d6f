"""What every route of the API works on."""

from dataclasses import dataclass

from stepsight.app.scoring.evaluators import Evaluators
from stepsight.storage.database.store import Store


@dataclass(frozen=True)
class Context:
    store: Store
    evaluators: Evaluators
    read_only: bool = False
