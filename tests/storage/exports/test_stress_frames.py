"""Stress tests as frames and files, from which every figure can be measured again."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import stepsight
from stepsight.app.commands.cli import main
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from stepsight.storage.database.store import Store
from stepsight.storage.exports.judgment_folders import write_judgments
from stepsight.storage.exports.stress_frames import COLUMNS
from stepsight.storage.judgments.evaluators import register_loaded
from stepsight.storage.judgments.stress_tests import StressPlan, score_stress_test
from stepsight.storage.traces.queries import list_trace_ids
from tests.storage.samples import add

TRACES = [
    Trace.of("Add 2 and 3.", ["2 + 3 = 5.", "So it is 5.", "The answer is 5."], id="sum"),
    Trace.of("What is half of 10?", ["10 / 2 = 5.", "It is 5."], id="half"),
    Trace.of("Say something.", ["…"], id="nothing"),
]
CHANGES, STAYS = ("number-replaced", "false-conclusion"), ("confident-words",)


@pytest.fixture
def stressed(sqlite_store: Store) -> Store:
    dataset_id = add(sqlite_store, TRACES)[0].dataset_id
    for name in ("mini-bidir", "equations"):
        evaluator = load_evaluator(name)
        row, score = register_loaded(sqlite_store, evaluator), Scorer(evaluator).offline_scores
        plan = StressPlan(transforms=(*CHANGES, *STAYS))
        list(score_stress_test(sqlite_store, score, dataset_id, row.id, plan, lambda trace, error: None))
    return sqlite_store


def test_a_frame_has_a_row_for_each_step_of_a_variant(stressed: Store) -> None:
    found = stepsight.stress_frame(stressed, "sums", "equations")
    assert found.dtypes.astype(str).to_dict() == COLUMNS
    put_in = found[(found.trace == "half") & (found["transform"] == "false-conclusion")]
    # A step was put in after the first one; the rule says nothing of the last.
    rows = put_in[["step", "origin", "target", "before", "after"]].astype(object)
    assert rows.where(rows.notna(), None).to_numpy().tolist() == [
        [1, 1, False, 1.0, 1.0],
        [2, None, True, None, 0.0],
        [3, 2, False, None, None],
    ]
    empty = found[found.step.isna()]
    assert empty[["trace", "transform", "said"]].to_numpy().tolist() == [
        ["nothing", name, ""] for name in (*CHANGES, *STAYS)
    ]


def test_the_figures_are_those_that_the_rows_give(stressed: Store) -> None:
    rows = stepsight.stress_frame(stressed, "sums")
    figures = stepsight.frame_of(stressed, stress="sums")
    assert len(figures) == 2 * 3
    for one in figures.itertuples():
        own = rows[(rows.evaluator == one.evaluator) & (rows["transform"] == one.transform)]
        steps = own[own.step.notna()]
        wrong = {side: steps[side] < np.float32(one.threshold) for side in ("before", "after")}
        kept = ~steps.target.astype(bool) & steps.origin.notna()
        moved = wrong["before"] != wrong["after"]
        hits = (
            wrong["after"][steps.target.astype(bool) & ~wrong["before"]]
            if one.transform in CHANGES
            else ~moved[kept]
        )
        assert (one.steps, one.as_demanded) == (len(hits), pytest.approx(hits.mean()))
        assert one.elsewhere == pytest.approx((moved & kept).groupby(steps.trace).any().mean())
        assert one.inflation == pytest.approx(steps.change[kept].groupby(steps.trace).mean().mean(), nan_ok=True)
        assert (one.variants, one.unchanged) == (steps.trace.nunique(), own.step.isna().sum())
        assert one.as_demanded_low <= one.as_demanded <= one.as_demanded_high
        # A constant calls nothing wrong, and moves nothing.
        assert one.constant == (0 if one.transform in CHANGES else 1)


def test_files_have_the_rows_of_the_frame(stressed: Store, tmp_path: Path) -> None:
    expected = stepsight.stress_frame(stressed, "sums", "mini-bidir")
    for form, read in (("csv", pd.read_csv), ("parquet", pd.read_parquet)):
        path = tmp_path / f"out.{form}"
        line = [
            "export",
            "stress",
            "sums",
            str(path),
            "--format",
            form,
            "--by",
            "mini-bidir",
            "--db",
            stressed.name,
        ]
        assert main(line) == 0
        found = read(path)
        assert list(found) == list(COLUMNS)
        np.testing.assert_allclose(found.after, expected.after, atol=1e-6)
    rows = write_judgments(stressed, tmp_path / "folder", "sums", list_trace_ids(stressed, 1))
    assert rows["stress"] == 2 * len(expected)
