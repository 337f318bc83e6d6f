"""What can stand as gold of a dataset's steps."""

from stepsight.core.label import Label
from stepsight.core.trace import Step, Trace
from stepsight.storage.labelling.disputes import OF_VALIDITY, RATED, gold_values
from stepsight.storage.traces.queries import find_dataset
from tests.storage.samples import FIRST_ERROR, MISSING, add

# The first error alone, at the first step: no step of it is known to be valid.
AT_ONCE = Trace("at once", "What?", (Step(("a",), Label.NEG), Step(("b",))))


def test_by_what_the_dataset_says(store):
    add(store, [Trace.of("q", ["a", "b"], ["neg", "neu"], id="1")], "rated")
    add(store, [AT_ONCE, FIRST_ERROR], "first errors")
    add(store, [MISSING], "silent")
    found = {name: gold_values(store, find_dataset(store, name).id) for name in ("rated", "first errors", "silent")}
    assert found == {"rated": RATED, "first errors": OF_VALIDITY, "silent": RATED}
    assert OF_VALIDITY == ("neg", "valid", None)
    # It is read anew when the dataset has changed.
    add(store, [Trace.of("q", ["a"], ["pos"], id="2")], "first errors")
    assert gold_values(store, find_dataset(store, "first errors").id) == RATED
