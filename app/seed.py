"""The demo traces in the store, with their judgments."""

from app.evaluators import Evaluators
from core.assets import asset
from core.errors import UserError
from core.judgment import Mode
from core.trace import Trace
from storage.imports import import_file
from storage.judgments import missing_traces, save_judgments
from storage.queries import find_dataset, list_datasets
from storage.store import Store

DEMO = "demo"


def seed(store: Store, evaluators: Evaluators) -> None:
    """Store the demo traces, and the judgment of every evaluator that can read them.

    A person's own dataset of that name is left alone, and so are demo traces of an earlier version.
    """
    path = asset("traces", "demo.jsonl")
    found = [dataset for dataset in list_datasets(store) if dataset.name == DEMO]
    if found and found[0].source != path.name:
        return
    try:
        import_file(store, "jsonl", path, DEMO)
    except UserError:
        if not found:
            raise
    dataset = find_dataset(store, DEMO)
    for name in evaluators.names:
        row = evaluators.register(store, name)
        missing = missing_traces(store, dataset.id, row.id, Mode.HINDSIGHT)
        judgments = evaluators.scorer(name).score(missing, Mode.HINDSIGHT, on_skip=_leave_out)
        save_judgments(store, row.id, judgments)


def _leave_out(trace: Trace, error: UserError) -> None:
    """Pass over a trace longer than the evaluator's context: the page says so where it is opened."""
