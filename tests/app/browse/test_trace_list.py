from dataclasses import replace

from stepsight.app.browse.address import Address
from stepsight.app.browse.evaluator_choice import EvaluatorChoice
from stepsight.app.browse.trace_list import comparison_html, list_html, list_orders
from stepsight.core.metrics.first_error import Outcome
from stepsight.core.scores import Outputs
from stepsight.storage.browse.browse import BrowseRow
from stepsight.storage.browse.outcomes import OutcomePairs

ROW = BrowseRow(
    trace_id=7,
    id="one",
    position=0,
    problem="What is $1 + 1$?",
    n_steps=3,
    n_substeps=4,
    first_error=1,
    has_gold=True,
    n_redundant=0,
    group="sums",
    validity=0.25,
    online_validity=0.75,
    offline_validity=0.25,
    change=0.5,
    first_wrong=2,
    mistake="wrong-step",
)


def test_a_list_has_a_row_for_each_trace_with_gold_scores_and_outcome(drawn):
    other = EvaluatorChoice("words", None, judged=True, outputs=Outputs.VERDICT)
    without = replace(ROW, change=None, online_validity=None)
    in_words = replace(ROW, online_validity=None, change=None)
    for title, rows, options, outputs in (
        (
            "each gold and outcome, sorted by validity",
            [
                ROW,
                replace(ROW, change=None, first_error=None, n_steps=1),
                replace(ROW, first_error=None, has_gold=False, mistake=""),
                replace(ROW, first_error=None, n_redundant=2, mistake="false-alarm"),
                replace(ROW, n_redundant=1, mistake="missed", first_wrong=None),
                replace(ROW, online_validity=None, offline_validity=None, mistake="right"),
            ],
            {"sort": "validity", "page": 3},
            Outputs.THREE_WAY,
        ),
        ("one mode, no change, the other way round", [without], {"sort": "-validity"}, Outputs.THREE_WAY),
        (
            "verdicts in words",
            [replace(in_words, validity=value, offline_validity=value) for value in (1.0, 0.0, None)],
            {},
            Outputs.VERDICT,
        ),
        ("numbers", [replace(in_words, validity=0.03544, offline_validity=0.03544)], {}, Outputs.SOLUTION),
        ("nobody has judged", [ROW], {}, None),
        ("compared", [replace(ROW, other=replace(ROW, mistake="missed"))], {}, Outputs.VERDICT),
        ("a hit in the problem", [ROW], {"q": "what"}, None),
        ("a hit in a step", [ROW], {"q": "needle"}, None),
    ):
        steps = {7: (4, "There is a needle here.")} if title == "a hit in a step" else {}
        drawn(list_html(rows, Address(dataset="sums", **options), steps, outputs, other=other), title)


def test_orders_are_those_that_the_evaluator_gives():
    orders = {
        outputs: {name.removeprefix("-") for name, _ in list_orders(outputs, labelled=False)}
        for outputs in (None, *Outputs)
    }
    assert ("doubt", "most doubtful gold first") in list_orders(None, labelled=True)
    always = {"", "position", "error", "steps"}
    assert orders[None] == always
    assert orders[Outputs.THREE_WAY] == orders[Outputs.VERDICT] == always | {"validity", "redundancy", "change"}
    assert orders[Outputs.VALIDITY] == orders[Outputs.SOLUTION] == always | {"validity", "change"}


RIGHT, MISSED, STEP, ALARM = Outcome.RIGHT, Outcome.MISSED, Outcome.WRONG_STEP, Outcome.FALSE_ALARM
NONE = dict.fromkeys(Outcome, 0)
PAIRS = OutcomePairs(
    {
        True: {(RIGHT, RIGHT): 5, (RIGHT, MISSED): 3, (STEP, MISSED): 2},
        False: {(RIGHT, ALARM): 4, (ALARM, ALARM): 1},
    },
    unknown=7,
)
HERE = Address(dataset="sums", evaluator="A", other="B", page=3)


def test_two_evaluators_compared(drawn):
    drawn(comparison_html(PAIRS, HERE, "A", "B"))
    chosen = HERE.changed(mistake="right", other_mistake="wrong")
    drawn(comparison_html(PAIRS, chosen, "A", "B"), "one number is chosen, and forgotten by Close")
    assert comparison_html(None, HERE, "A", "") == ""
