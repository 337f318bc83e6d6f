"""Grading of answers, on those of MATH-500 itself."""

import os
import signal
import threading

import pytest

from stepsight.training.evaluate.grading import Grader
from stepsight.training.experiments.finetuning.math500 import read_problems


@pytest.fixture(scope="module")
def grader():
    with Grader() as opened:
        yield opened


@pytest.mark.slow
def test_every_answer_of_math500_is_right_and_that_of_another_problem_is_not(data, grader):
    answers = [problem.answer for problem in read_problems(data / "math500" / "test.jsonl").items]
    assert len(answers) == 500
    texts = [rf"We find that it is $\boxed{{{answer}}}$." for answer in answers]
    assert sum(grader.grade_all(zip(answers, texts, strict=True))) == 500
    # A tenth is graded against the answer 250 problems further on: only equal ones can be right.
    pairs = [(answers[(place + 250) % 500], place) for place in range(0, 500, 10)]
    right = sum(grader.grade_all((other, texts[place]) for other, place in pairs))
    assert right == sum(other == answers[place] for other, place in pairs) <= 2
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


def test_it_works_in_a_thread():
    found = []

    def grade():
        with Grader() as own:
            found.append(own.grade("2", "The answer is 2."))

    thread = threading.Thread(target=grade)
    thread.start()
    thread.join()
    assert found == [True]


def test_a_slow_text_is_given_up_and_the_next_is_graded():
    # math-verify itself would try the power for five seconds.
    with Grader(seconds=0.5) as impatient:
        impatient.grade("1", "1")
        assert impatient.grade("2", "$9^{9^{9^{9}}}$") is False
        assert impatient.timeouts == 1


def test_a_grader_whose_process_is_gone_starts_another():
    with Grader() as bereft:
        assert bereft.grade("2", "2")
        os.kill(bereft._process.pid, signal.SIGKILL)
        bereft._process.wait()
        assert (bereft.grade("2", "2"), bereft.timeouts) == (False, 1)
        assert bereft.grade("2", "2")
