import numpy as np
import pytest
from sqlalchemy import select

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.label import Label
from stepsight.core.metrics.first_error import first_errors
from stepsight.core.scores import StepScores
from stepsight.core.trace import Step, Trace
from stepsight.storage.database.schema import ProfileRow
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.columns import read_gold, read_table
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.judgments.step_profiles import (
    HEAD,
    cell_bit,
    pack_profile,
    profile_columns,
    unpack_profiles,
)
from stepsight.storage.traces.queries import find_dataset
from tests.storage.samples import ERROR, add, evaluator, judge, many, triangle

NAN = float("nan")


def test_a_profile_by_hand() -> None:
    # ERROR: step 1, pos, of one sub-step; step 2, neg, of two, of which the second is the less valid.
    scores = StepScores(np.array([[0.1, 0.2, 0.7], [0.3, 0.6, 0.1], [0.75, 0.05, 0.2]], np.float32))
    packed = pack_profile(ERROR, scores, 0.5, 0.25)
    assert len(packed) == HEAD.itemsize + 2 * 4
    heads, counts, validity = unpack_profiles([packed, packed])
    assert counts.tolist() == [2, 2]
    # 0.2 + 0.7, and 0.05 + 0.2.
    assert validity == pytest.approx([0.9, 0.25] * 2)
    (head, _) = heads
    assert head["digest"] == ERROR.digest[:16].encode()
    assert (head["whole"], head["change"], head["labelled"]) == (0.5, 0.25, 1)
    # The greatest of 0.2, 0.6 and 0.05.
    assert head["redundancy"] == pytest.approx(0.6)
    # Step 1 is pos and called pos (bit 3 * 2 + 2), step 2 is neg and called neg (bit 0).
    assert head["cells"] == 0b1_0000_0001
    assert cell_bit(Label.POS, Label.POS) == 1 << 8


def test_values_that_were_not_judged_are_nan() -> None:
    scores = StepScores(np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]], np.float32))
    heads, _, validity = unpack_profiles([pack_profile(ERROR, scores, None)])
    assert np.array_equal(validity, np.array([1, np.nan], np.float32), equal_nan=True)
    assert np.isnan([heads["whole"][0], heads["change"][0]]).all()
    # A silent step is called nothing.
    assert (heads["labelled"][0], heads["cells"][0]) == (1, cell_bit(Label.POS, Label.POS))


def test_the_columns_of_each_mode() -> None:
    made = triangle(3)
    both = profile_columns(Judgment(ERROR, Mode.HINDSIGHT, made))
    online = profile_columns(Judgment(ERROR, Mode.ONLINE, made.online))
    offline = profile_columns(Judgment(ERROR, Mode.OFFLINE, made.offline))
    assert (online["offline"], offline["online"]) == (None, None)
    for mode, one in (("online", online), ("offline", offline)):
        heads, _, validity = unpack_profiles([both[mode] or b"", one[mode] or b""])
        assert np.array_equal(*validity.reshape(2, -1))
        assert np.array_equal(heads["change"], [np.abs(made.retroactive).max(), np.nan], equal_nan=True)


def test_none_at_all() -> None:
    heads, counts, validity = unpack_profiles([])
    assert (len(heads), len(counts), len(validity)) == (0, 0, 0)


def test_profiles_say_what_the_columns_of_metrics_say(store: Store) -> None:
    """Against `read_table`, which reads the probabilities, and `first_errors`."""
    parts = (Step(("a",), valid=True), Step(("b", "c"), Label.NEG), Step(("d",)))
    traces = add(store, [*many(20), Trace("x", "p", parts), Trace("y", "p", parts[:1]), Trace("z", "p", parts[2:])])
    mini = evaluator(store)
    save_judgments(store, mini.id, [judge(trace, "hindsight", seed) for seed, trace in enumerate(traces)])
    gold = read_gold(store, find_dataset(store, "sums"))
    for mode in (Mode.ONLINE, Mode.OFFLINE):
        table = read_table(store, gold, mini.id, mode)
        with store.read() as session:
            column = getattr(ProfileRow, mode.value)
            profiles = session.scalars(select(column).order_by(ProfileRow.trace_id)).all()
        heads, counts, validity = unpack_profiles(profiles)
        assert counts.tolist() == gold.counts.tolist()
        assert np.array_equal(validity, table.validity.astype(np.float32))
        assert np.flatnonzero(heads["labelled"]).tolist() == first_errors(table).trace.tolist()
        assert 0 < heads["labelled"].sum() < len(traces)
