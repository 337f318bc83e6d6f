"""The evaluators to choose from for a dataset: those loaded here, and those that have judged it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.scores import Outputs
from stepsight.storage.database.store import NotFoundError, Store
from stepsight.storage.judgments.evaluators import StoredEvaluator, evaluators_of, list_evaluators

MOST_BESIDE = 5
"""Evaluators that a page shows side by side."""

_SHOWN_OF_FINGERPRINT = 8


@dataclass(frozen=True)
class EvaluatorChoice:
    """An evaluator by the `key` that addresses name it with.

    `loaded` is its name among the evaluators that can score here, None if it cannot; `row` is the store's, None if
    it has never judged anything; `judged` says whether it has judged a trace of the dataset.
    """

    key: str
    loaded: str | None
    row: StoredEvaluator | None
    judged: bool
    outputs: Outputs = Outputs.THREE_WAY

    @property
    def id(self) -> int | None:
        """Its database id."""
        return self.row.id if self.row else None


def list_choices(store: Store, evaluators: Evaluators, dataset_id: int) -> list[EvaluatorChoice]:
    """Those loaded, in their order, then the others of the store by name."""
    judged = {row.fingerprint: row for row in evaluators_of(store, dataset_id)}
    rows = {row.fingerprint: row for row in list_evaluators(store)}
    loaded = {name: evaluators.about(name) for name in evaluators.all_names}
    fingerprints = {name: evaluator.fingerprint for name, evaluator in loaded.items()}
    choices = [
        EvaluatorChoice(name, name, rows.get(fingerprints[name]), fingerprints[name] in judged, evaluator.outputs)
        for name, evaluator in loaded.items()
    ]
    others = [row for fingerprint, row in judged.items() if fingerprint not in fingerprints.values()]
    names = Counter([*loaded, *(row.name for row in others)])
    choices += [EvaluatorChoice(_keys_of(row)[names[row.name] > 1], None, row, True, row.outputs) for row in others]
    return choices


def find_choice(choices: Iterable[EvaluatorChoice], key: str) -> EvaluatorChoice:
    """The one of that key. Raises `NotFoundError` naming those that there are."""
    keys = {choice.key: choice for choice in choices}
    if key not in keys:
        raise NotFoundError(
            f"No evaluator {key!r:.60} has judged this dataset or can score here.",
            f"Choose one of: {', '.join(keys)}.",
        )
    return keys[key]


def default_choice(choices: Sequence[EvaluatorChoice]) -> EvaluatorChoice:
    """Whom a page is about that names nobody: the first that has judged the dataset, best one that runs here, next
    best one that says most."""
    return min(choices, key=lambda one: (not one.judged, one.loaded is None, list(Outputs).index(one.outputs)))


def shown_choices(choices: Sequence[EvaluatorChoice], keys: Sequence[str]) -> list[EvaluatorChoice]:
    """The evaluators of these keys, without any the default one, `MOST_BESIDE` at most. Raises `NotFoundError` for
    a key that is not offered."""
    first, *others = keys
    wanted = dict.fromkeys((first or default_choice(choices).key, *filter(None, others)))
    return [find_choice(choices, key) for key in wanted][:MOST_BESIDE]


def _keys_of(row: StoredEvaluator) -> tuple[str, str]:
    """What an evaluator of the store goes by: its name, and where another one has that name too, a longer key."""
    # The same name twice is the same evaluator at two times, mostly.
    return row.name, f"{row.name} {row.fingerprint[:_SHOWN_OF_FINGERPRINT]}"
