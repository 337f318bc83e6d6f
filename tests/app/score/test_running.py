"""What is known of a solution while it is judged."""

import csv
import io
import json
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from fastapi.testclient import TestClient

from stepsight.app.score.entered import Entered, PageState
from stepsight.app.score.files import CSV_PATH, JSON_PATH, score_files
from stepsight.app.score.page import ScorePage
from stepsight.app.score.running import EvaluatorScoring, RunningScores
from stepsight.app.scoring.batcher import PendingScore
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import Hindsight, Outputs, StepScores, Thresholds
from stepsight.core.trace import Trace
from stepsight.storage.database.store import open_store
from stepsight.training.evaluate.strength import concluded_record
from tests.app.client import let_in
from tests.app.elements import read
from tests.app.entries import typed
from tests.app.held_up import hold_up
from tests.app.score.test_page import asked
from tests.cases import each

TRACE = Trace.of("What is 1 + 1?", ["Add.", "So 3.", "Check.", "Done."])
VALID, WRONG = [0.1, 0.1, 0.8], [0.9, 0.05, 0.05]


def pending(*rows, outputs=Outputs.THREE_WAY):
    answer = PendingScore()
    answer.steps.update(rows)
    return EvaluatorScoring(outputs, answer)


def shown(**evaluators):
    return read(RunningScores(TRACE, Thresholds(), evaluators).html())


def test_the_first_steps_are_shown_as_far_as_all_before_them_are_judged():
    page = shown(mini=pending((0, VALID), (1, WRONG), (3, WRONG)), other=pending())
    said = [" ".join(one.text.split()) for one in page.all("div", cls="sum")]
    assert said == [
        "evaluator mini Online: 2 of 4 steps judged, 1 not valid",
        "evaluator other Online: 0 of 4 steps judged",
    ]
    assert [mark.one("i")["data-verdict"] for mark in page.all("span", cls="mark")] == ["valid", "not valid"]
    assert [" ".join(item.text.split()) for item in page.one("ul", cls="flagged").all("li")] == ["✕ Step 2 So 3."]


def test_the_time_left_is_estimated_from_the_lengths_of_the_prefixes():
    """Half of the steps have a quarter of the work: three quarters take three times as long, here 300 s."""
    start = time.monotonic() - 99
    running = RunningScores(TRACE, Thresholds(), {"mini": pending((0, VALID), (1, VALID))}, start=start)
    assert read(running.html()).one("div", cls="sum").text.strip().endswith("all valid so far · about 5 min left")


def test_who_is_done_or_has_failed_is_shown_with_all_steps_or_none():
    done, failed = pending(), pending((0, VALID))
    scores = StepScores(np.array([VALID, VALID, WRONG, VALID], np.float32))
    done.judgment.set_result(Judgment(TRACE, Mode.HINDSIGHT, Hindsight.constant(scores)))
    failed.judgment.set_exception(RuntimeError("no memory"))
    page = shown(done=done, failed=failed)
    assert [one["aria-valuenow"] for one in page.all("div", cls="meter")] == ["4", "0"]


def test_nothing_is_shown_until_a_step_is_judged():
    assert RunningScores(TRACE, Thresholds(), {"mini": pending((1, VALID))}).html() == ""


def test_a_failing_equation_is_shown_before_any_step_is_judged():
    trace = Trace.of("What is 1 + 1?", ["So 1 + 1 = 3.", "Done."])
    page = read(RunningScores(trace, Thresholds(), {"mini": pending()}).html())
    assert page.one("p", cls="conclusion").text.startswith("Step 1 is wrong: 1 + 1 is 2, not 3.")
    assert page.one("div", cls="meter")["aria-valuenow"] == "0"
    assert page.all("div", cls="marks") == []


def test_a_page_reads_what_is_known_under_its_key_until_it_has_the_result(tiny, tmp_path):
    evaluators, scorer = hold_up(tiny)
    scorer.known = [np.array(WRONG, np.float32)]
    entered = PageState(problem=TRACE.problem, solution="1. So 3.\n2. Done.", evaluators=("tiny",), run="mine")
    with open_store(str(tmp_path / "store.db")) as store, ThreadPoolExecutor(1) as pool:
        page = ScorePage(store, evaluators)
        result = pool.submit(page.score, entered, asked())
        assert scorer.at_work.wait(30)
        assert read(page.running("mine")["result"]).one("div", cls="meter")["aria-valuenow"] == "1"
        assert page.running("other") == {"result": ""}
        scorer.go.set()
        assert len(read(result.result(30)["result"]).one("ol", cls="steps").all("li")) == 2
        assert page.running("mine") == {"result": ""}


SCORED = Trace.of("What is 2 + 3?", ["=2 + 3", ["So, 5.", '+1 "quoted"\nline']])
FORM = Entered.of(SCORED, ["tiny", "tiny-causal"], Thresholds(0.4, 0.2))


@pytest.fixture(scope="module")
def client(module_store, evaluators):
    return TestClient(let_in(score_files(module_store, evaluators)))


def test_the_json_file_holds_what_the_command_writes(client, evaluators):
    answer = client.get(JSON_PATH, params={"s": FORM.token()})
    assert answer.headers["content-disposition"] == 'attachment; filename="stepsight.json"'
    records = [
        concluded_record(evaluators.judge(name, SCORED), evaluators.about(name), Thresholds(0.4, 0.2), name=name)
        for name in FORM.evaluators
    ]
    assert json.loads(answer.text) == {
        "id": None,
        "problem": SCORED.problem,
        "steps": ["=2 + 3", ["So, 5.", '+1 "quoted"\nline']],
        "judgments": [record.model_dump(mode="json") for record in records],
    }


def test_the_csv_file_has_a_row_per_evaluator_and_sub_step(client, evaluators):
    answer = client.get(CSV_PATH, params={"s": FORM.token()})
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(answer.text.removeprefix("\ufeff"), newline="")))
    assert [(row["evaluator"], row["step"], row["substep"]) for row in rows] == [
        (name, *place) for name in FORM.evaluators for place in (("1", "1"), ("2", "1"), ("2", "2"))
    ]
    # What a spreadsheet would calculate is text; a number below 0 is still a number.
    assert [row["text"] for row in rows[:3]] == ["'=2 + 3", "So, 5.", '\'+1 "quoted"\nline']
    hindsight = evaluators.judge("tiny", SCORED).hindsight
    for i, row in enumerate(rows[:3]):
        assert float(row["online_validity"]) == pytest.approx(hindsight.online.validity[i], abs=1e-6)
        assert float(row["offline_neu"]) == pytest.approx(hindsight.offline.neu[i], abs=1e-6)
        assert float(row["change"]) == pytest.approx(hindsight.retroactive[i], abs=2e-6)
        assert row["online_valid"] == str(float(hindsight.online.validity[i]) >= 0.4)


@each(
    "query, message",
    [
        ({}, "This link is incomplete or was changed."),
        ({"s": FORM.token()[:40]}, "This link is incomplete or was changed."),
        ({"s": typed("", "a", ("tiny",)).token()}, "The problem is empty."),
        ({"s": typed("q", "a", ("gone",)).token()}, "There is no evaluator 'gone'."),
        ({"s": typed("q", "7" * 20_000, ("tiny",)).token()}, "tiny reads at most 1,024."),
    ],
)
@each("path", [JSON_PATH, CSV_PATH])
def test_a_file_for_a_bad_link_is_refused_with_the_reason(client, path, query, message):
    answer = client.get(path, params=query)
    assert answer.status_code == (404 if "gone" in message else 422)
    assert message in answer.json()["error"]
    assert answer.json()["hint"]
