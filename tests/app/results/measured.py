"""What the tests of results share: a store with small judged datasets, and results that are waited for."""

from app.results.computations import Pending
from app.results.measured import Measured, Results
from storage.queries import find_dataset
from storage.store import Store


def measured(store: Store, name: str, results: Results | None = None, group: str = "") -> Measured:
    """The dataset of that name, measured."""
    found = (results or Results(store)).measure(find_dataset(store, name), group, patience=60)
    assert not isinstance(found, Pending)
    return found
