"""The evaluators that the Browse page offers for a dataset: those loaded here, and those that have judged it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stepsight.app.browse.address import Address
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.errors import UserError
from stepsight.core.scores import Outputs
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import StoredEvaluator, judges_of, list_evaluators

MOST_BESIDE = 5
"""Evaluators that a page shows side by side."""

_SHOWN_OF_FINGERPRINT = 8


@dataclass(frozen=True)
class Offered:
    """An evaluator by the `key` that addresses name it with.

    `loaded` is its name among the evaluators that can score here, None where it cannot; `row` is the store's, None
    where it has never judged anything; `judged` says whether it has judged a trace of the dataset. `outputs` tells
    what kind of thing it says.
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


def offered_evaluators(store: Store, evaluators: Evaluators, dataset_id: int) -> list[Offered]:
    """Those loaded, in their order, then the others of the store by name."""
    judges = {row.fingerprint: row for row in judges_of(store, dataset_id)}
    known = {row.fingerprint: row for row in list_evaluators(store)}
    here = {name: evaluators.scorer(name).evaluator for name in evaluators.names}
    prints = {name: one.fingerprint for name, one in here.items()}
    found = [
        Offered(name, name, known.get(prints[name]), prints[name] in judges, one.outputs)
        for name, one in here.items()
    ]
    others = [row for print_, row in judges.items() if print_ not in prints.values()]
    names = Counter([*here, *(row.name for row in others)])
    return found + [Offered(keys_of(row)[names[row.name] > 1], None, row, True, row.outputs) for row in others]


def find_offered(offers: Iterable[Offered], key: str) -> Offered:
    """The one of that key. Raises `UserError` naming those that there are."""
    keys = {offer.key: offer for offer in offers}
    if key not in keys:
        raise UserError(
            f"No evaluator {key!r:.60} has judged this dataset or can score here.",
            f"Choose one of: {', '.join(keys)}.",
        )
    return keys[key]


def first_offered(offers: Sequence[Offered]) -> Offered:
    """Whom a page is about that names nobody: the first that has judged the dataset, best one that runs here, next
    best one that says most."""
    return min(offers, key=lambda one: (not one.judged, one.loaded is None, list(Outputs).index(one.outputs)))


def chosen_offers(offers: Sequence[Offered], address: Address) -> list[Offered]:
    """Those that the page of a trace shows, `MOST_BESIDE` at most: the ones that the address puts side by side,
    else whom its list is about. Raises `UserError` on one that is not offered."""
    keys = address.beside or (address.evaluator or first_offered(offers).key, address.against)
    return [find_offered(offers, key) for key in dict.fromkeys(keys) if key][:MOST_BESIDE]


def keys_of(row: StoredEvaluator) -> tuple[str, str]:
    """What an evaluator of the store goes by: its name, and where another one has that name too, a longer key."""
    # The same name twice is the same evaluator at two times, mostly.
    return row.name, f"{row.name} {row.fingerprint[:_SHOWN_OF_FINGERPRINT]}"
