"""What the tests of results share: a store with small judged datasets, and results that are waited for."""

from stepsight.app.results.measurements import MeasuredDataset, Measurements
from stepsight.app.web.background_cache import Pending
from stepsight.storage.database.store import Store
from stepsight.storage.traces.queries import find_dataset


def measured(store: Store, name: str, results: Measurements | None = None, group: str = "") -> MeasuredDataset:
    """The dataset of that name, measured."""
    found = (results or Measurements(store)).measure(find_dataset(store, name), group, patience=60)
    assert not isinstance(found, Pending)
    return found.result
