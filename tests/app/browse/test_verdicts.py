import numpy as np
import pytest

from stepsight.app.browse.verdicts import first_wrong, outcome_words, verdict_pieces
from stepsight.app.web.step_bars import TraceJudgments
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.label import Label
from stepsight.core.scores import Hindsight, Outputs, StepScores, Thresholds
from stepsight.core.trace import Step, Trace
from tests.app.elements import read
from tests.storage.samples import by_mode

# Two steps, the second of two sub-steps.
TRACE = Trace.of("q", ["x", ["y", "z"]], ["pos", "neg"])
PLAIN = Trace.of("q", ["x", ["y", "z"]])
CLEAN = Trace.of("q", ["x", ["y", "z"]], ["pos", "pos"])
NEG, NEU, POS, NOTHING = [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]


def answer(rows, outputs=Outputs.THREE_WAY, solution=None, trace=TRACE, thresholds=None):
    judgment = Judgment(trace, Mode.OFFLINE, StepScores(np.array(rows, np.float32)), solution)
    return TraceJudgments("it", outputs, thresholds or Thresholds(), by_mode(judgment))


def words(*args, **options):
    found = answer(*args, **options)
    return [read(piece).text for piece in verdict_pieces(found, found.judgments[0].trace)]


def test_an_evaluator_of_steps_has_a_verdict_per_mode_and_a_change():
    # Online 0.8, 0.9, 0.3, offline 0.25, 0.9, 0.3: step 1 falls by 0.55.
    first, second, fallen, third = [0.1, 0, 0.9], [0.2, 0.5, 0.3], [0.75, 0.125, 0.125], [0.7, 0.1, 0.2]
    rows = [np.array(row, np.float32) for row in ([second], [second, first], [fallen, first, third])]
    judgment = Judgment(TRACE, Mode.HINDSIGHT, Hindsight(tuple(rows)))
    found = verdict_pieces(TraceJudgments("it", Outputs.THREE_WAY, Thresholds(), by_mode(judgment)), TRACE)
    assert [read(piece).text for piece in found] == [
        "Online: not valid 0.30 · redundant 0.50, finds the error in step 2",
        "Offline: not valid 0.25, first error at step 1, gold at step 2",
        "moved most by later steps: step 1, −0.55",
    ]


def test_a_change_of_nothing_is_none():
    judgment = Judgment(TRACE, Mode.HINDSIGHT, Hindsight.constant(StepScores(np.array([POS] * 3, np.float32))))
    found = verdict_pieces(TraceJudgments("it", Outputs.THREE_WAY, Thresholds(), by_mode(judgment)), TRACE)
    assert read(found[-1]).text == "moved most by later steps: none"


def test_an_evaluator_of_validity_says_nothing_of_redundancy():
    assert words([[0.4, 0, 0.6], [0.2, 0, 0.8], [0.3, 0, 0.7]], Outputs.VALIDITY) == [
        "Offline: valid 0.60, misses the error in step 2",
        "gives validity only, not redundancy",
    ]


def test_one_number_is_one_number():
    assert words([NOTHING] * 3, Outputs.SOLUTION, 0.0354) == ["score of the solution: 0.0354"]
    assert words([NOTHING] * 3, Outputs.SOLUTION) == ["no verdict on the solution"]


@pytest.mark.parametrize(
    ("rows", "solution", "expected"),
    [
        ([POS, NEG, NEG], 0.0, "wrong from step 2, agrees with gold"),
        ([NEG, NOTHING, NOTHING], 0.0, "wrong from step 1, gold at step 2"),
        ([NEU, NEU, NEU], 0.0, "redundant: steps 1, 2"),
        ([POS, NEU, NEU], 0.0, "redundant: step 2"),
        ([POS, POS, POS], 1.0, "finds no error, misses the error in step 2"),
        ([POS, POS, POS], 0.0, "finds an error, names no step"),
        ([POS, POS, POS], None, "its verdict could not be read"),
    ],
)
def test_a_verdict_is_told_in_words(rows, solution, expected):
    assert words(rows, Outputs.VERDICT, solution) == [expected]


@pytest.mark.parametrize(
    ("rows", "trace", "expected"),
    [
        ([POS, POS, POS], CLEAN, "finds no error, agrees with gold"),
        ([NEG, NOTHING, NOTHING], CLEAN, "wrong from step 1, a false alarm"),
        ([POS, POS, POS], PLAIN, "finds no error"),
        ([NEG, NOTHING, NOTHING], PLAIN, "wrong from step 1"),
        # Of a benchmark of redundant steps: what it finds no error with may be meant of those.
        ([POS, POS, POS], Trace.of("q", ["x", ["y", "z"]], ["pos", "neu"]), "finds no error"),
    ],
)
def test_a_verdict_in_words_beside_other_gold(rows, trace, expected):
    assert words(rows, Outputs.VERDICT, float(rows[0] == POS), trace) == [expected]


def test_silence_on_every_step_is_told():
    assert words([NOTHING] * 3) == ["Offline: no scores for the steps"]


def test_the_first_wrong_step_follows_the_threshold_and_passes_over_silence():
    rows = [[0.4, 0, 0.6], NOTHING, [0.9, 0, 0.1]]
    assert first_wrong(answer(rows), Mode.OFFLINE, TRACE) == 1
    assert first_wrong(answer(rows, thresholds=Thresholds(0.65)), Mode.OFFLINE, TRACE) == 0
    assert first_wrong(answer(rows, thresholds=Thresholds(0.05)), Mode.OFFLINE, TRACE) is None


@pytest.mark.parametrize(
    ("found", "trace", "expected"),
    [
        (1, TRACE, "finds the error in step 2"),
        (0, TRACE, "first error at step 1, gold at step 2"),
        (None, TRACE, "misses the error in step 2"),
        (None, CLEAN, "agrees with gold"),
        (0, CLEAN, "false alarm at step 1"),
        (0, PLAIN, "first wrong step 1"),
        (None, PLAIN, ""),
        # Gold that says nothing of some step does not say that there is no error.
        (None, Trace("", "q", (Step(("x",), Label.POS), Step(("y",)))), ""),
    ],
)
def test_an_outcome_in_words(found, trace, expected):
    assert outcome_words(found, trace) == expected


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([NOTHING, NOTHING, NOTHING], "nothing to check"),
        ([POS, NOTHING, NOTHING], "every equation that it can check holds, in 1 of 2 steps"),
        ([NOTHING, POS, NEG], "wrong in step 2, agrees with gold"),
        ([NEG, NOTHING, NOTHING], "wrong in step 1, gold at step 2"),
    ],
)
def test_checks_say_what_fails_and_how_much_was_checked(rows, said):
    assert words(rows, Outputs.CHECKS) == [said]
