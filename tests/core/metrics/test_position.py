import numpy as np
import pytest

from stepsight.core.metrics.table import Third, by_change, by_third, retroactive
from tests.core.metrics.tables import table


@pytest.mark.parametrize(
    ("steps", "counts"),
    [
        (1, (0, 1, 0)),
        (2, (1, 0, 1)),
        (3, (1, 1, 1)),
        # Middles at 1/8, 3/8, 5/8, 7/8.
        (4, (1, 2, 1)),
        (6, (2, 2, 2)),
    ],
)
def test_steps_by_the_third_that_their_middle_falls_into(steps, counts):
    thirds = by_third(table((["pos"] * steps, [0.5] * steps)))
    assert tuple(len(thirds[name]) for name in Third) == counts


def test_steps_by_what_later_steps_changed():
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
