"""The objects that every route of the API works on."""

from dataclasses import dataclass

from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.scoring.limits import REQUEST_SECONDS
from stepsight.storage.database.store import Store


@dataclass(frozen=True)
class Context:
    store: Store
    evaluators: Evaluators
    read_only: bool = False
    seconds: float = REQUEST_SECONDS
