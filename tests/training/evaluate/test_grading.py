"""Grading of answers, on those of MATH-500 itself."""

import os
import signal
import threading

import pytest

from stepsight.training.evaluate.grading import Grader
from stepsight.training.experiments.finetuning.recipe import read_pairs


@pytest.fixture(scope="module")
def grader():
    with Grader() as opened:
        yield opened


@pytest.mark.slow
def test_every_answer_of_math500_is_right_and_that_of_another_problem_is_not(data, grader):
    answers = [answer for _, answer in read_pairs(data / "math500" / "test.jsonl", "problem", "answer")]
    assert len(answers) == 500
    texts = [rf"We find that it is $\boxed{{{answer}}}$." for answer in answers]
    assert all(map(grader.grade, answers, texts))
    # A tenth is graded against the answer 250 problems further on: only equal ones can be right.
    for place in range(0, 500, 10):
        other = answers[(place + 250) % 500]
        assert grader.grade(other, texts[place]) is (other == answers[place])
    assert grader.timeouts == 0


@pytest.mark.parametrize(
    ("answer", "text", "right"),
    [
        (r"\frac{1}{2}", "So we have 0.5.", True),
        ("18", "She makes 9 * 2 = <<9*2=18>>18 dollars.\nA: 18", True),
        ("18", "She makes 9 * 2 = 18 dollars.\nA: 26", False),
        (r"\text{Evelyn}", r"It is \boxed{\text{Evelyn}}.", True),
        (r"\text{Evelyn}", r"It is \boxed{\text{Briana}}.", False),
        ("2.75", r"So \boxed{2 3/4}.", True),
        ("2 3/4", "It is 2.75.", True),
        ("23/4", r"So \boxed{2 3/4}.", False),
        ("p - q", r"The sum is $p-q$.", True),
        # Outside of LaTeX only numbers are found.
        ("p - q", "The sum is p - q.", False),
        ("9", "", False),
        ("9", r"\boxed{", False),
        ("9", "\x00" * 50, False),
        ("9", "9 " * 2000, True),
    ],
)
def test_the_last_thing_that_looks_like_an_answer_counts(grader, answer, text, right):
    assert grader.grade(answer, text) is right


def test_what_hangs_or_is_killed_is_wrong_and_the_next_is_graded_even_in_a_thread():
    verdicts = []

    def grade():
        with Grader(seconds=2) as impatient:
            verdicts.append(impatient.grade("2", "The answer is 2."))
            # math-verify itself would try the power for five seconds.
            verdicts.append(impatient.grade("2", "$9^{9^{9^{9}}}$"))
            verdicts.append(impatient.grade("2", "2"))
            os.kill(impatient._process.pid, signal.SIGKILL)
            verdicts.append(impatient.grade("2", "2"))
            verdicts.append(impatient.grade("2", "2"))
            assert impatient.timeouts == 2

    thread = threading.Thread(target=grade)
    thread.start()
    thread.join()
    assert verdicts == [True, False, True, False, True]
