"""Answers: finding, comparing and grading them, on those of MATH-500 itself too."""

import threading
from dataclasses import replace

import pytest

from stepsight.core.metrics.best_of_n import NO_ANSWER
from stepsight.training.experiments import answers
from stepsight.training.experiments.answers import AnswerComparer, Grader, answer_of, normalised
from stepsight.training.experiments.finetuning.recipe import read_pairs
from tests.cases import each


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


def test_what_hangs_is_wrong_and_the_next_is_graded_even_in_a_thread(monkeypatch):
    monkeypatch.setattr(answers, "_BOUNDS", replace(answers._BOUNDS, patience=2.0))
    verdicts = []

    def grade():
        with Grader() as impatient:
            # math-verify itself would try the power for five seconds.
            for text in ("The answer is 2.", "$9^{9^{9^{9}}}$", "2"):
                verdicts.append(impatient.grade("2", text))
            assert impatient.timeouts == 1

    thread = threading.Thread(target=grade)
    thread.start()
    thread.join()
    assert verdicts == [True, False, True]


@each(
    "answer, expected",
    [
        ("18", "18"),
        (" 18.0. ", "18"),
        ("1,000", "1000"),
        ("1,00", "1,00"),
        ("(1, 2)", "(1,2)"),
        (r"\frac{1}{2}", "1/2"),
        (r"\dfrac12", "1/2"),
        (r"-\frac{2}{4}", "-1/2"),
        ("0.5", "1/2"),
        (".5", "1/2"),
        ("2/4", "1/2"),
        ("1/0", "1/0"),
        ("$18$", "18"),
        (r"\$18", "18"),
        (r"\boxed{\text{Evelyn}}", "Evelyn"),
        (r"\left( 3, \frac{\pi}{2} \right)", r"(3,\frac{\pi}{2})"),
        (r"\leftarrow", r"\leftarrow"),
        (r"x \! + \, 1", "x+1"),
        ("²", "²"),
        ("-", "-"),
        (".", ""),
    ],
)
def test_an_answer_in_its_plainest_form(answer, expected):
    assert normalised(answer) == expected


SAME = [
    ("2 3/4", "2.75"),
    (r"2\frac{3}{4}", "11/4"),
    (r"-2\ \tfrac34", "-2.75"),
    ("2¾", "2.75"),
    ("12\u202f000", "12000"),
    ("40%", "0.4"),
    (r"40\%", "40 percent"),
    (r"\{3, 1\}", r"\{1, 3\}"),
    ("[1, 0.5)", r"[1,\frac12)"),
    ("7 kg", "7"),
    (r"7\text{ kg}", "7 kilograms"),
    ("7 dollars", r"\$7"),
    ("€7", "7 euros"),
    (r"$7^\circ$", "7°"),
    ("7 degrees", r"7^{\circ}"),
    ("{1, 3}", r"\{3, 1\}"),
    ("−7", "-7"),
    (r"7\text{ cm}^2", "7 cm^2"),
    ("1e3", "1,000"),
    ("1.5E-3", "0.0015"),
    ("5 km", "5000 m"),
    (r"1\text{ m}^2", "10000 cm^2"),
    ("90 minutes", "1.5 hours"),
    ("50 cents", "0.5 dollars"),
    ("7 cm²", r"7\text{ cm}^2"),
    ("(−∞, 2) ∪ (3, ∞)", r"(-\infty,2)\cup(3,\infty)"),
    ("√(3)/π¹²", r"\sqrt{3}/\pi^{12}"),
]
OTHER = [
    ("2 3/4", "23/4"),
    ("2 3/4", "5.75"),
    ("2 3", "23"),
    ("2 3", "5"),
    ("7 kg", "7 g"),
    ("7 kg", "8 kg"),
    ("[1,3)", "(1,3)"),
    ("(1,3)", r"\{1,3\}"),
    ("(1,3)", "{1,3}"),
    ("€7", "¥7"),
    ("7°", "7 kg"),
    ("(1,3)", "(3,1)"),
    ("7 cm^2", "7 cm^3"),
    ("7x", "7"),
    ("7 or 8", "7"),
    ("1,5", "1.5"),
    ("5 km", "500 m"),
    ("5 dollars", "5 euros"),
    ("60 min", "1 kg"),
]


@pytest.mark.parametrize("symbolic", [False, True])
def test_answers_are_compared_as_a_reader_would(symbolic, monkeypatch):
    if symbolic:
        pytest.importorskip("math_verify")
    else:
        monkeypatch.setattr(answers, "find_spec", lambda name: None)
    with AnswerComparer() as comparer:
        assert [pair for pair in SAME if not comparer.same(*pair)] == []
        assert [pair for pair in OTHER if comparer.same(*pair) or comparer.same(*reversed(pair))] == []


def test_huge_numbers_take_no_time():
    assert normalised("9" * 5000) == "9" * 5000
    assert normalised("2^{10^{10}}") == "2^{10^{10}}"
    assert normalised("%" * 50_000) == "%" * 50_000
    assert normalised(r"1\text{ a}" * 20_000).startswith("1")


@pytest.mark.parametrize(
    ("solution", "answer"),
    [
        (r"So \boxed{1}, no, \boxed{\frac{1}{2}}.", r"\frac{1}{2}"),
        ("2 + 3 = 5\n#### 5", "5"),
        ("#### 4\n#### 1,000 ", "1,000"),
        (r"\boxed{4} but #### 5", "4"),
        (r"\boxed{4", None),
        (r"\boxed{ }", None),
        ("So 5.", None),
        ("####", None),
    ],
)
def test_the_answer_that_a_solution_ends_in(solution, answer):
    assert answer_of(solution) == answer


def test_answers_in_groups(monkeypatch):
    monkeypatch.setattr(answers, "find_spec", lambda name: None)
    with AnswerComparer() as comparer:
        assert comparer.described == "as texts and numbers"
        assert comparer.groups(["5", None, "6", "5.0", "x+1", r"\frac{10}{2}", "1+x"]) == [
            0, NO_ANSWER, 1, 0, 2, 0, 3,
        ]  # fmt: skip
        assert comparer.same("0.50", "1/2")
        assert not comparer.same("5", "5%")


def test_math_verify_has_the_word_on_what_is_no_number():
    pytest.importorskip("math_verify")
    with AnswerComparer() as answers:
        assert answers.described.startswith("as texts and numbers, else by math-verify ")
        assert answers.groups(["x+1", "2", None, "1+x", r"\sqrt{4}"]) == [0, 1, NO_ANSWER, 0, 1]
        # Two numbers are compared here, whatever it says.
        assert not answers.same("0.3333", "1/3")


def test_two_numbers_ask_nobody():
    with AnswerComparer() as answers:
        assert answers.groups([str(number) for number in range(50)]) == list(range(50))
        assert answers._grader is None or answers._grader._child._process is None
