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
    """An evaluator with the `key` that names it in addresses.

    `loaded` is its name if it can score here, else None; `row` is its row in the store, None if it has never judged
    anything; `judged` is True if it has judged a trace of the dataset.
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
    """The loaded evaluators in their order, then the store's others by name."""
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
    """The evaluator with that key. Raises `NotFoundError`, which lists the keys."""
    keys = {choice.key: choice for choice in choices}
    if key not in keys:
        raise NotFoundError(
            f"No evaluator {key!r:.60} has judged this dataset or can score here.",
            f"Choose one of: {', '.join(keys)}.",
        )
    return keys[key]


def default_choice(choices: Sequence[EvaluatorChoice]) -> EvaluatorChoice:
    """The evaluator of a page whose address names none. One that has judged the dataset is preferred, then one that
    runs here, then the most informative outputs."""
    return min(choices, key=lambda one: (not one.judged, one.loaded is None, list(Outputs).index(one.outputs)))


def shown_choices(choices: Sequence[EvaluatorChoice], keys: Sequence[str]) -> list[EvaluatorChoice]:
    """At most `MOST_BESIDE` evaluators by their keys; a first key "" stands for the default one. Raises
    `NotFoundError` for an unknown key."""
    first, *others = keys
    wanted = dict.fromkeys((first or default_choice(choices).key, *filter(None, others)))
    return [find_choice(choices, key) for key in wanted][:MOST_BESIDE]


def _keys_of(row: StoredEvaluator) -> tuple[str, str]:
    """The name of a stored evaluator, and a longer key for the case that another one has that name too."""
    # Two of one name are mostly one evaluator before and after a change.
    return row.name, f"{row.name} {row.fingerprint[:_SHOWN_OF_FINGERPRINT]}"
