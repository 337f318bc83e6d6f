"""Judgments as events of OpenTelemetry."""

import json

import pandas as pd

from stepsight.storage.database.store import Store
from stepsight.storage.exports.evaluation_events import event_parts
from stepsight.storage.exports.frames import judgment_frames
from stepsight.storage.judgments.judgments import save_judgments
from tests.storage.samples import add, evaluator, judge


def events(frames: list[pd.DataFrame]) -> list[dict]:
    """The attributes of all events, by their names."""
    found = []
    for part in event_parts(frames):
        (logs,) = json.loads(part)["resourceLogs"]
        for record in logs["scopeLogs"][0]["logRecords"]:
            assert record["eventName"] == "gen_ai.evaluation.result"
            found.append({one["key"]: next(iter(one["value"].values())) for one in record["attributes"]})
    return found


def test_an_event_is_the_verdict_on_a_step(sqlite_store: Store) -> None:
    stored = add(sqlite_store)
    save_judgments(sqlite_store, evaluator(sqlite_store).id, (judge(trace, "hindsight") for trace in stored))
    frames = list(judgment_frames(sqlite_store, "sums", [trace.trace_id for trace in stored]))
    rows = pd.concat(frames)
    found = events(frames)
    assert [one["gen_ai.response.id"] for one in found] == list(rows.trace)
    assert [one["stepsight.step"] for one in found] == [str(step) for step in rows.step]
    assert [one["gen_ai.evaluation.score.value"] for one in found] == [round(float(v), 6) for v in rows.validity]
    labels = ["valid" if valid else "invalid" for valid in rows.valid]
    assert [one["gen_ai.evaluation.score.label"] for one in found] == labels
    assert {one["gen_ai.evaluation.name"] for one in found} == {"stepsight.validity"}


def test_a_step_that_is_not_judged_has_no_event_and_words_are_an_explanation() -> None:
    about = {"dataset": "d", "trace": "t", "substep": 1, "evaluator": "e", "fingerprint": "f", "mode": "offline"}
    rows = [
        about | {"step": 1, "validity": None, "valid": None, "rationale": None},
        about | {"step": 2, "validity": float("nan"), "valid": False, "rationale": "2 + 2 is 4."},
    ]
    (found,) = events([pd.DataFrame(rows)])
    assert (found["stepsight.step"], found["gen_ai.evaluation.score.label"]) == ("2", "invalid")
    assert found["gen_ai.evaluation.explanation"] == "2 + 2 is 4."
    assert "gen_ai.evaluation.score.value" not in found
