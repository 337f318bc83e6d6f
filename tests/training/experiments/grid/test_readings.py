"""Grids whose causal runs differ in their reading."""

import numpy as np
import pytest

from stepsight.core.judgment import Mode
from stepsight.core.label import Label
from stepsight.core.metrics.binary import auc, auc_within
from stepsight.core.metrics.bootstrap import Value
from stepsight.core.metrics.ternary import classify
from stepsight.storage.database.store import open_store
from stepsight.storage.judgments.columns import read_gold, read_table
from stepsight.storage.judgments.evaluators import evaluators_of
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.experiments.grid.design import read_design
from stepsight.training.experiments.grid.experiment import Grid
from stepsight.training.experiments.grid.readings import Measured, gain_share
from stepsight.training.experiments.grid.report import make_grid_report
from tests.messages import refused
from tests.training.experiments.grid.toy import TOY, write_toy


def test_the_reading_is_part_of_a_runs_name_and_only_causal_runs_have_several(tmp_path):
    design = read_design(write_toy(tmp_path, readings=["once", "twice", "both-orders"]))
    masks = ["bidirectional", "causal", "causal-twice", "causal-both-orders"]
    assert [run.mask for run in design.runs()] == masks
    assert [design.config(run).reading for run in design.runs()] == [None, None, "twice", "both-orders"]
    assert [design.config(run).attention for run in design.runs()] == ["bidirectional", *["causal"] * 3]
    assert read_design(write_toy(tmp_path, readings=["once"])).sha256 == read_design(write_toy(tmp_path)).sha256


def test_the_start_of_a_run_can_depend_on_its_attention(tmp_path):
    base = {key: value for key, value in TOY["base"].items() if key not in ("backbone", "vocabulary")}
    changes = {"base": base | {"init": "first-{mask}"}, "readings": ["twice"], "learn_tokenizer": False}
    design = read_design(write_toy(tmp_path, **changes))
    assert [design.config(run).init for run in design.runs()] == ["first-bidirectional", "first-causal"]


def test_readings_and_their_controls_are_compared_from_the_judgments_in_the_store(tmp_path):
    first = TOY["tests"][0] | {"controls": ["other", "shuffled"]}
    fewer = {"kind": "synthetic", "size": 6, "seed": 78}
    tests = [first, first | {"name": "fewer", "source": fewer, "modes": ["offline"], "controls": ["other"]}]
    tests.append({"name": "online", "source": fewer, "modes": ["online"]})
    path = write_toy(tmp_path, readings=["once", "twice"], tests=tests)
    made = Grid(read_design(path), path, tmp_path / "out")
    with open_store(str(tmp_path / "store.db")) as store:
        results = made.run(list(made.design.runs()), 1, store)
        report = make_grid_report([results], store=store)
        gold = read_gold(store, find_dataset(store, "toy synthetic"))
        once, both = "toy tiny-24-causal-13", "toy tiny-24-bidirectional-13"
        twice = "toy tiny-24-causal-twice-13"

        def read(name, mode):
            ids = {one.name: one.id for one in evaluators_of(store, gold.dataset.id)}
            return read_table(store, gold, ids[name], mode)

        readable = np.unique(read(twice, Mode.OFFLINE).trace)

        def by_hand(name, mode):
            table = read(name, mode)
            items = classify(table.where(np.isin(table.trace, readable))).against_rest(Label.NEG)
            return auc(items).number, auc_within(items).number

        other = f"{twice}, read twice, first copy other"
        offline = {name: by_hand(name, Mode.OFFLINE) for name in (once, twice, both, other)}
        online = by_hand(twice, Mode.ONLINE)
    # Read twice, two of the 12 traces are longer than the context of 1,024 tokens.
    assert len(readable) == 10
    keys = ["offline", "online", "offline, first copy other", "offline, first copy shuffled"]
    assert [mode for test, mode in results.keys if test == "synthetic"] == keys
    by_name = {one.name: one for one in report.tables}
    table = by_name["toy-synthetic-readings"]
    rows = {row[0]: dict(zip((column.key for column in table.columns), row, strict=True)) for row in table.rows}
    controls = [f"causal, read twice, first copy {copy}" for copy in ("other", "shuffled")]
    assert list(rows) == ["causal, read once", "causal, read twice", "bidirectional", *controls]
    row = rows["causal, read twice"]
    assert (row["online"].number, row["within_online"].number) == pytest.approx(online)
    assert (row["offline"].number, row["within"].number) == pytest.approx(offline[twice])
    gain = offline[twice][0] - offline[once][0]
    assert row["gain"].number == pytest.approx(gain)
    assert row["gain"].low <= gain <= row["gain"].high
    assert rows[controls[0]]["offline"].number == pytest.approx(offline[other][0])
    whole = offline[both][0] - offline[once][0]
    # The share is given only where the bidirectional gain is clear.
    assert not row["share"].exists or row["share"].number == pytest.approx(gain / whole)
    # The first copies of the second test set make a second evaluator of the same name.
    assert [row[2].exists for row in by_name["toy-fewer-readings"].rows] == [True] * 4
    assert [(row[1].exists, row[2].exists) for row in by_name["toy-online-readings"].rows] == [(True, False)] * 3
    with open_store(str(tmp_path / "other.db")) as empty, refused():
        make_grid_report([results], store=empty)


def test_a_share_of_the_bidirectional_gain_needs_one_that_is_clear():
    half, whole = (
        Measured(Value(gain).within(gain / 2, 2 * gain), np.array([gain / 2, 2 * gain])) for gain in (0.1, 0.2)
    )
    share = gain_share(half, whole)
    assert (share.number, share.low, share.high) == pytest.approx((0.5, 0.5, 0.5))
    unclear = Measured(Value(0.2).within(0.0, 0.4), whole.draws)
    assert not gain_share(half, unclear).exists
    assert not gain_share(Measured(Value.none("no errors"), half.draws), whole).exists
