"""What the tests of results share: a store with small judged datasets, and results that are waited for."""

from stepsight.app.results.measurements import Measurements
from stepsight.app.web.background_cache import Pending
from stepsight.storage.traces.queries import find_dataset


def measured(store, name, results=None, group=""):
    """The dataset of that name, measured."""
    found = (results or Measurements(store)).measure(find_dataset(store, name), group, patience=60)
    assert not isinstance(found, Pending)
    return found.result
