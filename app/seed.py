"""The demo traces in the store, with their judgments."""

from app.evaluators import Evaluators
from core.assets import asset
from core.judgment import Mode
from storage.imports import import_file
from storage.judgments import missing_traces, save_judgments
from storage.queries import find_dataset
from storage.store import Store

DEMO = "demo"


def seed(store: Store, evaluators: Evaluators) -> None:
    """Store the demo traces, and every evaluator's judgment of them; what is there already is left alone."""
    import_file(store, "jsonl", asset("traces", "demo.jsonl"), DEMO)
    dataset = find_dataset(store, DEMO)
    for name in evaluators.names:
        row = evaluators.register(store, name)
        missing = missing_traces(store, dataset.id, row.id, Mode.HINDSIGHT)
        save_judgments(store, row.id, evaluators.scorer(name).score(missing, Mode.HINDSIGHT))
