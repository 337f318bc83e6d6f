import numpy as np
import pytest

from stepsight.core.metrics.table import Third, by_change, by_third, retroactive
from tests.core.metrics.tables import SILENT, VALID, table


@pytest.mark.parametrize(
    ("steps", "counts"),
    [
        (1, (1, 0, 0)),
        (2, (1, 1, 0)),
        (3, (1, 1, 1)),
        # 0, 3 / 4, 6 / 4 and 9 / 4, rounded down.
        (4, (2, 1, 1)),
        (5, (2, 2, 1)),
        (6, (2, 2, 2)),
    ],
)
def test_steps_by_third(steps, counts):
    thirds = by_third(table((["pos"] * steps, [0.5] * steps)))
    assert tuple(len(thirds[name]) for name in Third) == counts


def test_the_thirds_are_those_of_the_labelled_steps():
    # Of six steps three are labelled, as where labels stop at the first error; of the other trace all two.
    parts = by_third(table(([VALID, "pos", "neg", SILENT, SILENT, SILENT], [0.5] * 6), (["pos", "neg"], [0.5] * 2)))
    where = {
        name: list(zip(part.trace.tolist(), part.position.tolist(), strict=True)) for name, part in parts.items()
    }
    assert where == {"early": [(0, 0), (1, 0)], "middle": [(0, 1), (1, 1)], "late": [(0, 2)]}


def test_steps_that_are_left_out_move_no_other_to_another_third():
    whole = table((["pos", "pos", "pos"], [0.5] * 3))
    parts = by_third(whole, np.array([True, False, True]))
    assert {name: part.position.tolist() for name, part in parts.items()} == {
        "early": [0],
        "middle": [],
        "late": [2],
    }


def test_steps_are_divided_by_the_change_in_hindsight():
    golds = ["pos", "pos", "neg"]
    online, offline = table((golds, [0.9, 0.4, 0.7])), table((golds, [0.85, 0.8, 0.2]))
    change = retroactive(online, offline)
    np.testing.assert_allclose(change, [-0.05, 0.4, -0.5], atol=1e-6)
    groups = by_change(offline, change)
    assert {name: part.position.tolist() for name, part in groups.items()} == {
        "fell": [2],
        "rose": [1],
        "stayed": [0],
    }


def test_tables_of_other_traces_are_refused():
    with pytest.raises(ValueError, match="different traces"):
        retroactive(table((["pos"], [0.5])), table((["pos", "pos"], [0.5, 0.5])))
