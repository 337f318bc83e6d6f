"""Evaluations of small stores; their figures are those of `tests.training.hand`."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.metrics.binary import McNemar
from stepsight.core.metrics.bootstrap import Value
from stepsight.core.metrics.figures import PROTOCOL
from stepsight.core.metrics.reasoneval import Errors, Level
from stepsight.core.metrics.shortcuts import ALL, BASELINES
from stepsight.core.metrics.table import build_table
from stepsight.core.scores import Hindsight
from stepsight.core.trace import Trace
from stepsight.storage.judgments.columns import read_gold, read_table
from stepsight.storage.judgments.evaluators import Threshold, register_evaluator, save_calibration
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from stepsight.storage.traces.writer import TraceWriter
from stepsight.training.data.transforms import beginning
from stepsight.training.evaluate.evaluation import (
    baseline_tables,
    compare,
    cut_at_random,
)
from stepsight.training.evaluate.judging import with_thresholds
from tests.messages import refused
from tests.storage.samples import SAMPLES, add, evaluator, judge
from tests.training.hand import GOLDS, say, traces, valid
from tests.training.judged import measure_stored

NAMES = list(BASELINES)
DRAWS = 100


@pytest.fixture
def second(sqlite_store, stored):
    """Right of every step, but has not judged C."""
    found = evaluator(sqlite_store, "second")
    say(sqlite_store, stored, found.id, {"A": valid(0.9, 0.2, 0.9), "B": valid(0.8, 0.9), "D": valid(0.1, 0.9)})
    return found


def measure(store, *evaluators, dataset="sums", **options):
    return measure_stored(store, find_dataset(store, dataset), evaluators, draws=DRAWS, **options)


def row(found, name, errors="invalid", mode="offline"):
    (chosen,) = [
        one for one in found.rows if (one.evaluator, one.errors, one.mode) == (name, Errors(errors), Mode(mode))
    ]
    return chosen


def figures(found):
    return [found.measured[name].number for name in ("sol_f1", "sol_auc", "step_f1", "step_auc")]


def test_every_table_has_the_baselines_and_the_evaluator(sqlite_store, first):
    found = measure(sqlite_store, first)
    told = [(str(one.mode), str(one.errors), one.evaluator) for one in found.rows]
    # It has judged offline only.
    of_both = [(mode, errors, name) for mode in ("offline", "online") for name in NAMES for errors in Errors]
    assert told == of_both[:8] + [("offline", str(errors), "first") for errors in Errors] + of_both[8:]
    assert figures(row(found, "first")) == pytest.approx([0.5, 0.75, 0.65, 0.9])
    assert figures(row(found, "first", "redundant")) == pytest.approx([11 / 15, 1.0, (6 / 7 + 0.5) / 2, 6 / 8])
    # What is of no kind of error is told once.
    assert row(found, "first").measured["accuracy"].number == pytest.approx(6 / 9)
    assert "accuracy" not in row(found, "first", "redundant").measured
    one = row(found, "first")
    assert (one.n_traces, one.n_solutions, one.n_steps) == (4, 4, 7)
    assert (found.traces, found.warning, found.size) == (4, "", "4 traces")


def test_baselines_by_hand(sqlite_store, stored):
    """Of the last step: every trace ends without an answer, so that A 3, B 2, C 2 and D 2 are called wrong.

    Of the steps that count A 1, B 1, C 1 are rightly called valid, B 2 and C 2 wrongly wrong, A 2 and D 1 wrongly
    valid: F1 6 / (6 + 4) and 0. AUC: valid scores 1, 1, 0, 1, 0 against 1 and 1: six ties, 3 of 10.
    """
    found = measure(sqlite_store)
    assert figures(row(found, "baseline:last-step"))[2:] == pytest.approx([0.3, 0.3])
    # Every step alike: all valid at 0.5, F1 10 / (10 + 2) and 0.
    assert figures(row(found, "baseline:constant"))[2:] == pytest.approx([5 / 12, 0.5])
    # Position: 0 and 1 wrong, 0 1 0 0 1 valid. Against A 2: three beat, two tie; against D 1: three tie, two lose.
    assert figures(row(found, "baseline:position"))[3] == pytest.approx((3 + 1 + 1.5) / 10)


def test_an_evaluator_is_held_against_the_best_baseline(sqlite_store, first):
    found = measure(sqlite_store, first)
    one = row(found, "first")
    best = max(figures(row(found, name))[3] for name in NAMES)
    # That of the position.
    assert (best, one.beats_in) == (pytest.approx(0.55), "step_auc")
    assert one.beats.number == pytest.approx(0.9 - 0.55)
    # Four traces have two steps with an error, and a comparison takes twenty.
    assert one.above_baselines is None
    assert all(row(found, name).above_baselines is None for name in NAMES)
    assert row(found, "baseline:length").beats.reason == "no baseline"


def test_the_difference_to_a_baseline_is_on_the_traces_that_are_judged(sqlite_store, second):
    """On A, B and D alone the position is best, 0, 0, 1 valid against 1 and 0: (2.5 + 1) / 6. It has 1 itself."""
    assert row(measure(sqlite_store, second), "second").beats.number == pytest.approx(1 - 3.5 / 6)


def test_a_paired_difference_is_on_the_traces_of_both(sqlite_store, first, second):
    """On A, B and D: first has A 1, B 1, D 1 right, F1 4 / (4 + 2) and 2 / (2 + 2); second has all right.

    AUC of first: valid 0.9, 0.8, 0.4 against 0.61 and 0.1: 5 of 6. A 2 and B 2 only second has right: p of two
    heads in two throws or as rare, 2 x 0.25. Solutions: first has D right, second all: p the same.
    """
    found = measure(sqlite_store, first, second)
    compared = compare(row(found, "first"), row(found, "second"), found.weights)
    assert compared.n_traces == 3
    differences = {name: value.number for name, value in compared.differences.items()}
    f1 = (2 / 3 + 1 / 2) / 2
    # Solutions of first: A 0.61 wrong, B 0.4 valid, D 0.1 wrong: F1 0 and 2 / (2 + 2).
    assert {name: differences[name] for name in PROTOCOL} == pytest.approx(
        {"step_f1": f1 - 1, "step_auc": 5 / 6 - 1, "sol_f1": 0.25 - 1, "sol_auc": 0.5 - 1}
    )
    # Steps of first: A 2 and B 2 are wrong of 7. First errors: D right, A missed, B a false alarm, so that F1 is 0.
    assert differences["accuracy"] == pytest.approx(5 / 7 - 1)
    assert (differences["first_error_accuracy"], differences["processbench_f1"]) == (0.5 - 1, 0 - 1)
    # Brier of five steps: 0.1^2, 0.61^2, 0.2^2, 0.6^2 and 0.1^2 of first; three 0.1^2 and two 0.2^2 of second.
    assert differences["brier"] == pytest.approx((0.7921 - 0.11) / 5)
    # Only C, which second has not judged, has a neu.
    assert compared.differences.keys() == row(found, "first").measured.keys()
    assert [name for name, value in differences.items() if math.isnan(value)] == ["neu_auc"]
    assert repr(compared.tests) == repr({level: McNemar(0, 2, Value(0.5)) for level in Level})
    shown = compared.as_json()
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown
    assert shown["n_traces"] == 3
    other_way = compare(row(found, "second"), row(found, "first"), found.weights)
    assert other_way.differences["step_f1"].number == pytest.approx(1 - f1)
    assert other_way.differences["step_f1"].low == pytest.approx(-compared.differences["step_f1"].high)


def test_evaluators_that_judged_different_traces_differ_in_undefined_figures(sqlite_store, stored):
    early, late = (evaluator(sqlite_store, name) for name in ("early", "late"))
    say(sqlite_store, stored, early.id, {"A": valid(0.9, 0.2, 0.9)})
    say(sqlite_store, stored, late.id, {"D": valid(0.1, 0.9)})
    found = measure(sqlite_store, early, late)
    compared = compare(row(found, "early"), row(found, "late"), found.weights)
    assert (compared.n_traces, compared.tests) == (0, {})
    assert compared.differences.keys() >= {*PROTOCOL, "ece", "processbench_f1"}
    assert all(value.reason and not value.exists for value in compared.differences.values())


@pytest.fixture
def cut(sqlite_store):
    """An evaluator that has judged traces which stop at their first error, in hindsight."""
    stored = add(sqlite_store, traces({"A": ["pos", "neg"], "B": ["pos", "pos"], "D": ["neg"]}), dataset="cut")
    found = evaluator(sqlite_store, "both")
    save_judgments(sqlite_store, found.id, [judge(trace, "hindsight", 3) for trace in stored])
    return found


def test_offline_is_not_shown_where_traces_stop_at_their_error(sqlite_store, cut):
    for modes in ((Mode.OFFLINE, Mode.ONLINE), (Mode.OFFLINE,)):
        found = measure(sqlite_store, cut, dataset="cut", modes=modes)
        assert {one.mode for one in found.rows} == {Mode.ONLINE}
        assert found.warning.startswith("The traces of cut stop at their first error")
        assert found.as_json()["warning"] == found.warning
        assert row(found, "both", mode="online").n_steps == 5


def test_offline_is_shown_when_forced_with_the_warning(sqlite_store, cut):
    found = measure(sqlite_store, cut, dataset="cut", force=True)
    assert {one.mode for one in found.rows} == {Mode.OFFLINE, Mode.ONLINE}
    assert found.warning
    # What the warning says: A 2 and D 1 are known by the ending, without reading; B ends without an answer too.
    assert figures(row(found, "baseline:last-step"))[3] == pytest.approx((2 * 2 + 2 * 0.5) / 6)


def test_one_class_is_null_with_a_reason(sqlite_store):
    """As in MR-GSM8K's partial file: every solution is wrong, so that steps have two classes and solutions one."""
    stored = add(sqlite_store, traces({"A": ["pos", "neg", "pos"], "D": ["neg", "pos"]}), dataset="wrong")
    judge = evaluator(sqlite_store, "third")
    say(sqlite_store, stored, judge.id, {"A": valid(0.9, 0.2, 0.3), "D": valid(0.4, 0.9)})
    shown = row(measure(sqlite_store, judge, dataset="wrong"), "third").as_json()
    assert (shown["sol_f1"], shown["sol_auc"]) == (None, None)
    # Steps after the first error do not count: A 1 valid, A 2 and D 1 wrong.
    assert (shown["step_f1"], shown["step_auc"], shown["n_steps"]) == (1.0, 1.0, 3)
    assert shown["reasons"]["sol_f1"] == shown["reasons"]["sol_auc"] == "the gold has one class only"  # type: ignore[index]
    assert "NaN" not in json.dumps(shown, allow_nan=False)


def test_a_part_that_tells_of_another_error_has_no_baseline_to_be_held_against(sqlite_store):
    """As in MR-MATH's redundant solutions, some of which are clean: of those alone the gold tells nothing wrong."""
    golds = {"A": ["pos", "pos"], "B": ["pos", "neu"]}
    stored = add(sqlite_store, traces(golds), dataset="redundant")
    judge = evaluator(sqlite_store, "third")
    say(sqlite_store, [one for one in stored if one.id == "A"], judge.id, {"A": valid(0.9, 0.8)})
    found = row(measure(sqlite_store, judge, dataset="redundant"), "third")
    assert (found.n_traces, found.beats.reason) == (1, "no baseline")


def test_a_group_is_measured_as_a_dataset_of_its_own(sqlite_store):
    groups = {"A": "original", "B": "original", "C": "POT", "D": "original"}
    with_groups = [
        type(trace)(trace.id, trace.problem, trace.steps, {"question_type": groups[trace.id]}) for trace in traces()
    ]
    stored = add(sqlite_store, with_groups, dataset="grouped")
    alone = add(sqlite_store, traces({id: GOLDS[id] for id in "ABD"}), dataset="alone")
    one = evaluator(sqlite_store, "one")
    for part in (stored, alone):
        say(sqlite_store, part, one.id)
    found = measure(sqlite_store, one, dataset="grouped", group="original")
    expected = measure(sqlite_store, one, dataset="alone")
    assert (found.traces, found.size) == (3, "3 traces of group original")
    assert found.as_json()["group"] == "original"
    assert len(found.rows) == len(expected.rows) > 8
    for left, right in zip(found.rows, expected.rows, strict=True):
        # To the last draw.
        assert left.as_json() == right.as_json()
    with refused():
        measure(sqlite_store, one, dataset="grouped", group="reversed")
    with refused():
        measure(sqlite_store, one, dataset="alone", group="POT")


def test_thresholds_chosen_elsewhere_are_in_force(sqlite_store, first):
    """From 0.65 on A 2 is found as well (see test_measures)."""
    add(sqlite_store, traces(kind="other"), dataset="other")
    elsewhere = find_dataset(sqlite_store, "other")
    save_calibration(sqlite_store, first.id, elsewhere, Threshold.VALIDITY, 0.65, {})
    one = row(measure(sqlite_store, first), "first")
    assert one.measured["step_f1"].number == pytest.approx((8 / 9 + 4 / 5) / 2)
    assert one.on_thresholds == "thresholds 0.65 and 0.15, chosen on other"
    shown = one.as_json()
    assert shown["thresholds"] == {"validity": 0.65, "redundancy": 0.15}
    assert (shown["calibrated_on"], shown["thresholds_chosen_on_this_dataset"]) == (["other"], False)


def test_thresholds_chosen_here_are_refused_or_marked(sqlite_store, first):
    here = find_dataset(sqlite_store, "sums")
    save_calibration(sqlite_store, first.id, here, Threshold.REDUNDANCY, 0.2, {})
    with refused():
        measure(sqlite_store, first)
    found = measure(sqlite_store, first, force=True)
    for errors in Errors:
        one = row(found, "first", errors)
        assert one.on_thresholds == "thresholds 0.5 and 0.2, chosen on this dataset"
        assert one.as_json()["thresholds_chosen_on_this_dataset"] is True
    assert not any(one.chosen_here for one in found.rows if one.is_baseline)


def test_a_dataset_with_the_same_traces_is_the_same(sqlite_store):
    """Of 100 traces, four others are in the dataset that was calibrated on: more than three in a hundred."""
    many = traces({str(i): ["pos", "neg"] for i in range(200)})
    one = evaluator(sqlite_store, "one")
    for shared, name in ((3, "apart"), (4, "near")):
        stored = add(sqlite_store, many[:100], dataset=f"test-{name}")
        say(sqlite_store, stored, one.id, {trace.id: valid(0.9, 0.2) for trace in stored})
        add(sqlite_store, many[100 - shared : 200], dataset=name)
        save_calibration(sqlite_store, one.id, find_dataset(sqlite_store, name), Threshold.VALIDITY, 0.4, {})
        if name == "apart":
            assert measure(sqlite_store, one, dataset="test-apart").rows
    with refused():
        measure(sqlite_store, one, dataset="test-near")


def benchmark(store, count, kind):
    """A dataset of that importer, every second trace with an error."""
    golds = {str(i): ["pos", "neg"] if i % 2 else ["pos", "pos"] for i in range(count)}
    found = traces(golds)
    with store.write() as session:
        writer = TraceWriter(session, "bench", kind, "test.jsonl")
        writer.add([(f"row {number}", trace) for number, trace in enumerate(found, start=1)])
        writer.finish("test.jsonl", "0" * 64)
    return list(iterate_traces(store, find_dataset(store, "bench").id))


def named(store, name):
    return register_evaluator(store, name=name, fingerprint=name, format="imported", attention="unknown")


def test_published_rows_stand_beside_measured_ones(sqlite_store):
    """Half of 159 solutions are wrong at step 2; the evaluator gives every step 0.9: AUC 0.5, published 85.7."""
    stored = benchmark(sqlite_store, 159, "mr-math-invalid")
    mistral, part, mine = (
        named(sqlite_store, name) for name in ("reasoneval_mistral-7b", "ReasonEval-Llemma", "my")
    )
    for one, chosen in ((mistral, stored), (part, stored[:158]), (mine, stored)):
        say(sqlite_store, chosen, one.id, {trace.id: valid(0.9, 0.9) for trace in chosen})
    found = measure(sqlite_store, mistral, part, mine, dataset="bench", force=True)
    shown = row(found, "reasoneval_mistral-7b").as_json()["published"]
    assert isinstance(shown, dict)
    assert (shown["source"], shown["table"], shown["evaluator"]) == (
        "published",
        "tab:benchmarks",
        "ReasonEval-Mistral",
    )
    assert (shown["step_auc"], shown["differences"]["step_auc"]) == (0.857, pytest.approx(0.5 - 0.857))
    # One that has judged all but a trace, and one of another name, are not the published ones.
    assert row(found, "ReasonEval-Llemma").published is row(found, "my").published is None
    left = [(one["evaluator"], one["mode"]) for one in found.as_json()["published"]]  # type: ignore[attr-defined]
    assert ("ReasonEval-Llemma", "offline") in left
    assert ("LLaDA-PRM", "online") in left
    assert ("ReasonEval-Mistral", "offline") not in left
    assert len(left) == 7
    # Nothing of what is only printed is among the rows, or has an interval.
    assert {one.evaluator for one in found.rows} == {*NAMES, "reasoneval_mistral-7b", "ReasonEval-Llemma", "my"}
    assert not any("intervals" in one for one in found.as_json()["published"])  # type: ignore[attr-defined]


def test_published_figures_of_other_traces_are_not_shown(sqlite_store):
    stored = benchmark(sqlite_store, 20, "mr-math-invalid")
    mistral = named(sqlite_store, "ReasonEval-Mistral")
    say(sqlite_store, stored, mistral.id, {trace.id: valid(0.9, 0.9) for trace in stored})
    found = measure(sqlite_store, mistral, dataset="bench", force=True)
    assert (found.published, row(found, "ReasonEval-Mistral").published) == ((), None)


@pytest.mark.parametrize("mode", [Mode.OFFLINE, Mode.ONLINE])
def test_the_tables_of_the_baselines_are_those_of_their_scores(sqlite_store, mode):
    stored = add(sqlite_store, SAMPLES)
    gold = read_gold(sqlite_store, find_dataset(sqlite_store, "sums"))
    found = baseline_tables(sqlite_store, gold, list(Mode))[mode]
    # Of the samples some have steps of several sub-steps.
    assert [baseline.name for baseline, _ in found] == list(ALL)
    for baseline, table in found:
        expected = build_table((trace, baseline.score(trace, mode)) for trace in stored)
        assert table.ids == expected.ids
        for column in ("trace", "position", "label", "valid", "validity", "redundancy", "probs"):
            np.testing.assert_array_equal(getattr(table, column), getattr(expected, column), err_msg=column)


def test_an_empty_dataset_has_empty_tables(sqlite_store):
    add(sqlite_store, [])
    gold = read_gold(sqlite_store, find_dataset(sqlite_store, "sums"))
    tables = baseline_tables(sqlite_store, gold, [Mode.OFFLINE])[Mode.OFFLINE]
    assert [len(table) for _, table in tables] == [0, 0, 0, 0]


def test_a_threshold_that_was_replaced_does_not_count(sqlite_store):
    """Chosen here, then elsewhere: only what is in force counts. The other threshold has its own origin."""
    add(sqlite_store, traces())
    add(sqlite_store, traces(kind="other"), dataset="other")
    here, elsewhere = (find_dataset(sqlite_store, name) for name in ("sums", "other"))
    one = evaluator(sqlite_store, "one")
    for dataset in (here, elsewhere):
        save_calibration(sqlite_store, one.id, dataset, Threshold.VALIDITY, 0.4, {})
    assert not with_thresholds(sqlite_store, here, one, force=False).chosen_here
    save_calibration(sqlite_store, one.id, here, Threshold.REDUNDANCY, 0.1, {})
    save_calibration(sqlite_store, one.id, elsewhere, Threshold.VALIDITY, 0.4, {})
    assert with_thresholds(sqlite_store, here, one, force=True).chosen_here


def test_traces_cut_at_random_are_those_judged_by_themselves(sqlite_store):
    """What a triangle says of a beginning is what an offline judgment of the beginning alone says."""
    golds = (["pos", "neg", "pos"], ["pos", "neu"], ["pos", "pos", "neu", "pos"], ["neu", "neg"], [None, "pos"])
    made = [
        Trace.of(f"q {n}", [[f"{n} a", "b"], *"cde"][: len(golds[n % 5])], golds[n % 5], id=str(n))
        for n in range(40)
    ]
    whole = add(sqlite_store, made, dataset="whole")
    judged = [judge(trace, Mode.HINDSIGHT, seed) for seed, trace in enumerate(whole)]
    said = evaluator(sqlite_store)
    save_judgments(sqlite_store, said.id, judged)
    cut = cut_at_random(read_gold(sqlite_store, find_dataset(sqlite_store, "whole")), 3)
    assert cut.kept is not None
    assert [beginning(trace, 3, place).steps for place, trace in enumerate(whole)] == [
        trace.steps[:count] for trace, count in zip(whole, cut.kept, strict=True)
    ]
    begun = add(sqlite_store, [beginning(trace, 3, place) for place, trace in enumerate(whole)], dataset="begun")
    rows = []
    for trace, hindsight in zip(begun, judged, strict=True):
        assert isinstance(hindsight.result, Hindsight)
        triangle = Hindsight(hindsight.result.rows[: len(trace.substeps)])
        rows.append(Judgment(trace, Mode.HINDSIGHT, triangle))
    save_judgments(sqlite_store, said.id, rows)
    one = measure_stored(sqlite_store, find_dataset(sqlite_store, "whole"), [said], draws=DRAWS, cut=3)
    other = measure_stored(sqlite_store, find_dataset(sqlite_store, "begun"), [said], draws=DRAWS)
    told = [[row.as_json() for row in found.rows] for found in (one, other)]
    assert len(told[0]) == len(told[1]) > 8
    for first, second in zip(*told, strict=True):
        assert first == second
    assert (one.as_json()["cut"], one.size) == (3, "40 traces, each cut after a step drawn by seed 3")


def test_a_score_of_the_whole_says_nothing_of_a_beginning(sqlite_store):
    (trace,) = add(sqlite_store, [Trace.of("q", ["a", "b"], ["pos", "neg"], id="1")])
    said = evaluator(sqlite_store)
    save_judgments(sqlite_store, said.id, [replace(judge(trace, Mode.HINDSIGHT), solution=0.5)])
    gold = read_gold(sqlite_store, find_dataset(sqlite_store, trace.dataset))
    whole, begun = (read_table(sqlite_store, one, said.id, Mode.OFFLINE) for one in (gold, cut_at_random(gold, 0)))
    assert whole.solution.tolist() == [0.5]
    assert np.isnan(begun.solution).all()


def test_an_offline_judgment_says_nothing_of_a_cut_trace(sqlite_store):
    (trace,) = add(sqlite_store, [Trace.of("q", ["a", "b"], ["pos", "neg"], id="1")])
    said = evaluator(sqlite_store)
    for mode, modes in ((Mode.OFFLINE, set()), (Mode.ONLINE, {Mode.ONLINE})):
        save_judgments(sqlite_store, said.id, [judge(trace, mode)])
        found = measure_stored(sqlite_store, find_dataset(sqlite_store, trace.dataset), [said], draws=DRAWS, cut=0)
        assert {row.mode for row in found.rows if not row.is_baseline} == modes


def test_cut_traces_that_stop_at_their_error_still_give_it_away(sqlite_store):
    dataset = benchmark(sqlite_store, 40, "prm800k")[0].dataset
    found = measure_stored(sqlite_store, find_dataset(sqlite_store, dataset), [], draws=DRAWS, cut=0)
    assert "a step with steps after it is still never wrong" in found.warning
    # It is said, and offline figures are shown all the same.
    assert {row.mode for row in found.rows} == {Mode.OFFLINE, Mode.ONLINE}
