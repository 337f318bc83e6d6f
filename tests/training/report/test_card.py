"""An evaluator's card: every number once more by `recomputed`, and its answers where something is missing."""

import json
import shutil

import numpy as np
import pytest

import stepsight
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import Outputs, StepScores
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from stepsight.storage.database.store import open_store
from stepsight.storage.judgments.evaluators import find_by_name, register_evaluator, register_loaded
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.evaluate.gallery import read_gallery
from stepsight.training.report.card import make_card, measure_card
from stepsight.training.report.report import PART_WRITERS
from tests.messages import refused
from tests.storage.labelling.samples import campaign, label_all, people, take
from tests.storage.samples import add, judge
from tests.training.judged import NAME, fill, measure_stored
from tests.training.report.recomputed import Recomputed

DRAWS = 10


@pytest.fixture(scope="module")
def made(sqlite_template, tmp_path_factory):
    """The card of an evaluator that judged sixty traces at random, and its judgments to compute it again."""
    path = shutil.copy(sqlite_template, tmp_path_factory.mktemp("card") / "store.db")
    with open_store(str(path)) as store:
        yield filled(store)


def filled(store):
    rng = np.random.default_rng(7)
    traces = []
    for number in range(60):
        count = int(rng.integers(1, 6))
        labels = rng.choice(["pos", "neu", "neg"], count, p=[0.6, 0.15, 0.25])
        steps = ["x" * int(rng.integers(1, 900)) for _ in range(count)]
        traces.append(Trace.of(f"q{number}", steps, [str(one) for one in labels], id=f"t{number}"))
    stored = add(store, traces, dataset="random")
    one = register_evaluator(
        store, name="guess", fingerprint="g1", format="stepsight", attention="bidirectional", info={"parameters": 1}
    )
    save_judgments(store, one.id, [judge(trace, "hindsight", seed) for seed, trace in enumerate(stored)])
    evaluation = measure_stored(store, find_dataset(store, "random"), [one], draws=DRAWS)
    card = make_card(store, evaluation, one)
    frame = stepsight.frame(store, "random", ["guess"], metadata=False)
    texts = {(trace.id, place): step.text for trace in stored for place, step in enumerate(trace.steps, start=1)}
    modes = {mode: Recomputed(frame[frame["mode"] == mode], texts, DRAWS) for mode in ("online", "offline")}
    return card, modes


def tables(card):
    """The rows of every table of the card as JSON, by the end of the table's name."""
    made = json.loads(PART_WRITERS["json"](card))
    prefix = made["title"].rpartition(" on ")[2]
    return {
        table["name"].removeprefix(f"{prefix}-"): table["rows"]
        for section in made["sections"]
        for table in section["tables"]
    }


def same(cell, expected):
    """Whether a cell has the number, or the number with its interval, that was computed again."""
    number, *ends = expected if isinstance(expected, tuple) else (expected,)
    found = [cell["value"], *([cell["low"], cell["high"]] if ends else [])]
    assert found == pytest.approx([number, *ends], abs=1e-9), cell


def baseline(name, one):
    """The validity that a baseline gives."""
    steps = one.steps
    return {
        "baseline:position": lambda: 1 / (1 + (steps.step.astype(float) - 1) / 10),
        "baseline:length": lambda: 1 / (1 + steps.length / 500),
    }[name]()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["online", "offline"])
def test_figures_of_the_evaluator_and_of_baselines_are_those_computed_again(made, mode):
    card, modes = made
    found = tables(card)
    for errors in ("invalid", "redundant"):
        rows = {row["evaluator"]: row for row in found[f"{errors}-{mode}"]}
        values = {}
        for name in ("guess", "baseline:position", "baseline:length"):
            scored = modes[mode] if name == "guess" else modes[mode].scored_as(baseline(name, modes[mode]))
            for key, level in (("sol", "solution"), ("step", "step")):
                values[name] = scored.auc(errors, level)
                same(rows[name][f"{key}_auc"], values[name])
                same(rows[name][f"{key}_f1"], scored.f1(errors, level))
            assert (rows[name]["n_solutions"], rows[name]["n_steps"]) == (
                len(scored.items(errors, "solution")), len(scored.items(errors, "step"))
            )  # fmt: skip
        best = max(rows[name]["step_auc"]["value"] for name in rows if name != "guess")
        assert rows["guess"]["beats_baseline_by"]["value"] == pytest.approx(values["guess"][0] - best, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["online", "offline"])
def test_calibration_first_errors_length_and_place_are_those_computed_again(made, mode):
    card, modes = made
    one = modes[mode]
    found = {
        name: {row["evaluator"]: row for row in rows if row.get("mode") in (mode, "")}
        for name, rows in tables(card).items()
    }
    row = found["calibration"]["guess"]
    same(row["ece"], one.ece())
    same(row["brier"], one.brier())
    row = found["first-errors"]["guess"]
    same(row["first_error_accuracy"], one.first_error_accuracy())
    same(row["processbench_f1"], one.processbench_f1())
    same(row["mr_mcc"], one.matthews())
    row, gold = found["shortcuts"]["guess"], found["shortcuts"]["gold"]
    same(row["length"], one.length(beyond_gold=False))
    same(row["length_beyond_gold"], one.length(beyond_gold=True))
    same(row["last_is_least"], one.last_is_least())
    same(row["last_by_chance"], one.last_by_chance())
    same(gold["length"], one.length_of_gold())
    same(gold["last_is_least"], one.error_is_last())
    row = found["redundancy-outcomes"]["guess"]
    assert (row["right"], row["missed"], row["false-alarm"]) == one.redundancy_outcomes()


def card_of(store, dataset, name):
    evaluator = find_by_name(store, name)
    evaluation = measure_stored(store, find_dataset(store, dataset), [evaluator], draws=DRAWS)
    return make_card(store, evaluation, evaluator)


def test_every_format_has_the_same_numbers_and_a_title(made):
    card, _ = made
    shown = f"{100 * tables(card)['invalid-offline'][0]['step_auc']['value']:.1f}"
    for format in ("text", "markdown"):
        assert shown in PART_WRITERS[format](card)
        assert "guess on random" in PART_WRITERS[format](card)


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


@pytest.fixture(scope="module")
def tested(sqlite_template, tmp_path_factory):
    """The gallery with a real evaluator and labels of three people drawn by chance."""
    path = shutil.copy(sqlite_template, tmp_path_factory.mktemp("tested") / "store.db")
    with open_store(str(path)) as store:
        traces = add(store, read_gallery()[:24], "gallery")
        scorer = Scorer(load_evaluator("mini-bidir"))
        own = register_loaded(store, scorer.evaluator)
        save_judgments(store, own.id, scorer.score(traces, "hindsight"))
        label_at_random(store)
        yield store, measure_card(store, find_dataset(store, "gallery"), own, DRAWS), traces


def label_at_random(store):
    rng = np.random.default_rng(3)
    made = campaign(store, None, dataset="gallery", overlap=3)
    for user in people(store, 3):
        for _ in range(10):
            task = take(store, made, user)
            label_all(
                store, task, user, rng.choice(["pos", "neu", "neg", "unsure"], len(task.trace.steps)).tolist()
            )


@pytest.mark.slow
def test_agreement_with_people_is_that_computed_again(tested):
    store, card, traces = tested
    found = tables(card)
    frame = stepsight.frame(store, "gallery", metadata=False)
    texts = {(trace.id, place): step.text for trace in traces for place, step in enumerate(trace.steps, start=1)}
    labels = stepsight.frame_of(store, labels="first", per_annotator=True)
    for mode in ("online", "offline"):
        own = Recomputed(frame[(frame["mode"] == mode) & (frame.evaluator == "mini-bidir")], texts, DRAWS)
        (row,) = (row for row in found["people"] if row["mode"] == mode)
        agreeing, kappa, among, counts = own.beside_people(labels)
        same(row["agreeing"], agreeing)
        same(row["kappa"], kappa)
        same(row["among_people"], among)
        assert (row["people"], row["n_traces"], row["n_steps"]) == counts
