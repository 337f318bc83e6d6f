import pytest

from stepsight.core.trace import Trace
from stepsight.training.data.mixture import Benchmarks, normalise, problems_of
from stepsight.training.data.sources import open_origin
from stepsight.training.data.sources_config import TraceOrigin
from tests.cases import each
from tests.storage.samples import plain_row, write_lines

SAME = [
    ("What is $2+3$?", "what is 2 + 3"),
    (r"Find $\left( x+1 \right)^2.$", "Find (x+1)^2"),
    (r"\[x = 1\] and \(y\)", "$$x=1$$ and $y$"),
    (r"\dfrac{1}{2} \leq x \neq y", r"\frac12\le x\ne y"),
    (r"10,\!000 or 10{,}000 or $10,000$", "10000 or 10000 or 10,000"),
    (r"It costs \$5.", "It costs 5"),
    (r"a\quad b~c\,d\;e\ f\\g", "abcdefg"),
    (r"\begin{align*}x &= 1 \\ y &= 2\end{align*}", "x=1 y=2"),
    ("a “word” and 'another'", 'a "word" and ‘another’'),
    ("5 − 3", "5 - 3"),
    (r"one-digit \text{numbers}", "One digit numbers"),
    # A backslash and an n: PRMBench has them for line breaks.
    ("Find\\n\\[x\\]\\nwhere\\nIt", "Find x where It"),
    ("$25$, $20$, and $5$", "25, 20 and 5"),
    ("full\u00a0width\uff11", "full width1"),
]


@each("left, right", SAME)
def test_copies_of_a_problem_are_one(left, right):
    assert normalise(left) == normalise(right)


DIFFERENT = [
    ("What is 2+3?", "What is 2-3?"),
    ("It costs 1.5", "It costs 15"),
    ("The point (1, 2)", "The point (12)"),
    ("What is 5!?", "What is 5?"),
    ("What is $f(x)$?", "What is $fx$?"),
    ("x < 2", "x > 2"),
    # Commands of LaTeX that begin with n are no line breaks.
    (r"a \ne b", "a e b"),
    (r"a \nu b", "a u b"),
    (r"a \neq b", "a = b"),
    ("x^2", "x_2"),
    ("7 apples", "8 apples"),
]


@each("left, right", DIFFERENT)
def test_different_problems_are_two(left, right):
    assert normalise(left) != normalise(right)


def test_the_text_that_normalisation_leaves():
    assert normalise(r"Let $x,$ $y > 0.$ Find\[\frac{4}{x} + 1.5y.\]") == "letxy>0findfrac4x+1.5y"
    assert normalise("?") == "?"


LONG = "A farmer has seventeen sheep and buys twice as many goats; how many animals is that?"


def trace(problem, **meta):
    return Trace.of(problem, ["a"], ["pos"], meta=meta)


@pytest.fixture
def benchmarks(tmp_path):
    def benchmarks(*problems):
        """One benchmark for each list of problems."""
        for number, listed in enumerate(problems):
            write_lines(tmp_path / f"{number}.jsonl", [{"problem": problem} for problem in listed])
        origins = [TraceOrigin("problems", path=f"{number}.jsonl") for number in range(len(problems))]
        return Benchmarks(origins, tmp_path)

    return benchmarks


def test_a_trace_overlaps_every_benchmark_that_has_its_problem(benchmarks):
    found = benchmarks(["What is $1+1$?", "Who?"], ["Where?"], ["what is 1 + 1"])
    assert found.overlaps(trace("What is 1+1")) == {0, 2}
    assert found.overlaps(trace("Where")) == {1}
    assert found.overlaps(trace("When?")) == set()
    # Equal problems of a benchmark are counted once.
    assert [record["problems"] for record in benchmarks(["A?", "a ?", "B"]).records] == [2]


def test_a_problem_that_a_trace_was_made_from_overlaps_too(benchmarks):
    found = benchmarks(["What is 1+1?"])
    assert found.overlaps(trace("What is 1+2?", original_question="What is $1+1$?")) == {0}
    assert found.overlaps(trace("What is 1+2?", question="What is $1+1$?")) == {0}
    assert found.overlaps(trace("What is 1+2?", question={"text": 1}, original_question=None)) == set()


@pytest.mark.parametrize(
    ("longer", "same"),
    [
        (f"{LONG} Express your answer as a number.", True),
        (f"{LONG}\\n(You may find it helpful to draw them.)", True),
        # Another number, another expression: another problem.
        (LONG[:-1] + "7", False),
        (f"{LONG} + 4 cows and hens", False),
        ("B" + LONG[1:] + " Express your answer as a number.", False),
    ],
)
def test_words_added_at_the_end_make_no_other_problem(benchmarks, longer, same):
    expected = {0} if same else set()
    assert benchmarks([LONG]).overlaps(trace(longer)) == expected
    assert benchmarks([longer]).overlaps(trace(LONG)) == expected


def test_a_short_beginning_says_nothing(benchmarks):
    assert benchmarks(["Find the value of x"]).overlaps(trace("Find the value of x when twice x is four")) == set()


def test_any_kind_of_traces_can_be_a_benchmark(tmp_path):
    write_lines(tmp_path / "a.jsonl", [plain_row(1), plain_row(1, id=2), plain_row(3)])
    found = Benchmarks([TraceOrigin("jsonl", path="a.jsonl"), TraceOrigin("synthetic", size=3, seed=5)], tmp_path)
    # Two of the three rows have the same problem.
    assert found.records[0]["problems"] == 2
    assert found.overlaps(trace("problem 3")) == {0}
    synthetic = next(iter(open_origin(TraceOrigin("synthetic", size=1, seed=5), tmp_path, "")))
    assert found.overlaps(synthetic) == {1}


def test_prmbench_names_the_problem_that_it_changed(data):
    origin = TraceOrigin("prmbench", path="prmbench/prm800k_train_*_missing_condition.jsonl", skip_bad=True)
    changed = [t for t in open_origin(origin, data, "") if t.problem != t.meta["original_question"]]
    # 110 of 400 rows are changed, and some of those are bad.
    assert 80 < len(changed) <= 110
    for found in changed:
        assert list(problems_of(found)) == [found.problem, found.meta["original_question"], found.meta["question"]]
