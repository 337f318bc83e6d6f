import numpy as np
import pytest

from stepsight.storage.browse.facets import places_in_order, stable_order


def test_equal_values_stay_in_the_order_of_their_places_and_nan_comes_last() -> None:
    values = np.array([0.5, np.nan, -1, 0.5, -0.0, 0.0, -2, np.nan], np.float32)
    assert stable_order(values).tolist() == [6, 2, 4, 5, 0, 3, 1, 7]
    assert stable_order(values, descending=True).tolist() == [0, 3, 4, 5, 2, 6, 1, 7]


@pytest.mark.parametrize("descending", [False, True])
def test_it_is_the_order_of_a_stable_argsort(descending: bool) -> None:
    rng = np.random.default_rng(3)
    values = rng.integers(-40, 40, 5_000).astype(np.float32) / 8
    values[rng.random(5_000) < 0.1] = np.nan
    wanted = np.argsort(-values if descending else values, kind="stable")
    assert stable_order(values, descending).tolist() == wanted.tolist()


def test_infinite_and_tiny_values_have_their_places() -> None:
    values = np.array([np.inf, 1e-45, 0, -1e-45, -np.inf, 3e38, np.nan], np.float32)
    assert stable_order(values).tolist() == [4, 3, 2, 1, 5, 0, 6]


def test_nothing_has_no_order() -> None:
    assert stable_order(np.empty(0, np.float32)).tolist() == []
    assert places_in_order(np.empty(0, np.uint32)).tolist() == []


def test_the_greatest_keys_are_told_apart() -> None:
    assert places_in_order(np.array([2**32 - 1, 0, 2**32 - 2, 0], np.uint32)).tolist() == [1, 3, 2, 0]
