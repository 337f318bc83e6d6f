"""What is known of a solution while it is judged."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from stepsight.app.score.page import ScorePage
from stepsight.app.score.running import EvaluatorScoring, RunningScores
from stepsight.app.scoring.fair_queue import PendingScore
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import Hindsight, Outputs, StepScores, Thresholds
from stepsight.core.trace import Trace
from stepsight.storage.database.store import open_store
from tests.app.elements import read
from tests.app.held_up import hold_up
from tests.app.score.test_page import asked

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
    entered = {"problem": TRACE.problem, "solution": "1. So 3.\n2. Done.", "evaluators": ["tiny"], "run": "mine"}
    with open_store(str(tmp_path / "store.db")) as store, ThreadPoolExecutor(1) as pool:
        page = ScorePage(store, evaluators)
        result = pool.submit(page.score, entered, asked())
        assert scorer.at_work.wait(30)
        assert read(page.running("mine")["result"]).one("div", cls="meter")["aria-valuenow"] == "1"
        assert page.running("other") == {"result": ""}
        scorer.go.set()
        assert len(read(result.result(30)["result"]).one("ol", cls="steps").all("li")) == 2
        assert page.running("mine") == {"result": ""}
