"""Offering a server's evaluators, and storing the shipped gallery with judgments by the shipped evaluators."""

import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile

from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode, judgments_of
from stepsight.core.models.location import shipped_evaluators
from stepsight.core.models.memory import release_memory
from stepsight.core.models.placement import Placement
from stepsight.storage.changes import scores_were_deleted
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.judgments import missing_traces, save_judgments
from stepsight.storage.people.changes import was_deleted
from stepsight.storage.traces.imports import import_file
from stepsight.storage.traces.queries import find_dataset, list_datasets
from stepsight.training.evaluate.strength import DATASET, GALLERY

_LOG = logging.getLogger("stepsight")
# How many seconds the server serves requests before it loads the rest.
_PAUSE = 0.5


def open_evaluators(store: Store, folders: Sequence[str], place: Placement | None, tokens: int) -> Evaluators:
    """Offer a server's evaluators and register them in the store. Those in `folders` are loaded."""
    evaluators = Evaluators(tuple(folders), place=place, fetched=True, tokens=tokens)
    for name in evaluators.names:
        evaluators.register(store, name)
    return evaluators


@contextmanager
def preparing(store: Store, evaluators: Evaluators) -> Iterator[None]:
    """In a separate thread, load the evaluator that is offered first and store the gallery with judgments by the
    shipped ones, so that the server can answer before PyTorch is loaded. What is not done when the block ends is
    dropped.
    """
    ending = threading.Event()

    def prepare() -> None:
        # Whoever opens the printed address is served first.
        ending.wait(_PAUSE)
        try:
            # Visitors score with it first; the others are loaded once they are chosen.
            evaluators.scorer(evaluators.default)
            # Only the shipped evaluators are certain to be quick; others may take minutes for a trace.
            seed(store, evaluators, shipped_evaluators(), ending)
            release_memory()
        except UserError as error:
            _LOG.warning("%s", error)

    thread = threading.Thread(target=prepare, name="preparing", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


def seed(store: Store, evaluators: Evaluators, names: Iterable[str], ending: threading.Event | None = None) -> None:
    """Store the gallery, and have the evaluators `names` judge the traces that they have not judged.

    Judgments from an earlier start are reused unless the evaluator or the trace has changed. If a user's own
    dataset has the gallery's name, or the gallery was deleted, nothing is stored, and an evaluator whose scores on
    it were deleted does not judge it again. If the store has an earlier version of the gallery, that version is
    kept. Once `ending` is set, the work stops; whatever has been judged by then is kept.
    """
    gallery = [dataset for dataset in list_datasets(store) if dataset.name == DATASET]
    if gallery and gallery[0].source != GALLERY.name:
        return
    if not gallery and was_deleted(store, DATASET):
        return
    try:
        import_file(store, "jsonl", GALLERY, DATASET)
    except UserError:
        if not gallery:
            raise
    dataset = find_dataset(store, DATASET)
    ending = ending or threading.Event()
    for name in names:
        if ending.is_set():
            return
        row = evaluators.register(store, name)
        missing = list(missing_traces(store, dataset.id, row.id, Mode.HINDSIGHT))
        if not missing or scores_were_deleted(store, row.name, DATASET):
            continue
        # The page of a trace reports that it is longer than the evaluator's context.
        events = evaluators.scorer(name).stream(missing, Mode.HINDSIGHT, lambda trace, error: None)
        save_judgments(store, row.id, judgments_of(takewhile(lambda _: not ending.is_set(), events)))
