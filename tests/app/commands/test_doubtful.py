"""`stepsight doubtful`: labels that judgments and equations speak against, of a small dataset and of MR-MATH."""

import json

import numpy as np
import pytest

from stepsight.core.metrics.doubtful import doubts
from stepsight.core.trace import Trace
from stepsight.storage.database.store import open_store
from stepsight.storage.judgments.score_files import import_scores
from stepsight.storage.traces.imports import import_file
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.evaluate.doubtful import family_of, rank_labels
from tests.storage.samples import add, write_lines

TRACES = [
    Trace.of(f"Add {n} and 3.", [f"{n} + 3 = {n + 3}.", f"It is {n + 3}."], ["pos", label], str(n))
    for n, label in enumerate(["neg", "pos"] * 25)
]
PUBLISHED = {
    "ReasonEval-Mistral-7B": "reasoneval_mistral-7b_eval_results.json",
    "ReasonEval-WizardMath-7B-V1.1": "reasoneval_wizardmath-7b-v1.1_eval_results.json",
    "Math-Shepherd": "math-shepherd_mistral-7b_eval_results.json",
}
SLIP = Trace.of("Add 7 and 3.", ["7 + 3 = 11.", "It is 11."], ["pos", "neg"], "slip")


def test_a_valid_label_of_a_failing_equation_comes_first(command, sqlite_store, tmp_path):
    add(sqlite_store, [*TRACES, SLIP])
    rows = [{"id": trace.id, "scores": [0.9, 0.9 if trace.steps[1].valid else 0.2]} for trace in TRACES[1:]]
    scores = write_lines(
        tmp_path / "s.json", [*rows, {"id": "0", "scores": [0.9, 0.97]}, {"id": "slip", "scores": [0.9, 0.2]}]
    )
    where = ("--dataset", "sums", "--db", sqlite_store.name)
    assert command("import-scores", "sums", scores, "--evaluator", "PRM", "--mode", "offline", *where[2:])[0] == 0
    out = tmp_path / "doubtful.jsonl"
    code, told, err = command("doubtful", *where, "--list", 2, "--output", out)
    assert (code, err) == (0, "")
    head, first, second = told.splitlines()
    assert head == "The most doubtful of 102 labels of sums, by offline judgments:"
    assert first.endswith("slip: Gold calls step 1 valid: 7 + 3 is 10, not 11.")
    assert second.endswith("0: Gold calls step 2 wrong: PRM gives 0.97.")
    written = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["id"], row["step"], row["gold"]) for row in written[:2]] == [
        ("slip", 1, "valid"),
        ("0", 2, "wrong"),
    ]
    assert len(written) == 102


@pytest.mark.slow
def test_flipped_labels_of_mr_math_are_found(data, tmp_path):
    """Of 5 % of the labels flipped at random, over 200 draws: with the published scores of ReasonEval and
    Math-Shepherd, the mean share among as many most doubtful ones."""
    with open_store(str(tmp_path / "s.db")) as store:
        import_file(store, "mr-math-invalid", data / "mr-math/mr-math_invalid_errors.json", "mr-math-invalid")
        for name, file in PUBLISHED.items():
            import_scores(store, "mr-math-invalid", data / "mr-math/scores/invalid" / file, name)
        labels = rank_labels(store, find_dataset(store, "mr-math-invalid")).labels
    by_name = [{juror.name: value for juror, value in label.validities} for label in labels]
    scores = np.array([[validities[name] for name in PUBLISHED] for validities in by_name])
    failing = np.array([bool(label.finding) for label in labels])
    valid = np.array([label.valid for label in labels], np.int8)
    problem = np.unique([label.trace for label in labels], return_inverse=True)[1]
    rng, count, found = np.random.default_rng(0), round(0.05 * len(labels)), []
    for _ in range(200):
        flipped = rng.choice(len(labels), count, replace=False)
        given = valid.copy()
        given[flipped] ^= 1
        doubt = doubts(scores, failing, given, problem, families=list(map(family_of, PUBLISHED)))
        order = np.lexsort((-doubt, ~(failing & (given == 1))))
        found.append(np.isin(order[:count], flipped).mean())
    assert len(labels) == 729
    assert np.mean(found) >= 0.75
