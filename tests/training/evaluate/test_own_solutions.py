"""What the sentence says of word problems that people wrote: right solutions, and wrong ones with a later check.

They were written before anything was scored, and nothing was fitted to them.
"""

from collections import Counter
from pathlib import Path

import pytest

from stepsight import Scorer, load_evaluator
from stepsight.core.evaluators.conclusion import conclude
from stepsight.core.files.jsonl import parse_trace, read_file
from stepsight.core.judgment import Mode
from stepsight.training.evaluate.strength import opinion_of

FILE = Path(__file__).with_name("own_solutions.jsonl")


@pytest.fixture(scope="module")
def concluded():
    scorer = Scorer(load_evaluator("mini-bidir"))
    traces = [parse_trace(row, "own solutions") for _, row in read_file(FILE)]
    evaluator = scorer.evaluator
    return [
        (trace, conclude(trace, [opinion_of(evaluator.name, evaluator.outputs, evaluator.thresholds, [judgment])]))
        for trace, judgment in zip(traces, scorer.score(traces, Mode.HINDSIGHT), strict=True)
    ]


def of_kind(concluded, kind):
    return [(trace, sentence) for trace, sentence in concluded if trace.meta["kind"] == kind]


def test_half_of_them_are_wrong(concluded):
    assert Counter(trace.meta["kind"] for trace, _ in concluded) == {"right": 20, "arithmetic": 14, "set-up": 6}


def test_no_step_of_a_right_solution_is_accused(concluded):
    assert not [sentence.text for _, sentence in of_kind(concluded, "right") if sentence.accuses]


def test_an_error_of_arithmetic_is_named_first(concluded):
    for trace, sentence in of_kind(concluded, "arithmetic"):
        assert sentence.text.startswith(f"Step {trace.first_error + 1} is wrong: ")


def test_an_error_in_the_set_up_that_is_not_seen_is_not_talked_away(concluded):
    for trace, sentence in of_kind(concluded, "set-up"):
        assert "mini-bidir, a demonstration, blames step" in sentence.text or sentence.text == (
            "No step is called wrong. mini-bidir is a demonstration: of the errors in the examples it finds about "
            "half of those that a later step exposes and none of the others."
        ), trace.id
