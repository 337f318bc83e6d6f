"""The evaluators that a command line names, with what they have yet to judge."""

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from app.commands.options import progress
from core.errors import UserError
from core.judgment import Mode

if TYPE_CHECKING:
    from storage.evaluators import StoredEvaluator
    from storage.queries import Dataset
    from storage.store import Store


def find_judges(
    store: "Store",
    dataset: "Dataset",
    names: Sequence[str],
    modes: Sequence[Mode],
    check: "Callable[[StoredEvaluator], object]",
) -> "list[StoredEvaluator]":
    """Those named, having judged the whole dataset where they can run; without names those that judged some of it.

    A baseline is measured with any of them and is not among them. `check` is called with each that is stored before
    any is scored. Raises `UserError` where a name is neither that of a baseline, nor stored, nor shipped, nor a
    folder.
    """
    from core.baselines import PREFIX, find_baseline
    from storage.evaluators import judges_of, list_evaluators

    if not names:
        found = judges_of(store, dataset.id)
        for evaluator in found:
            check(evaluator)
        for evaluator in found:
            _complete(store, dataset, evaluator.name, evaluator.fingerprint, modes)
        return found
    stored = {evaluator.name: evaluator for evaluator in list_evaluators(store)}
    for name in names:
        if name in stored:
            check(stored[name])
    chosen = []
    for name in names:
        if name.startswith(PREFIX):
            find_baseline(name)
            continue
        ran = _complete(store, dataset, name, stored[name].fingerprint if name in stored else None, modes)
        if ran is None and name not in stored:
            raise UserError(f"there is no evaluator {name!r}.", "Name a stored or shipped one, or a folder.")
        chosen.append(ran or stored[name])
    return chosen


def _complete(
    store: "Store", dataset: "Dataset", name: str, fingerprint: str | None, modes: Sequence[Mode]
) -> "StoredEvaluator | None":
    """Judge what is missing, if the evaluator is there to run; None where it is not.

    A stored evaluator runs only where the name still leads to the same weights.
    """
    from core.loading import can_load, load_evaluator
    from core.scorer import Scorer
    from storage.evaluators import register_loaded
    from storage.judgments import count_missing, missing_traces, save_judgments

    if not can_load(name):
        return None
    evaluator = load_evaluator(name)
    if fingerprint is not None and evaluator.fingerprint != fingerprint:
        return None
    row = register_loaded(store, evaluator)
    mode = Mode.HINDSIGHT if len(modes) > 1 else modes[0]
    missing = count_missing(store, dataset.id, row.id, mode)
    if missing:
        if evaluator.format != "stepsight":
            print(evaluator.described, file=sys.stderr)
        traces = missing_traces(store, dataset.id, row.id, mode)
        save_judgments(store, row.id, progress(Scorer(evaluator).score(traces, mode, _skip), missing, name))
    return row


def _skip(trace: object, error: UserError) -> None:
    """Traces over the evaluator's context are left out; the table's counts show it."""
    print(f"left out: {error.message}", file=sys.stderr)
