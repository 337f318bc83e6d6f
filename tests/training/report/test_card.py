"""An evaluator's card: what it adds to a report, and its answers where something is missing."""

import json

import numpy as np
import pytest
from scipy.stats import spearmanr

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import Outputs, StepScores
from stepsight.core.trace import Trace
from stepsight.storage.judgments.evaluators import evaluators_of, find_by_name, register_evaluator
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import find_dataset, iterate_traces, list_datasets
from stepsight.training.report.card import agreement_with_people, make_card
from stepsight.training.report.report import PART_WRITERS
from tests.messages import refused
from tests.storage.labelling.labelled_sums import labelled
from tests.storage.samples import add, evaluator, judge
from tests.training.hand import valid
from tests.training.judged import NAME, fill, measure_stored

DRAWS = 10


def card_of(store, dataset, name):
    one = find_by_name(store, name)
    return make_card(store, measure_stored(store, find_dataset(store, dataset), [one], draws=DRAWS), one)


def tables(card):
    """The rows of every table of the card as JSON, by the end of the table's name."""
    made = json.loads(PART_WRITERS["json"](card))
    prefix = made["title"].rpartition(" on ")[2]
    return {
        table["name"].removeprefix(f"{prefix}-"): table["rows"]
        for section in made["sections"]
        for table in section["tables"]
    }


# The numbers of characters of the steps of four solutions, which of them gold calls wrong, and validities online.
LENGTHS = [(10, 200, 30), (40, 50, 600), (70, 800, 90), (100, 110, 120)]
WRONG = [1, 2, 1, None]
ONLINE = [(0.9, 0.2, 0.3), (0.8, 0.7, 0.6), (0.4, 0.5, 0.95), (0.15, 0.35, 0.1)]


@pytest.fixture
def card(sqlite_store):
    """The card of an evaluator that offline calls longer steps less valid."""
    golds = [["neg" if place == wrong else "pos" for place in range(3)] for wrong in WRONG]
    traces = [
        Trace.of(f"q{number}", ["x" * size for size in sizes], golds[number], id=str(number))
        for number, sizes in enumerate(LENGTHS)
    ]
    one = evaluator(sqlite_store, "guess")
    for trace, sizes, online in zip(add(sqlite_store, traces, "long"), LENGTHS, ONLINE, strict=True):
        for mode, validity in ((Mode.OFFLINE, [1 - size / 1000 for size in sizes]), (Mode.ONLINE, online)):
            scores = StepScores(np.array(valid(*validity), np.float32))
            save_judgments(sqlite_store, one.id, [Judgment(trace, mode, scores)])
    return card_of(sqlite_store, "long", "guess")


def test_how_far_scores_follow_the_length_and_the_place_of_a_step(card):
    offline, online, gold = tables(card)["shortcuts"]
    assert [row["mode"] for row in (offline, online, gold)] == ["offline", "online", ""]
    assert (offline["length"]["value"], offline["length_beyond_gold"]["value"]) == (
        pytest.approx(-1), pytest.approx(-1)
    )  # fmt: skip
    lengths, right = np.ravel(LENGTHS), [place != wrong for wrong in WRONG for place in range(3)]
    assert online["length"]["value"] == pytest.approx(spearmanr(lengths, np.ravel(ONLINE)).statistic)
    assert gold["length"]["value"] == pytest.approx(spearmanr(lengths, right).statistic)
    # The longest step is last in the second and the fourth; online the least valid one is there too.
    assert (offline["last_is_least"]["value"], online["last_is_least"]["value"]) == (0.5, 0.5)
    assert offline["last_by_chance"]["value"] == pytest.approx(1 / 3)
    # Of three errors one is in a last step.
    assert gold["last_is_least"]["value"] == pytest.approx(1 / 3)
    assert offline["length"]["low"] == pytest.approx(-1)


def test_every_format_has_the_same_numbers_and_a_title(card):
    shown = f"{100 * tables(card)['invalid-online'][0]['step_auc']['value']:.1f}"
    for format in ("text", "markdown"):
        assert shown in PART_WRITERS[format](card)
        assert "guess on long" in PART_WRITERS[format](card)


def test_agreement_with_people_is_given_by_mode(sqlite_store):
    labelled(sqlite_store)
    one = evaluator(sqlite_store)
    dataset = find_dataset(sqlite_store, "sums")
    traces = list(iterate_traces(sqlite_store, dataset.id))
    save_judgments(sqlite_store, one.id, [judge(trace, "hindsight", seed) for seed, trace in enumerate(traces)])
    evaluation = measure_stored(sqlite_store, dataset, [one], force=True, draws=DRAWS)
    rows = tables(make_card(sqlite_store, evaluation, one))["people"]
    assert [row["mode"] for row in rows] == ["offline", "online"]
    for row in rows:
        (measured,) = [of for of in evaluation.rows if (of.evaluator, of.mode) == ("mini", row["mode"])][:1]
        (people,) = agreement_with_people(sqlite_store, dataset.id, measured.subject, evaluation.weights)
        assert row == {
            "campaign": people.campaign, "mode": row["mode"], "agreeing": people.agreeing.as_json(),
            "kappa": people.kappa.as_json(), "among_people": people.among_people.as_json(),
            "people": people.people, "n_traces": people.traces, "n_steps": people.steps,
        }  # fmt: skip


def test_an_evaluator_of_whole_solutions_has_a_card_that_says_so(sqlite_store):
    fill(sqlite_store)
    whole = register_evaluator(
        sqlite_store, name="whole", fingerprint="w", format="imported", attention="unknown",
        info={"outputs": Outputs.SOLUTION.value},
    )  # fmt: skip
    made = [Trace.of(label, ["a", "b", "c"], [label, "pos", "pos"], id=label) for label in ("pos", "neg")]
    traces = add(sqlite_store, made, "two")
    none = StepScores(np.zeros((3, 3), np.float32))
    save_judgments(sqlite_store, whole.id, [Judgment(one, Mode.OFFLINE, none, 0.3) for one in traces])
    text = PART_WRITERS["text"](card_of(sqlite_store, "two", "whole"))
    assert "The evaluator gives no scores of steps." in text
    with refused():
        card_of(sqlite_store, NAME, "whole")


def test_a_dataset_without_gold_has_a_card_of_what_needs_none(sqlite_store):
    traces = add(sqlite_store, [Trace.of("q", ["a", "bc"], id=str(number)) for number in range(3)], "bare")
    one = register_evaluator(sqlite_store, name="one", fingerprint="o", format="stepsight", attention="causal")
    save_judgments(sqlite_store, one.id, [judge(trace, "offline", seed) for seed, trace in enumerate(traces)])
    card = card_of(sqlite_store, "bare", "one")
    assert "bare has no gold labels to measure against. What follows needs none." in card.sections[0].contents
    assert "calibration" not in tables(card)


# Of sub-steps, of which the second step of "two" has two. People's majorities are: "two" valid, wrong; "three"
# valid, a tie, valid; "one" valid.
VALIDITY = {"two": [0.9, 0.2, 0.9], "three": [0.4, 0.9, 0.9], "one": [0.8]}


def found(store):
    (dataset,) = list_datasets(store)
    evaluation = measure_stored(store, dataset, evaluators_of(store, dataset.id), force=True, draws=20)
    row = next(row for row in evaluation.rows if not row.is_baseline and row.mode == Mode.OFFLINE)
    return list(agreement_with_people(store, dataset.id, row.subject, evaluation.weights))


def test_verdicts_are_compared_with_the_majority_of_blind_labels(sqlite_store):
    labelled(sqlite_store)
    (dataset,) = list_datasets(sqlite_store)
    one = evaluator(sqlite_store)
    judgments = [
        Judgment(trace, Mode.OFFLINE, StepScores(np.array([[1 - v, 0, v] for v in VALIDITY[trace.id]], np.float32)))
        for trace in iterate_traces(sqlite_store, dataset.id)
        if trace.id in VALIDITY
    ]
    save_judgments(sqlite_store, one.id, judgments)
    (agreement,) = found(sqlite_store)
    # Of five steps with a majority, "three"'s first is judged otherwise.
    assert (agreement.steps, agreement.traces, agreement.people) == (5, 3, 3)
    assert agreement.agreeing.number == pytest.approx(4 / 5)
    # Chance: people say valid 4/5, the evaluator 3/5.
    chance = 4 / 5 * 3 / 5 + 1 / 5 * 2 / 5
    assert agreement.kappa.number == pytest.approx((4 / 5 - chance) / (1 - chance))
    # Equal pairs: 3 + 3 of "two"; 3, 1 and 0 of 0 of "three"; 1 of 1 of "one".
    assert agreement.among_people.number == pytest.approx(11 / 13)
