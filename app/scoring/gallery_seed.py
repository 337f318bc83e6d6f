"""Loading a server's evaluators, and storing the shipped gallery with judgments by the shipped evaluators."""

from collections.abc import Iterable, Sequence

from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.core.models.location import shipped_evaluators
from stepsight.core.models.placement import Placement
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.judgments import missing_traces, save_judgments
from stepsight.storage.judgments.score_changes import scores_were_deleted
from stepsight.storage.people.changes import was_deleted
from stepsight.storage.traces.imports import import_file
from stepsight.storage.traces.queries import find_dataset, list_datasets
from stepsight.training.evaluate.gallery import DATASET, GALLERY


def open_evaluators(store: Store, folders: Sequence[str], place: Placement | None, tokens: int) -> Evaluators:
    """Load a server's evaluators and register them in the store. The gallery is stored too, with judgments by the
    shipped evaluators."""
    evaluators = Evaluators(tuple(folders), place=place, fetched=True, tokens=tokens)
    # Only the shipped ones are certainly quick; another one may take minutes for a trace.
    seed(store, evaluators, shipped_evaluators())
    for name in evaluators.names:
        evaluators.register(store, name)
    return evaluators


def seed(store: Store, evaluators: Evaluators, names: Iterable[str]) -> None:
    """Store the gallery, and have the evaluators `names` judge the traces that they have not judged.

    Judgments from an earlier start are reused unless the evaluator or the trace has changed. If a user's own
    dataset has the gallery's name, or the gallery was deleted, nothing is stored, and an evaluator whose scores on
    it were deleted does not judge it again. If the store has an earlier version of the gallery, that version is
    kept.
    """
    stored = [*list_datasets(store), *list_datasets(store, archived=True)]
    gallery = [dataset for dataset in stored if dataset.name == DATASET]
    if gallery and gallery[0].source != GALLERY.name:
        return
    if not gallery and was_deleted(store, "dataset", DATASET):
        return
    try:
        import_file(store, "jsonl", GALLERY, DATASET)
    except UserError:
        if not gallery:
            raise
    dataset = find_dataset(store, DATASET)
    for name in names:
        row = evaluators.register(store, name)
        if scores_were_deleted(store, row.name, DATASET):
            continue
        missing = missing_traces(store, dataset.id, row.id, Mode.HINDSIGHT)
        judgments = evaluators.scorer(name).score(missing, Mode.HINDSIGHT, on_skip=_leave_out)
        save_judgments(store, row.id, judgments)


def _leave_out(trace: object, error: UserError) -> None:
    """Do nothing about a trace that is longer than the evaluator's context. The page of the trace reports it."""
