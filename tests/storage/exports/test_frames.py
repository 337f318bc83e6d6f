import io
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import update

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import Outputs, StepScores
from stepsight.core.trace import Trace
from stepsight.storage.database.schema import JudgmentRow
from stepsight.storage.database.stored_json import DamagedError
from stepsight.storage.exports.frames import COLUMNS, frame, judgment_frames
from stepsight.storage.exports.table_files import frame_parts, trace_lines
from stepsight.storage.importers import find_kind, parse_row
from stepsight.storage.judgments.columns import read_gold, read_table
from stepsight.storage.judgments.evaluators import register_evaluator
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from tests.messages import refused
from tests.storage.samples import ERROR, FIRST_ERROR, add, evaluator, judge, many

SAID = {
    "percent": (Outputs.VALIDITY, [[0.4, 0, 0.6], [0.75, 0, 0.25], [0, 0, 1], [0, 0, 0]], None, ""),
    "words": (Outputs.VERDICT, [[0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 0]], 0.0, "Step 2."),
    "number": (Outputs.SOLUTION, [[0, 0, 0]] * 4, 0.25, ""),
    "three": (Outputs.THREE_WAY, [[0.1, 0.2, 0.7], [0.8, 0.1, 0.1], [0.1, 0.1, 0.8], [0, 0, 0]], None, ""),
}


def say(store, trace, name):
    outputs, rows, solution, why = SAID[name]
    row = register_evaluator(
        store, name=name, fingerprint=f"of {name}", format="x", attention="x", info={"outputs": outputs.value}
    )
    said = Judgment(trace, Mode.OFFLINE, StepScores(np.array(rows, np.float32)), solution, why)
    save_judgments(store, row.id, [said])
    return row.id


def judgment_rows(store, trace_ids, evaluators=None):
    """The rows of the frames, None where nothing is said."""
    lines = b"".join(frame_parts(judgment_frames(store, "sums", trace_ids, evaluators), "jsonl")).splitlines()
    return [json.loads(line) for line in lines]


def columns(rows, *names):
    return [tuple(row[name] for name in names) for row in rows]


def test_every_substep_has_a_row_and_what_is_not_said_is_empty(store):
    (trace,) = add(store, [FIRST_ERROR])
    ids = {name: say(store, trace, name) for name in SAID}
    rows = {name: judgment_rows(store, [trace.trace_id], [id]) for name, id in ids.items()}
    assert all(list(row) == list(COLUMNS) for found in rows.values() for row in found)
    assert columns(rows["three"], "dataset", "trace", "step", "substep", "gold", "mode") == [
        ("sums", "first", 1, 1, "valid", "offline"),
        ("sums", "first", 2, 1, "neg", "offline"),
        ("sums", "first", 2, 2, "neg", "offline"),
        ("sums", "first", 3, 1, None, "offline"),
    ]
    numbers = ("neg", "neu", "pos", "validity", "redundancy", "valid", "redundant")
    assert columns(rows["three"], *numbers) == [
        (0.1, 0.2, 0.7, 0.9, 0.2, True, True),
        (0.8, 0.1, 0.1, 0.2, 0.1, False, False),
        (0.1, 0.1, 0.8, 0.9, 0.1, True, False),
        (None,) * 7,
    ]
    assert columns(rows["percent"], *numbers)[:2] == [
        (None, None, None, 0.6, None, True, None),
        (None, None, None, 0.25, None, False, None),
    ]
    assert columns(rows["words"], "validity", "valid", "solution_score", "rationale") == [
        (None, True, 0.0, "Step 2."),
        (None, False, 0.0, "Step 2."),
        (None, True, 0.0, "Step 2."),
        (None, None, 0.0, "Step 2."),
    ]
    assert columns(rows["number"], "step", "validity", "solution_score", "evaluator", "fingerprint") == [
        (None, None, 0.25, "number", "of number")
    ]
    assert len(judgment_rows(store, [trace.trace_id])) == 3 * 4 + 1


def test_rows_come_in_the_order_asked_for_over_many_batches(store):
    stored = add(store, many(450))
    mini = evaluator(store)
    save_judgments(store, mini.id, (judge(trace, "offline") for trace in stored))
    backwards = [trace.trace_id for trace in reversed(stored)]
    assert [row["trace"] for row in judgment_rows(store, backwards)] == [trace.id for trace in reversed(stored)]


def test_traces_are_written_so_that_they_can_be_imported_gold_and_all(store):
    stored = add(store)
    lines = b"".join(trace_lines(store, [trace.trace_id for trace in stored])).splitlines()
    kind = find_kind("jsonl")
    again = [parse_row(kind, json.loads(line), f"row {n}") for n, line in enumerate(lines, 1)]
    assert [trace.digest for trace in again] == [trace.digest for trace in stored]
    assert [dict(trace.meta) for trace in again] == [dict(trace.meta) for trace in stored]


def test_a_frame_has_a_row_per_step_which_is_its_least_valid_substep(store):
    (trace,) = add(store, [FIRST_ERROR])
    for name in SAID:
        say(store, trace, name)
    steps = frame(store, "sums")
    assert list(steps) == [name for name in COLUMNS if name != "substep"]
    three = steps[steps.evaluator == "three"]
    assert three.gold.tolist()[:2] == ["valid", "neg"]
    assert three.gold.isna().tolist() == [False, False, True]
    # Of step 2 the sub-step with s_val 0.2 stands for it, and the redundancy is the greater of 0.1 and 0.1.
    assert three.neg.tolist()[1] == pytest.approx(0.8)
    assert three.validity.tolist()[:2] == pytest.approx([0.9, 0.2])
    assert [three[name].tolist()[:2] for name in ("valid", "redundant")] == [[True, False], [True, False]]
    assert three.validity.isna().tolist() == three.valid.isna().tolist() == [False, False, True]
    (number,) = steps[steps.evaluator == "number"].itertuples()
    assert (number.step, number.solution_score) == (pd.NA, 0.25)
    words = steps[steps.evaluator == "words"]
    assert words.rationale.tolist() == ["Step 2."] * 3
    assert words.valid.tolist()[:2] == [True, False]
    assert words.validity.isna().all()


def test_change_is_offline_minus_online_validity_in_the_rows_of_both(store):
    (trace,) = add(store, [ERROR])
    mini = evaluator(store)
    save_judgments(store, mini.id, [judge(trace, "hindsight")])
    rows = frame(store, "sums", "mini", substeps=True)
    hindsight = Judgment(trace, Mode.HINDSIGHT, judge(trace, "hindsight").result).hindsight
    assert hindsight is not None
    assert rows.change.tolist() == pytest.approx([*hindsight.retroactive, *hindsight.retroactive])
    steps = frame(store, "sums", "mini").set_index(["mode", "step"])
    fell = steps.loc["offline"].validity - steps.loc["online"].validity
    assert steps.loc["offline"].change.tolist() == steps.loc["online"].change.tolist() == fell.tolist()


def test_a_frame_agrees_with_what_is_measured(store):
    stored = add(store)
    mini = evaluator(store)
    save_judgments(store, mini.id, (judge(trace, "hindsight", seed) for seed, trace in enumerate(stored)))
    gold = read_gold(store, find_dataset(store, "sums"))
    steps = frame(store, "sums")
    for mode in (Mode.ONLINE, Mode.OFFLINE):
        table, of_mode = read_table(store, gold, mini.id, mode), steps[steps["mode"] == mode.value]
        for name in ("validity", "redundancy"):
            assert of_mode[name].tolist() == pytest.approx(getattr(table, name).tolist())
        assert of_mode[["neg", "neu", "pos"]].to_numpy() == pytest.approx(table.probs)
        assert (of_mode.step - 1).tolist() == table.position.tolist()
        assert of_mode.trace.tolist() == [table.ids[place] for place in table.trace]


def test_types_are_the_same_whatever_is_in_a_frame_and_survive_parquet(store):
    add(store)
    empty = frame(store, "sums", metadata=False)
    assert len(empty) == 0
    stored = list(iterate_traces(store, find_dataset(store, "sums").id))
    for name in ("number", "words"):
        say(store, stored[-1], name)
    save_judgments(store, evaluator(store).id, (judge(trace, "online") for trace in stored))
    full = frame(store, "sums")
    assert full.dtypes[empty.columns].astype(str).tolist() == empty.dtypes.astype(str).tolist()
    read = []
    for one in (empty, full):
        file = io.BytesIO()
        one.to_parquet(file)
        read.append(pd.read_parquet(file))
    pd.testing.assert_frame_equal(read[1], full)
    # Arrow keeps no category that no row has.
    assert read[0].dtypes.astype(str).tolist() == empty.dtypes.astype(str).tolist()


def test_the_exported_file_is_the_frame(store):
    stored = add(store, many(2100))
    mini = evaluator(store)
    save_judgments(store, mini.id, (judge(trace, "offline") for trace in stored))
    whole = frame(store, "sums", substeps=True, metadata=False)
    parts = frame_parts(judgment_frames(store, "sums", [trace.trace_id for trace in stored]), "parquet")
    read = pd.read_parquet(io.BytesIO(b"".join(parts)))
    # Arrow does not keep of what type the categories of an empty column are.
    pd.testing.assert_frame_equal(read.drop(columns="rationale"), whole.drop(columns="rationale"))
    assert read.rationale.isna().all()
    assert whole.rationale.isna().all()


def test_metadata_comes_as_columns_of_their_own_types(store):
    metas: list[dict[str, Any]] = [
        {"source": "MATH", "level": 5, "info": {"share": 0.5}, "most": 1, "ok": True, "tags": ["a"]},
        {"level": None, "info": {"share": 1}, "most": 10**400, "ok": False},
    ]
    stored = add(store, [Trace.of("q", ["a", "b"], id=str(i), meta=meta) for i, meta in enumerate(metas)])
    save_judgments(store, evaluator(store).id, (judge(trace, "offline") for trace in stored))
    rows = frame(store, "sums")
    names = [name.removeprefix("meta.") for name in rows if name.startswith("meta.")]
    assert names == ["info.share", "level", "most", "ok", "source"]
    assert rows["meta.info.share"].tolist() == [0.5, 0.5, 1, 1]
    assert rows["meta.level"].tolist() == [5, 5, pd.NA, pd.NA]
    assert rows["meta.most"].tolist() == ["1", "1", f"{10**400}", f"{10**400}"]
    assert rows["meta.ok"].tolist() == [True, True, False, False]
    assert rows["meta.source"].isna().tolist() == [False, False, True, True]
    assert list(frame(store, "sums", metadata=["ok"]))[-2:] == ["rationale", "meta.ok"]
    with refused():
        frame(store, "sums", metadata=["tags"])
    with refused():
        frame(store, "sums", ["mini", "maxi"])


def test_a_damaged_judgment_is_told(store):
    (trace,) = add(store, [FIRST_ERROR])
    save_judgments(store, evaluator(store).id, [judge(trace, "offline")])
    with store.write() as session:
        session.execute(update(JudgmentRow).values(scores=b"\0" * 24))
    with refused(DamagedError):
        frame(store, "sums")
