"""The record of a judgment: its content, reading it back, and its description in the manual."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepsight.core.evaluator_summary import EvaluatorSummary
from stepsight.core.evidence import LeaveOneOut
from stepsight.core.judgment import Judgment, Mode, Usage
from stepsight.core.judgment_record import LONG, WIDE, JudgmentRecord, judgment_record, judgment_table
from stepsight.core.scores import Hindsight, Outputs, StepScores, Thresholds
from stepsight.core.trace import Label, Step, Trace
from tests.messages import refused

DOCS = Path(__file__).parents[2] / "docs"
TRACE = Trace.of("q", ["x", ["y", "z"]], id="t-1")
FIRST = np.array([[0.25, 0.25, 0.5]], np.float32)
SECOND = np.array([[0.125, 0.375, 0.5], [0.75, 0.25, 0.0]], np.float32)
THIRD = np.array([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25], [0.0, 0.125, 0.875]], np.float32)
# neg, then pos, of one that gives validity alone; of one that speaks in words one of them is 1.
VALIDITY = tuple(np.stack([row[:, 0], 0 * row[:, 0], 1 - row[:, 0]], axis=1) for row in (FIRST, SECOND, THIRD))
NEG, NEU, POS, SILENT = [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]


def scores(*rows):
    return StepScores(np.array(rows, np.float32))


def described(outputs):
    return EvaluatorSummary(
        "mini", "f" * 64, "stepsight", "bidirectional", "float32", outputs, 1, None, Thresholds()
    )


def record(judgment, outputs=Outputs.THREE_WAY, *more, **named):
    written: dict[str, Any] = json.loads(
        judgment_record(judgment, described(outputs), *more, **named).model_dump_json()
    )
    return written


WHOLE = Judgment(TRACE, Mode.HINDSIGHT, Hindsight((FIRST, SECOND, THIRD)))


def test_a_record_names_trace_evaluator_mode_and_thresholds():
    found = record(Judgment(TRACE, Mode.ONLINE, StepScores(THIRD)), name="mini (bfloat16)")
    assert {key: value for key, value in found.items() if key != "online"} == {
        "format": "stepsight-judgment", "version": 1, "id": "t-1", "evaluator": "mini (bfloat16)",
        "fingerprint": "f" * 64, "outputs": "three-way", "mode": "online",
        "thresholds": {"validity": 0.5, "redundancy": 0.15}, "offline": None, "hindsight": None,
        "conclusion": None,
        "solution_score": None, "rationale": None, "left_out": None, "spent": None, "created": None, "stale": False,
    }  # fmt: skip


def test_hindsight_holds_the_triangle_and_both_of_its_edges():
    found = record(WHOLE)
    assert found["hindsight"][:2] == [[[0.25, 0.25, 0.5]], [[0.125, 0.375, 0.5], [0.75, 0.25, 0.0]]]
    # validity = neu + pos, redundancy = neu; 0.2 reaches 0.15, and float32 0.1 is not 0.10000000149.
    assert found["offline"]["steps"][0] == {
        "step": 1, "substep": 1, "neg": 0.1, "neu": 0.2, "pos": 0.7, "validity": 0.9, "redundancy": 0.2,
        "spread": None, "valid": True, "redundant": True,
    }  # fmt: skip
    # min(0.9, 0.5, 1) and max(0.2, 0.25, 0.125)
    assert found["offline"]["solution"] == {"validity": 0.5, "redundancy": 0.25, "valid": True, "redundant": True}
    # Step 1 is judged in row 1, both sub-steps of step 2 in row 3.
    assert [step["validity"] for step in found["online"]["steps"]] == [0.75, 0.5, 1.0]
    assert [(step["step"], step["substep"]) for step in found["online"]["steps"]] == [(1, 1), (2, 1), (2, 2)]


def test_thresholds_decide_the_verdicts_and_nothing_else():
    strict, lax = record(WHOLE), record(WHOLE, Outputs.THREE_WAY, Thresholds(0.55, 0.3))
    assert [(step["valid"], step["redundant"]) for step in lax["offline"]["steps"]] == [
        (True, False), (False, False), (True, False),
    ]  # fmt: skip
    assert lax["offline"]["solution"] == {"validity": 0.5, "redundancy": 0.25, "valid": False, "redundant": False}
    assert lax["hindsight"] == strict["hindsight"]


def test_validity_alone_leaves_the_rest_null():
    found = record(Judgment(TRACE, Mode.HINDSIGHT, Hindsight(VALIDITY)), Outputs.VALIDITY)
    assert found["thresholds"] == {"validity": 0.5, "redundancy": None}
    assert found["hindsight"] == [[0.75], [0.875, 0.25], [0.9, 0.5, 1.0]]
    step = {key for key, value in found["online"]["steps"][0].items() if value is not None}
    assert step == {"step", "substep", "validity", "valid"}
    assert found["offline"]["solution"] == {"validity": 0.5, "redundancy": None, "valid": True, "redundant": None}


def test_words_are_verdicts_and_no_numbers():
    found = record(Judgment(TRACE, Mode.OFFLINE, scores(POS, NEG, SILENT), 0.0), Outputs.VERDICT, Thresholds(0))
    assert [(step["validity"], step["valid"]) for step in found["offline"]["steps"]] == [
        (None, True), (None, False), (None, None),
    ]  # fmt: skip
    assert found["offline"]["solution"]["valid"] is False
    # A verdict on redundancy says nothing of errors.
    found = record(Judgment(TRACE, Mode.OFFLINE, scores(NEU, POS, POS), 0.0), Outputs.VERDICT)
    assert [step["redundant"] for step in found["offline"]["steps"]] == [True, None, None]
    assert (found["offline"]["solution"]["valid"], found["offline"]["solution"]["redundant"]) == (None, True)


def test_a_silent_sub_step_is_null_and_does_not_make_the_solution_wrong():
    rows = np.array([[0.2, 0.1, 0.7], SILENT, [0, 0, 1]], np.float32)
    found = record(Judgment(TRACE, Mode.OFFLINE, StepScores(rows)))
    assert set(found["offline"]["steps"][1].values()) == {2, 1, None}
    assert found["offline"]["solution"]["validity"] == 0.8


SPREAD = np.array([0.1, 0.02, 0.003], np.float32)
KINDS = [
    (Outputs.THREE_WAY, WHOLE),
    (Outputs.THREE_WAY, Judgment(TRACE, Mode.ONLINE, StepScores(THIRD), None, "Because.", Usage(3, 1, 70, None))),
    (Outputs.THREE_WAY, Judgment(TRACE, Mode.OFFLINE, scores(POS, SILENT, NEU))),
    (Outputs.VALIDITY, Judgment(TRACE, Mode.HINDSIGHT, Hindsight(VALIDITY, SPREAD))),
    (Outputs.VALIDITY, Judgment(TRACE, Mode.OFFLINE, StepScores(VALIDITY[2], SPREAD))),
    (Outputs.VERDICT, Judgment(TRACE, Mode.OFFLINE, scores(POS, NEG, SILENT), 0.0, "Step 2.")),
    (Outputs.VERDICT, Judgment(TRACE, Mode.OFFLINE, scores(NEU, POS, POS), 0.0)),
    (Outputs.CHECKS, Judgment(TRACE, Mode.HINDSIGHT, Hindsight.constant(scores(POS, SILENT, NEG)), 1.0)),
    (Outputs.SOLUTION, Judgment(TRACE, Mode.OFFLINE, scores(SILENT, SILENT, SILENT), -17.0354)),
]


@pytest.mark.parametrize(("outputs", "judgment"), KINDS)
def test_a_record_gives_its_judgment_back(outputs, judgment):
    written = judgment_record(judgment, described(outputs))
    read = JudgmentRecord.model_validate_json(written.model_dump_json())
    assert read == written
    again = read.judgment(TRACE)
    assert (again.mode, again.solution, again.rationale, again.spent) == (
        judgment.mode, judgment.solution, judgment.rationale, judgment.spent,
    )  # fmt: skip
    for ours, theirs in ((again.online, judgment.online), (again.offline, judgment.offline)):
        assert (ours is None) == (theirs is None)
        if ours is not None and theirs is not None:
            np.testing.assert_allclose(ours.probs, theirs.probs, atol=5e-7)
            assert (ours.spread is None) == (theirs.spread is None)
    if judgment.hindsight is not None and again.hindsight is not None:
        np.testing.assert_allclose(again.hindsight.packed, judgment.hindsight.packed, atol=5e-7)
    assert judgment_record(again, described(outputs)) == written


def test_a_stale_judgment_counts_its_sub_steps_as_steps():
    moment = datetime(2026, 3, 1, tzinfo=UTC)
    found = record(Judgment(TRACE, Mode.OFFLINE, StepScores(SECOND), created=moment, stale=True))
    assert [(step["step"], step["substep"]) for step in found["offline"]["steps"]] == [(1, 1), (2, 1)]
    assert (found["created"], found["stale"]) == ("2026-03-01T00:00:00Z", True)


@pytest.mark.parametrize(
    "change",
    [
        {"mode": "online"},
        {"mode": "hindsight"},
        {"mode": "hindsight", "hindsight": [[None], [None, None], [None]]},
        {"neg": 0.3},
        {"substep": 2},
    ],
)
def test_a_record_that_contradicts_itself_is_refused(change):
    written = record(Judgment(TRACE, Mode.OFFLINE, StepScores(THIRD)))
    of_step = change.keys() & written["offline"]["steps"][0].keys()
    (written["offline"]["steps"][0] if of_step else written).update(change)
    with refused():
        JudgmentRecord.model_validate(written).judgment(TRACE)


def test_a_record_of_other_steps_is_refused():
    written = judgment_record(Judgment(TRACE, Mode.OFFLINE, StepScores(THIRD)), described(Outputs.THREE_WAY))
    with refused():
        written.judgment(Trace.of("q", [["x", "y"], "z"], id="other"))


def test_long_and_wide_tables_have_the_same_cells():
    records = [judgment_record(judgment, described(outputs)) for outputs, judgment in KINDS]
    judgments = [dict.fromkeys(Mode if one.mode == Mode.HINDSIGHT else [one.mode], one) for one in records]
    head, *rows = judgment_table(TRACE, judgments, LONG, "sums")
    long = [dict(zip(head, row, strict=True)) for row in rows]
    assert list(long[0]) == list(LONG)
    # Three sub-steps in both modes of a hindsight judgment, in one of any other; one row of the whole.
    assert len(long) == 3 * 6 + 5 * 3 + 1
    head, *rows = judgment_table(TRACE, judgments[:1], WIDE)
    assert set(WIDE) - set(head) == {"dataset", "trace", "gold", "share"}
    for i, row in enumerate(rows):
        wide = dict(zip(head, row, strict=True))
        for mode, cells in (("online", long[i]), ("offline", long[i + 3])):
            assert cells["mode"] == mode
            assert {name: wide.get(name, wide.get(f"{mode}_{name}")) for name in cells if name in head} == {
                name: value for name, value in cells.items() if name in head
            }
            assert wide[f"{mode}_validity"] == cells["validity"]
    # 0.9 - 0.75
    assert long[0]["change"] == 0.15


@pytest.mark.parametrize("outputs", [Outputs.THREE_WAY, Outputs.VALIDITY])
def test_scores_without_a_step_are_read_back(outputs):
    rows = THIRD if outputs == Outputs.THREE_WAY else VALIDITY[2]
    whole = StepScores(rows)
    known = LeaveOneOut.of(whole, {0: rows[1:], 2: rows[:2]})
    written = record(Judgment(TRACE, Mode.OFFLINE, whole), outputs, left_out=known)
    assert [(one["step"], one["substep"]) for one in written["left_out"]] == [(1, 1), (2, 2)]
    assert [one["cells"].index(None) for one in written["left_out"]] == [0, 2]
    found = JudgmentRecord.model_validate(written).left_out_rows()
    assert found.keys() == {0, 2}
    for step, expected in known.rows().items():
        np.testing.assert_allclose(found[step], expected, atol=1e-6)
    # There is nothing to compare with online scores.
    assert record(Judgment(TRACE, Mode.ONLINE, whole), outputs, left_out=known)["left_out"] is None


@pytest.mark.parametrize("change", [{"step": 3}, {"substep": 3}, {"cells": [None, 0.5]}], ids=str)
def test_scores_without_a_step_that_is_not_there_are_refused(change):
    whole = StepScores(THIRD)
    written = record(Judgment(TRACE, Mode.OFFLINE, whole), left_out=LeaveOneOut.of(whole, {0: THIRD[1:]}))
    written["left_out"][0] |= change
    with refused():
        JudgmentRecord.model_validate(written).left_out_rows()


def test_a_trace_without_judgments_has_its_sub_steps_alone():
    steps = (Step(("x",), Label.NEG), Step(("y", "z")))
    head, *rows = judgment_table(Trace("t", "q", steps), [], LONG, "sums")
    assert [row[: head.index("evaluator")] for row in rows] == [
        ["sums", "t", 1, 1, "x", "neg", None],
        ["sums", "t", 2, 1, "y", None, None],
        ["sums", "t", 2, 2, "z", None, None],
    ]  # fmt: skip
    assert {cell for row in rows for cell in row[head.index("evaluator") :]} == {None}


def test_the_schema_in_the_manual_is_that_of_the_record():
    """`python -m tests.core.test_judgment_record` writes it."""
    assert json.loads((DOCS / "judgment-record.schema.json").read_text()) == schema()


def test_the_manual_describes_every_field():
    page = (DOCS / "api.md").read_text()
    models = {"JudgmentRecord": schema(), **schema()["$defs"]}
    rows = [
        f"| `{name}` | {' '.join(field['description'].split())} |"
        for model, one in models.items() if model.endswith("Record") for name, field in one["properties"].items()
    ]  # fmt: skip
    assert [row for row in rows if row not in page] == []


def schema():
    return JudgmentRecord.model_json_schema(mode="serialization")


if __name__ == "__main__":
    (DOCS / "judgment-record.schema.json").write_text(json.dumps(schema(), indent=2) + "\n")
