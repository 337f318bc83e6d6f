"""POST /api/v1/score."""

import csv
import io
import json
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from stepsight.app.browse.trace_file import CSV_PATH as BROWSE_CSV
from stepsight.app.score.files import CSV_PATH as SCORE_CSV
from stepsight.app.score.form import ScoreForm
from stepsight.app.scoring.batcher import Batcher, Places
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.judgment import Mode, judgment_record
from stepsight.core.models.location import EQUATIONS
from stepsight.core.scores import Thresholds
from stepsight.core.trace import Trace
from stepsight.storage.database.store import open_store
from stepsight.storage.exports.frames import frame
from stepsight.storage.judgments.evaluators import Threshold, register_loaded, save_calibration
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import find_dataset
from tests.app.client import asking
from tests.checkpoints import write_actprm
from tests.storage.samples import add

BODY = {"problem": "What is 2 + 3?", "steps": ["2 + 3 = 6.", ["So 6.", "Check: 6 - 3 = 3."]]}
TRACE = Trace.of(BODY["problem"], BODY["steps"])


def post(client, **changes):
    return client.post("/api/v1/score", json=BODY | changes)


@pytest.mark.parametrize("mode", list(Mode))
def test_the_answer_holds_the_scorers_numbers(client, evaluators, mode):
    answer = post(client, mode=mode.value, evaluator="tiny").json()
    scorer = evaluators.scorer("tiny")
    record = judgment_record(scorer.score_one(TRACE, mode), "tiny", Thresholds())
    assert (answer["evaluator"], answer["mode"]) == ("tiny", mode.value)
    assert answer["fingerprint"] == scorer.evaluator.fingerprint
    assert answer["thresholds"] == {"validity": 0.5, "redundancy": 0.15}
    assert [(row["step"], row["substep"]) for row in answer["steps"]] == [(1, 1), (2, 1), (2, 2)]
    for row, said in zip(answer["steps"], record["steps"], strict=True):
        assert {key: row[key] for key in said} == pytest.approx(said, abs=2e-5)
        assert row["valid"] == (row["validity"] >= 0.5)
        assert row["redundant"] == (row["neu"] >= 0.15)
    assert answer["solution"]["validity"] == min(row["validity"] for row in answer["steps"])
    assert answer["solution"]["redundancy"] == max(row["redundancy"] for row in answer["steps"])
    assert answer["solution"]["valid"] == all(row["valid"] for row in answer["steps"])
    assert answer["solution"]["redundant"] == any(row["redundant"] for row in answer["steps"])
    if mode == Mode.HINDSIGHT:
        assert [len(row) for row in answer["hindsight"]] == [1, 2, 3]
        np.testing.assert_allclose(answer["hindsight"][2], record["hindsight"][2], atol=2e-5)
        assert answer["offline"]["steps"] == answer["steps"]
        assert answer["online"]["steps"][2]["pos"] == answer["hindsight"][2][2][2]
    else:
        assert not {"online", "offline", "hindsight"} & answer.keys()


@pytest.mark.parametrize("mode", list(Mode))
def test_what_an_evaluator_does_not_say_is_null(mixed, sqlite_store, mode):
    with asking(sqlite_store, mixed) as client:
        answer = post(client, mode=mode.value, evaluator="math-shepherd").json()
        described = client.get("/api/v1/openapi.json").json()["components"]["schemas"]
        listed = {info["name"]: info for info in client.get("/api/v1/evaluators").json()}
    said = mixed.scorer("math-shepherd").score_one(TRACE).hindsight
    assert (answer["outputs"], answer["thresholds"]) == ("validity", {"validity": 0.5, "redundancy": None})
    views = [answer, *(answer[key] for key in ("online", "offline") if key in answer)]
    assert len(views) == (3 if mode == Mode.HINDSIGHT else 1)
    for view in views:
        found = [step["validity"] for step in view["steps"]]
        assert found == pytest.approx(said.offline.validity.tolist(), abs=2e-5)
        assert [step["valid"] for step in view["steps"]] == [step["validity"] >= 0.5 for step in view["steps"]]
        for step in view["steps"]:
            assert [step[name] for name in ("neg", "neu", "pos", "redundancy", "redundant")] == [None] * 5
        assert view["solution"] == {
            "validity": min(step["validity"] for step in view["steps"]),
            "redundancy": None,
            "valid": all(step["valid"] for step in view["steps"]),
            "redundant": None,
        }
    if mode == Mode.HINDSIGHT:
        assert [len(row) for row in answer["hindsight"]] == [1, 2, 3]
        assert answer["hindsight"][2] == [step["validity"] for step in answer["steps"]]
    for name in ("SubstepScores", "SolutionScores", "Limits"):
        assert "gives validity only" in described[name]["properties"]["redundancy"]["description"]
    assert {name: (one["outputs"], one["dtype"]) for name, one in listed.items()} == {
        "tiny": ("three-way", "float32"), "math-shepherd": ("validity", "float32"), "two": ("validity", "float32"),
    }  # fmt: skip


def test_the_first_evaluator_and_offline_are_meant_where_nothing_is_said(client):
    answer = post(client).json()
    assert (answer["evaluator"], answer["mode"]) == ("tiny", "offline")


def test_the_verdicts_are_at_the_thresholds_in_force(evaluators, tmp_path):
    with open_store(str(tmp_path / "store.db")) as store:
        add(store)
        dataset = find_dataset(store, "sums")
        row = evaluators.register(store, "tiny")
        save_calibration(store, row.id, dataset, Threshold.VALIDITY, 0.999, {})
        with asking(store, evaluators) as client:
            answer = post(client).json()
    assert answer["thresholds"] == {"validity": 0.999, "redundancy": 0.15}
    assert not any(step["valid"] for step in answer["steps"])


def test_fifty_at_once_get_what_each_would_get_alone(client, evaluators):
    bodies = [BODY | {"problem": f"What is {n} + 3?", "mode": list(Mode)[n % 3]} for n in range(50)]
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda body: client.post("/api/v1/score", json=body), bodies))
    assert {answer.status_code for answer in answers} == {200}
    for n in (0, 1, 2, 49):
        alone = evaluators.scorer("tiny").score_one(
            Trace.of(bodies[n]["problem"], BODY["steps"]), bodies[n]["mode"]
        )
        said = judgment_record(alone, "tiny", Thresholds())["steps"]
        got = [row["validity"] for row in answers[n].json()["steps"]]
        assert got == pytest.approx([row["validity"] for row in said], abs=2e-5)


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        ({"evaluator": "big"}, 404, "There is no evaluator 'big'"),
        ({"mode": "later"}, 422, "mode: Input should be 'offline', 'online' or 'hindsight', found 'later'"),
        ({"problem": " "}, 422, "the problem is empty"),
        ({"problem": 3}, 422, "problem: Input should be a valid string, found 3"),
        ({"steps": []}, 422, "steps: List should have at least 1 item"),
        ({"steps": ["a", ""]}, 422, "step 2 is empty"),
        ({"steps": ["a", []]}, 422, "step 2 is empty"),
        ({"steps": ["\x00"]}, 422, "step 1 holds a NUL byte"),
        ({"steps": ["a"] * 1001}, 422, "at most 1000 items"),
        ({"step": ["a"]}, 422, "step: Extra inputs are not permitted"),
        ({"steps": ["7" * 20_000]}, 422, "the trace has 20,0"),
        ({"steps": ["7" * 1_100_000]}, 413, "larger than 1,000,000 bytes"),
    ],
    ids=str,
)
def test_bad_input_is_told_with_its_reason(client, change, status, said):
    response = post(client, **change)
    assert response.status_code == status
    assert said in response.json()["error"]
    assert set(response.json()) == {"error", "hint"}
    assert response.json()["hint"]


def test_a_trace_too_long_names_its_tokens_and_the_limit(client):
    response = post(client, steps=["7" * 20_000])
    assert "tiny reads at most 1,024" in response.json()["error"]


@pytest.mark.parametrize(
    ("content", "headers", "said"),
    [
        (b"{", {"content-type": "application/json"}, "JSON decode error"),
        (b"[1]", {"content-type": "application/json"}, "valid dictionary"),
        (json.dumps(BODY).encode(), {}, "The body was not sent as JSON"),
        (b'{"problem": "\\ud800", "steps": ["a"]}', {"content-type": "application/json"}, ""),
    ],
)
def test_what_is_no_json_is_told(client, content, headers, said):
    response = client.post("/api/v1/score", content=content, headers=headers)
    assert response.status_code == 422
    assert said in response.json()["error"]


def test_a_full_queue_says_when_to_come_again(evaluators, tmp_path, monkeypatch):
    """One trace is at work, four may wait, half of them of one client: of its nine, the line takes two."""
    scorer = evaluators.scorer("tiny")
    at_work, go = threading.Event(), threading.Event()

    class Slow:
        evaluator = scorer.evaluator

        tokens = scorer.tokens

        def score_encoded(self, traces, mode, check):
            at_work.set()
            go.wait(30)
            return scorer.score_encoded(traces, mode, check)

    monkeypatch.setitem(
        evaluators._batchers, "tiny", Batcher(Slow(), Places(threading.Lock(), threading.Lock()), most=4)
    )
    with (
        open_store(str(tmp_path / "store.db")) as store,
        asking(store, evaluators) as client,
        ThreadPoolExecutor(10) as pool,
    ):
        first = pool.submit(post, client, problem="q first")
        assert at_work.wait(30)
        others = [pool.submit(post, client, problem=f"q {n}") for n in range(9)]
        refused = [future.result() for future in islice(as_completed(others, timeout=30), 7)]
        go.set()
        answers = [first.result(), *(other.result() for other in others)]
    assert sorted(answer.status_code for answer in answers) == [200] * 3 + [429] * 7
    for answer in refused:
        assert int(answer.headers["retry-after"]) >= 1
        assert "too many traces waiting" in answer.json()["error"]


def test_an_evaluator_in_words_gives_verdicts_and_no_numbers(filled, tiny):
    with asking(filled, Evaluators([tiny, EQUATIONS], shipped=False)) as client:
        _check_words(client)


def _check_words(client):
    answer = post(client, evaluator="equations", mode="hindsight").json()
    assert (answer["outputs"], answer["rationale"]) == ("checks", "Step 1: 2 + 3 = 6: is 5.")
    assert [row["valid"] for row in answer["steps"]] == [False, True, True]
    assert {row["validity"] for row in answer["steps"]} == {None}
    assert answer["solution"] == {"validity": None, "redundancy": None, "valid": False, "redundant": None}
    assert "hindsight" not in answer
    silent = post(client, evaluator="equations", steps=["It is so."]).json()
    assert (silent["steps"][0]["valid"], silent["solution"]["valid"]) == (None, None)


def test_the_spread_of_an_ensemble_is_wherever_its_scores_are(sqlite_store, tmp_path):
    write_actprm(tmp_path / "ActPRM", max_position_embeddings=1024)
    evaluators = Evaluators([tmp_path / "ActPRM"], shipped=False)
    trace = add(sqlite_store)[0]
    judged = evaluators.judge("ActPRM", trace)
    spread = judged.hindsight.spread.tolist()
    assert min(spread) > 0
    evaluator = register_loaded(sqlite_store, evaluators.scorer("ActPRM").evaluator)
    save_judgments(sqlite_store, evaluator.id, [replace(judged, trace=trace)])
    body = {"problem": trace.problem, "steps": [list(step.substeps) for step in trace.steps]}
    form = ScoreForm.of(trace, ["ActPRM"], Thresholds())
    with asking(sqlite_store, evaluators) as client:
        for view in ("steps", "online", "offline"):
            answer = post(client, evaluator="ActPRM", mode="hindsight", **body).json()
            rows = answer["steps"] if view == "steps" else answer[view]["steps"]
            assert [row["spread"] for row in rows] == pytest.approx(spread, abs=1e-5)
        (stored,) = client.get(f"/api/v1/traces/{trace.trace_id}").json()["judgments"]
        assert stored["spread"] == pytest.approx(spread, abs=1e-5)
        for path, query in (
            (BROWSE_CSV, {"trace": trace.trace_id, "evaluator": "ActPRM"}),
            (SCORE_CSV, {"s": form.token()}),
        ):
            rows = list(csv.DictReader(io.StringIO(client.get(path, params=query).text)))
            names = [name for name in rows[0] if name.endswith("spread")]
            found = [float(row[names[-1]]) for row in rows]
            assert found[-len(spread) :] == pytest.approx(spread, abs=1e-5)
        page = client.get("/browse", params={"trace": trace.trace_id, "evaluator": "ActPRM"}).text
        assert page.count('<b class="spread"') == 2 * len(spread)
        assert "a line across a bar" in page
    rows = frame(sqlite_store, trace.dataset, substeps=True)
    assert rows.spread.tolist() == pytest.approx([*spread, *spread], abs=1e-5)
