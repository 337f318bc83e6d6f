import numpy as np
import pytest

from stepsight.app.annotate.agreement_tables import (
    FIGURES,
    agreeing_shares,
    evidence_table,
    overall_table,
    position_table,
    reasons,
    step_table,
)
from stepsight.core.metrics.bootstrap import Value, resamples
from stepsight.core.metrics.labels.agreement import NO_LABEL, ONE_ANNOTATOR
from tests.app.annotate.rated import cells, rated

DRAWS = resamples(2, 50)


def test_the_four_figures_by_hand():
    # Two traces of two steps: both say neg, pos; then pos, neu of one and pos, pos of the other.
    table = overall_table(rated("np pu", "np pp"), DRAWS)
    assert [row[0] for row in table.rows] == list(FIGURES)
    # Of eight labels 2 are neg, 1 is neu, 5 are pos; all but the last step's two are in equal pairs:
    # 1 - (8 - 1) * 2 / (64 - 4 - 1 - 25).
    labels = cells(table, "labels")
    assert labels["alpha"].number == pytest.approx(1 - 7 * 2 / 34)
    assert labels["agreeing"].number == 3 / 4
    assert (labels["units"], labels["unit"], labels["pairs"]) == (4, "steps", 4)
    # In order: neg and neu are 2/2 + 1/2 apart, neu and pos 1/2 + 5/2, neg and pos 2/2 + 1 + 5/2. One coincidence
    # of neu and pos each way: 1 - 7 * 3^2 / (2 * 1 * 1.5^2 + 1 * 5 * 3^2 + 2 * 5 * 4.5^2).
    assert cells(table, "labels, in order")["alpha"].number == pytest.approx(1 - 7 * 9 / (4.5 + 45 + 202.5))
    # neu and pos are both valid, so that everything agrees; one trace has its error in step 1, one has none.
    for figure in ("valid or not", "first error"):
        assert cells(table, figure)["alpha"].number == 1
    assert (cells(table, "first error")["units"], cells(table, "first error")["unit"]) == (2, "traces")


def test_agreement_on_the_steps_that_changed_labels_by_hand():
    none = np.nan
    # Both name step 2 for step 1, and steps 3 and 4 for step 2: 1 - (4 - 1) * 2 / (16 - 4 - 1 - 1).
    evidence = [[1, 2, none, none], [1, 3, none, none]]
    table = evidence_table(rated("nnpp", "nnpp", evidence=evidence), resamples(1, 5))
    found = cells(table, "step that changed the label")
    assert (found["alpha"].number, found["agreeing"].number) == (pytest.approx(1 - 3 * 2 / 10), 0.5)
    assert evidence_table(rated("pp", "pp"), resamples(1, 5)).rows == ()


def test_where_there_is_nothing_the_notes_say_why():
    table = overall_table(rated("np pp"), DRAWS)
    assert table.notes == (f"{', '.join(FIGURES)}: {ONE_ANNOTATOR}",)
    empty = rated("n").of_traces([])
    assert overall_table(empty, resamples(0, 5)).notes == (f"{', '.join(FIGURES)}: {NO_LABEL}",)
    assert position_table(empty, resamples(0, 5)).rows == ()


def test_agreement_by_step_number():
    table = position_table(rated("np p", "pp p", gold="np p"), DRAWS)
    first, second = cells(table, "1"), cells(table, "2")
    # Step 1: neg-pos and pos-pos; of its four labels the second trace's two and one of the first are the gold's.
    assert (first["units"], first["agreeing"].number, first["gold"].number) == (2, 1 / 2, 3 / 4)
    # 1 - (4 - 1) * 2 / (16 - 1 - 9).
    assert first["nominal"].number == pytest.approx(0.0)
    assert (second["units"], second["agreeing"].number) == (1, 1)
    assert np.isnan(second["nominal"].number)
    assert [note.partition(":")[0] for note in table.notes] == ["step 2"]


def test_long_traces_share_their_last_row():
    table = position_table(rated("p" * 23 + " p", "p" * 23 + " p"), DRAWS)
    assert [row[0] for row in table.rows] == [*(str(number) for number in range(1, 20)), "20 and later"]
    assert cells(table, "20 and later")["units"] == 4


def test_every_step_for_a_file():
    table = step_table(rated("np ?", "nu -", "pu p", gold="pp -"))
    first = cells(table, 0)
    assert (first["trace"], first["step"], first["neg"], first["pos"]) == ("t0", 1, 2, 1)
    # Of three pairs one is equal.
    assert first["agreeing"].number == pytest.approx(1 / 3)
    assert (first["majority"], first["gold"]) == ("neg", "pos")
    last = cells(table, 2)
    assert (last["step"], last["pos"], last["unsure"], last["majority"], last["gold"]) == (1, 1, 1, "pos", "")
    assert not last["agreeing"].exists


def test_shares_are_of_pairs_of_labels():
    shares = agreeing_shares(rated("np?n", "nu-p", "np?u").last)
    # 3 of 3, 1 of 3, none, 0 of 3.
    np.testing.assert_allclose(shares, [1, 1 / 3, np.nan, 0])


def test_reasons_name_some_of_many():
    values = [(f"step {i}", Value.none("why")) for i in range(6)]
    values += [("x", Value(1.0)), ("y", Value.none("because"))]
    assert reasons(values) == ("step 0, step 1, step 2, step 3 and 2 more: why", "y: because")
