from typing import Any

import numpy as np
import pytest

from stepsight.core.metrics.table import SILENT
from stepsight.storage.browse.facets import Facet, differ, into_buckets
from stepsight.storage.browse.verdict_columns import VerdictColumns


def facet(names: tuple[str, ...], *codes: int, **also: list[bool]) -> Facet:
    return Facet(names, np.array(codes, np.int8), {name: np.array(flags) for name, flags in also.items()})


# Six traces of two facets: a, b, none, a, a, b; and x, x, y, y, x, x, of which the second and last are also z.
LETTERS = facet(("a", "b"), 0, 1, SILENT, 0, 0, 1)
ENDS = facet(("x", "y"), 0, 0, 1, 1, 0, 0, z=[False, True, False, False, False, True])


def test_the_traces_of_a_value() -> None:
    assert np.flatnonzero(LETTERS.has("a")).tolist() == [0, 3, 4]
    assert np.flatnonzero(ENDS.has("z")).tolist() == [1, 5]
    assert not LETTERS.has("c").any()


def test_traces_with_the_same_values_are_one_cell() -> None:
    buckets = into_buckets({"letters": LETTERS, "ends": ENDS})
    # (a, x) of 0 and 4; (b, x, z) of 1 and 5; (none, y) of 2; (a, y) of 3.
    same = [np.flatnonzero(buckets.bucket == cell).tolist() for cell in range(4)]
    assert sorted(same) == [[0, 4], [1, 5], [2], [3]]
    assert buckets.everything.tolist() == [len(traces) for traces in same]
    for name, of_traces in (("letters", LETTERS), ("ends", ENDS)):
        of_buckets = buckets.facets[name]
        assert of_buckets.codes[buckets.bucket].tolist() == of_traces.codes.tolist()
        for value, flags in of_traces.also.items():
            assert of_buckets.also[value][buckets.bucket].tolist() == flags.tolist()


def test_more_combinations_than_32_bits_hold_stay_apart() -> None:
    names = ("",) * (2**16 - 1)
    # Without the flag the keys of the first two traces would fit; with it they differ by 2**32.
    first = Facet(names, np.array([0, 2**15, 0]), {"z": np.zeros(3, bool)})
    second = Facet(names, np.zeros(3, np.int64), {})
    assert into_buckets({"first": first, "second": second}).bucket.tolist() == [0, 1, 0]


def test_counting() -> None:
    buckets = into_buckets({"letters": LETTERS, "ends": ENDS})
    everything = buckets.tally(None)
    assert buckets.facets["letters"].count(everything) == {"a": 3, "b": 2}
    assert buckets.facets["ends"].count(everything) == {"x": 4, "y": 2, "z": 2}
    some = buckets.tally(np.array([True, True, True, True, False, False]))
    assert buckets.facets["letters"].count(some) == {"a": 2, "b": 1}
    assert buckets.facets["ends"].count(some) == {"x": 2, "y": 2, "z": 1}


def test_no_traces_and_no_names() -> None:
    buckets = into_buckets({"letters": facet(("a",)), "none": facet(())})
    assert buckets.facets["letters"].count(buckets.tally(None)) == {"a": 0}
    assert buckets.facets["none"].count(buckets.tally(None)) == {}
    assert buckets.tally(np.zeros(0, np.bool_)).tolist() == []


def test_many_values_of_many_facets_stay_apart() -> None:
    """The buckets of as many classes as there are traces, beside every other facet."""
    groups = facet(tuple(map(str, range(100))), *range(100))
    buckets = into_buckets({"group": groups, **{str(i): LETTERS_OF_100 for i in range(20)}})
    assert buckets.everything.tolist() == [1] * 100


LETTERS_OF_100 = facet(("a", "b", "c"), *[0] * 100)


@pytest.mark.parametrize(("one", "other", "differs"), [(1, 1, False), (1, 0, True), (0, 1, True), (0, 0, False),
                                                       (SILENT, 1, False), (0, SILENT, False)])  # fmt: skip
def test_verdicts_differ_where_both_are_known(one: int, other: int, differs: bool) -> None:
    assert differ(verdicts(valid=one), verdicts(valid=other)).tolist() == [differs]


def verdicts(**columns: Any) -> VerdictColumns:
    """Of one trace."""
    empty: dict[str, Any] = dict.fromkeys(VerdictColumns.__dataclass_fields__, 0)
    return VerdictColumns(**{name: np.array([value]) for name, value in (empty | columns).items()})
