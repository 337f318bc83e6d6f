"""The gallery in the store, with its judgments."""

from collections.abc import Iterable

from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.core.trace import Trace
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.judgments import missing_traces, save_judgments
from stepsight.storage.traces.imports import import_file
from stepsight.storage.traces.queries import find_dataset, list_datasets
from stepsight.training.evaluate.gallery import DATASET, GALLERY


def seed(store: Store, evaluators: Evaluators, names: Iterable[str]) -> None:
    """Store the gallery, and the missing judgments of the evaluators `names`.

    Those from an earlier start are not made again, unless the evaluator or the trace has changed. A person's own
    dataset of that name is left alone, as is the gallery of an earlier version.
    """
    gallery = [dataset for dataset in list_datasets(store) if dataset.name == DATASET]
    if gallery and gallery[0].source != GALLERY.name:
        return
    try:
        import_file(store, "jsonl", GALLERY, DATASET)
    except UserError:
        if not gallery:
            raise
    dataset = find_dataset(store, DATASET)
    for name in names:
        row = evaluators.register(store, name)
        missing = missing_traces(store, dataset.id, row.id, Mode.HINDSIGHT)
        judgments = evaluators.scorer(name).score(missing, Mode.HINDSIGHT, on_skip=_leave_out)
        save_judgments(store, row.id, judgments)


def _leave_out(trace: Trace, error: UserError) -> None:
    """Skip a trace longer than the evaluator's context; its page says so."""
