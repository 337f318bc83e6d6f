"""Estimates for a whole campaign from the labels so far, by hand and replayed on MR-MATH."""

import random
from pathlib import Path

import numpy as np
import pytest

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.metrics.labels.sampling import draw, estimate_mean, information
from stepsight.core.scores import StepScores
from stepsight.core.trace import Trace
from stepsight.storage.browse.verdict_columns import read_validities
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.judgments.evaluators import evaluators_of
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.judgments.score_files import import_scores
from stepsight.storage.labelling.results.estimates import estimate
from stepsight.storage.traces.columns import read_trace_columns
from stepsight.storage.traces.imports import import_file
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from tests.storage.labelling.samples import DATASET, campaign, label_all, person, take
from tests.storage.samples import add, evaluator

TRACES = [Trace.of(f"Problem {i}", ["One.", "Two."], id=str(i)) for i in range(24)]
SCORES = {
    "ReasonEval": "reasoneval_mistral-7b_eval_results.json",
    "ReasonEval, WizardMath": "reasoneval_wizardmath-7b-v1.1_eval_results.json",
    "Math-Shepherd": "math-shepherd_mistral-7b_eval_results.json",
}


def judged(trace: Trace, validity: float) -> Judgment:
    rows = np.array([[1 - validity, 0, validity]] * 2, np.float32)
    return Judgment(trace, Mode.OFFLINE, StepScores(rows))


@pytest.mark.parametrize("ordering", ["random", "information", "disagreement"])
def test_estimates_follow_the_labels_of_a_random_sample(store: Store, ordering: str) -> None:
    traces = add(store, TRACES, DATASET)
    one, other = evaluator(store, "one"), evaluator(store, "other")
    save_judgments(store, one.id, [judged(trace, 0.9 if int(trace.id) % 2 else 0.2) for trace in traces])
    save_judgments(store, other.id, [judged(trace, 0.6) for trace in traces[:-1]])
    of = campaign(store, None, ordering=ordering, random_share=0.5)
    nothing = estimate(store, of)
    assert nothing is not None
    assert (nothing.labelled, nothing.total) == (0, 24)
    assert nothing.with_error.reason
    ada = person(store, "ada")
    seen = 0
    while seen < 20:
        task = take(store, of, ada)
        # What the first evaluator says, with one trace on which nobody can decide.
        wrong = int(task.trace.problem.split()[1]) % 2 == 0
        label_all(store, task, ada, ["pos", "neg" if wrong else "pos"] if seen else ["unsure"] * 2)
        seen += 1
    found = estimate(store, of)
    assert found is not None
    assert found.unjudged == ("other",)
    assert list(found.right) == ["one"]
    if ordering == "disagreement":
        # Half of the places at random.
        assert 6 <= found.labelled + found.undecided <= 12
    else:
        assert (found.labelled, found.undecided) == (19, 1)
        assert found.right["one"].number == pytest.approx(1, abs=0.15)
        assert found.with_error.low <= 0.5 <= found.with_error.high


def test_the_order_of_the_file_is_no_sample(sqlite_store: Store) -> None:
    assert estimate(sqlite_store, campaign(sqlite_store)) is None


@pytest.mark.slow
def test_replays_on_mr_math_are_unbiased_and_need_fewer_labels(data: Path, tmp_path: Path) -> None:
    """200 campaigns over MR-MATH-invalid, labelled as gold says, against as many in random order."""
    with open_store(str(tmp_path / "s.db")) as store:
        import_file(store, "mr-math-invalid", data / "mr-math/mr-math_invalid_errors.json", "m")
        for name, file in SCORES.items():
            import_scores(store, "m", data / "mr-math/scores/invalid" / file, name)
        dataset = find_dataset(store, "m")
        with store.read() as session:
            ids = [one.id for one in evaluators_of(store, dataset.id)]
            validities = read_validities(session, dataset.id, ids)[1].astype(np.float64)
            bad = read_trace_columns(session, dataset.id).first_error >= 0
        problems = np.unique([trace.problem for trace in iterate_traces(store, dataset.id)], return_inverse=True)[1]
    total = len(bad)
    right = ((validities >= 0.5) != bad).astype(np.float64)
    clean = validities.mean(axis=0)
    expected = np.where(validities >= 0.5, clean, 1 - clean)
    told = information(validities, np.full(len(ids), 0.5)).tolist()
    flat, none = 1 / np.arange(total, 0, -1), np.full(total, 0.5)

    def replay(seed: int, labels: int, informed: bool) -> list[tuple[float, float]]:
        rng = random.Random(seed)
        if informed:
            order, chances = map(np.array, zip(*draw(told, problems.tolist(), 0.2, rng), strict=True))
        else:
            order, chances = np.array(rng.sample(range(total), total)), flat
        first = order[:labels]
        values = [
            estimate_mean(hits[first], first, chances[:labels], known if informed else none)
            for hits, known in zip(right, expected, strict=True)
        ]
        return [(value.number, value.high - value.low) for value in values]

    informed = np.array([replay(seed, 40, True) for seed in range(200)])
    by_chance = {labels: np.array([replay(seed, labels, False) for seed in range(200)]) for labels in (50, 53)}
    bias = informed[..., 0].mean(axis=0) - right.mean(axis=1)
    assert (np.abs(bias) <= 3 * informed[..., 0].std(axis=0) / 200**0.5).all()
    # 40 labels give no wider intervals than 50 in random order, and no wider spread of the estimates.
    assert informed[..., 1].mean() <= by_chance[50][..., 1].mean()
    assert informed[..., 0].std(axis=0).mean() <= 1.02 * by_chance[50][..., 0].std(axis=0).mean()
