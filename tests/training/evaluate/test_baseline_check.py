"""Whether evaluators tell more than the best trivial baseline."""

import random

import pytest

from stepsight.core.equations.evaluator import EquationsEvaluator
from stepsight.core.judgment import Mode
from stepsight.core.metrics.reasoneval import Errors
from stepsight.core.trace import Step, Trace
from stepsight.storage.judgments.evaluators import register_loaded
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.evaluate.baseline_check import check_baselines
from stepsight.training.evaluate.evaluation import FEWEST
from tests.storage.samples import add, evaluator
from tests.training.hand import say, traces, valid

DRAWS = 200


def labelled(count):
    """Of each trace one of two steps is wrong, the first as often as the second."""
    return {str(i): ["neg", "pos"] if i % 2 else ["pos", "neg"] for i in range(count)}


def judged(store, name, count=40, right=1.0):
    """An evaluator that is right of so large a part of the traces, and of the others wrong."""
    golds = labelled(count)
    stored = add(store, traces(golds), dataset=name)
    row, rng = evaluator(store, name), random.Random(1)
    said = {}
    for id, labels in golds.items():
        low = "neg" if rng.random() < right else "pos"
        said[id] = valid(*[0.1 if label == low else 0.9 for label in labels])
    say(store, stored, row.id, said)
    return row


def check(store, name, row, mode=Mode.OFFLINE):
    return check_baselines(store, find_dataset(store, name), row, mode, draws=DRAWS)


@pytest.mark.parametrize(("right", "clears"), [(1.0, True), (0.5, False)])
def test_one_that_knows_the_errors_clears_the_baselines_and_one_that_guesses_does_not(sqlite_store, right, clears):
    found = check(sqlite_store, "many", judged(sqlite_store, "many", right=right))
    assert found
    shown = (found.clears, found.figure, found.mode, found.errors)
    assert shown == (clears, "step_auc", Mode.OFFLINE, Errors.INVALID)
    assert found.baseline.startswith("baseline:")


def test_nothing_is_told_where_there_are_too_few_labels(sqlite_store):
    # Steps behind an error do not count: right ones are half as many as there are traces.
    few, enough = (judged(sqlite_store, f"of {count}", count, 0.5) for count in (2 * FEWEST - 2, 2 * FEWEST))
    assert check(sqlite_store, f"of {2 * FEWEST - 2}", few) is None
    assert check(sqlite_store, f"of {2 * FEWEST}", enough) is not None


def test_nothing_is_told_of_what_was_not_judged_or_has_no_gold(sqlite_store):
    row = judged(sqlite_store, "many")
    assert check(sqlite_store, "many", row, Mode.ONLINE) is None
    golds = {str(i): [None, None] for i in range(40)}
    stored = add(sqlite_store, traces(golds), dataset="plain")
    say(sqlite_store, stored, row.id, {id: valid(0.1, 0.9) for id in golds})
    assert check(sqlite_store, "plain", row) is None


def test_traces_that_stop_at_their_error_are_told_of_online(sqlite_store):
    golds = {str(i): ["pos", "neg"] if i % 2 else ["pos", "pos"] for i in range(60)}
    stored = add(sqlite_store, traces(golds), dataset="cut")
    row = evaluator(sqlite_store, "one")
    said = {id: valid(0.9, 0.1 if "neg" in labels else 0.8) for id, labels in golds.items()}
    for mode in (Mode.ONLINE, Mode.OFFLINE):
        say(sqlite_store, stored, row.id, said, mode)
    found = check(sqlite_store, "cut", row)
    assert found is not None
    assert (found.mode, found.clears) == (Mode.ONLINE, True)


def test_one_that_checks_equations_is_held_against_the_baselines_where_it_speaks(sqlite_store):
    """Every step with an equation that fails is wrong, and steps without one are left out for all."""
    made = [
        Trace(
            str(i),
            "Add.",
            (
                Step(("It begins.",), valid=True),
                Step((f"{i} + 1 = {i + 1}",), valid=True),
                Step((f"{i} + 2 = {i + (2 if i % 2 else 3)}",), valid=bool(i % 2)),
                Step(("A long step that says nothing at all.",), valid=bool(i % 2)),
            ),
        )
        for i in range(60)
    ]
    stored = add(sqlite_store, made, dataset="sums")
    checks = EquationsEvaluator()
    row = register_loaded(sqlite_store, checks)
    save_judgments(sqlite_store, row.id, [checks.judge(one, Mode.HINDSIGHT) for one in stored])
    found = check(sqlite_store, "sums", row)
    assert found is not None
    # All that it says is right; a baseline that calls every one of these steps right has F1 0 of the wrong ones.
    assert (found.figure, found.value, found.clears) == ("step_f1", 1.0, True)
    assert 0.4 < found.difference.number < 1
