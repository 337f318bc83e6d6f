import numpy as np

from stepsight.storage.browse.facets import Facet, into_buckets
from stepsight.storage.browse.filter_columns import Matches
from stepsight.storage.browse.filters import Sort
from tests.messages import refused

# Eight traces: every combination of three conditions, of which the first two are of facets.
TRACES = np.array([[i >> 2 & 1, i >> 1 & 1, i & 1] for i in range(8)], np.bool_)


def narrowed(*fields: str) -> Matches:
    """The traces that meet the conditions on these fields: left, right and text."""
    columns = {"left": TRACES[:, 0], "right": TRACES[:, 1]}
    buckets = into_buckets({name: Facet(("no", "yes"), column.astype(np.int8)) for name, column in columns.items()})
    by_bucket = {name: buckets.facets[name].has("yes") for name in columns if name in fields}
    return Matches(buckets, by_bucket, {"text": TRACES[:, 2]} if "text" in fields else {})


def test_every_condition_is_met() -> None:
    assert narrowed().chosen.all()
    assert np.flatnonzero(narrowed("left").chosen).tolist() == [4, 5, 6, 7]
    assert np.flatnonzero(narrowed("text").chosen).tolist() == [1, 3, 5, 7]
    assert np.flatnonzero(narrowed("left", "right", "text").chosen).tolist() == [7]


def test_counts_are_of_the_other_conditions() -> None:
    assert narrowed().counts() == {"left": {"no": 4, "yes": 4}, "right": {"no": 4, "yes": 4}}
    # Left alone is set: its values are counted among all, those of right among the four that meet it.
    assert narrowed("left").counts() == {"left": {"no": 4, "yes": 4}, "right": {"no": 2, "yes": 2}}
    assert narrowed("left", "text").counts() == {"left": {"no": 2, "yes": 2}, "right": {"no": 1, "yes": 1}}


def test_the_traces_that_each_condition_leaves_out_are_counted() -> None:
    assert narrowed().loosened() == {}
    assert narrowed("left", "text").loosened() == {"left": 4, "text": 4}
    assert narrowed("left", "right", "text").loosened() == {"left": 2, "right": 2, "text": 2}


def test_a_choice_shares_no_memory_with_its_columns() -> None:
    """The columns that it was made of are kept between requests."""
    for fields in ((), ("text",), ("left",)):
        found = narrowed(*fields)
        found.chosen[:] = False
        assert found.chosen.any()
    assert TRACES[:, 2].any()


def test_an_order_that_there_is_not() -> None:
    with refused():
        Sort("speed")  # type: ignore[arg-type]
