import json

import pytest

from stepsight.core.files.json_values import write_json
from stepsight.core.paths import asset
from stepsight.training.experiments.finetuning.results import (
    FILE,
    Printed,
    Result,
    is_paper,
    read_printed,
    read_result,
    read_results,
)
from tests.messages import refused


def result(correct, subset="red", seed=42, scorer="mini-bidir", tokens=10, rows=100):
    problems = {"name": "math500/test.jsonl", "count": len(correct), "sha256": "0"}
    return Result(
        f"{subset}-{seed}",
        tuple(map(bool, correct)),
        (tokens,) * len(correct),
        0,
        0,
        subset,
        scorer,
        rows,
        seed,
        problems,
    )


def test_accuracy_length_and_interval():
    one = Result("m", (True, False, False, False), (4, 5, 6, 7))
    assert (one.accuracy, one.length) == (0.25, 5.5)
    # Wilson with z = 1.96, n = 4, p = 1/4: middle (0.25 + 3.8415 / 8) / (1 + 3.8415 / 4) = 0.3725,
    # half its width 1.96 sqrt(0.25 * 0.75 / 4 + 3.8415 / 64) / (1 + 3.8415 / 4) = 0.3269.
    assert one.interval() == pytest.approx((0.0456, 0.6994), abs=1e-4)
    none = Result("m", (False,) * 500, (1,) * 500)
    # Nothing solved is no proof that nothing can be: up to z^2 / (n + z^2) = 3.8415 / 503.84.
    assert none.interval() == pytest.approx((0.0, 0.00762), abs=1e-5)
    assert Result("m", (True,) * 4, (1,) * 4).interval()[1] == pytest.approx(1.0)


def test_a_result_is_read_as_it_was_written(tmp_path):
    one = result([1, 0, 1])
    write_json(tmp_path / FILE, one.as_json())
    assert read_result(tmp_path / FILE) == one
    for broken in ({"format": "other"}, {"correct": []}, {"tokens": [1]}, {"more": 1}):
        write_json(tmp_path / FILE, one.as_json() | broken)
        with refused():
            read_result(tmp_path / FILE)


def test_results_are_found_however_deep(tmp_path):
    for name, one in (("a/deep", result([1, 0])), ("b", result([0, 0], seed=43))):
        write_json(tmp_path / name / FILE, one.as_json())
    assert {one.seed for one in read_results([tmp_path])} == {42, 43}
    assert len(read_results([tmp_path / "a", tmp_path / "b" / FILE])) == 2
    with refused():
        read_results([tmp_path, tmp_path / "b"])
    with refused():
        read_results([tmp_path / "a", tmp_path / "none"])
    values = result([1, 0], seed=44).as_json()
    values["problems"] = {"name": "others", "count": 2, "sha256": "1"}
    write_json(tmp_path / "c" / FILE, values)
    with refused():
        read_results([tmp_path])


def test_a_random_subset_of_the_paper_belongs_to_the_evaluator_whose_subsets_have_its_size(tmp_path):
    path = asset("reference", "filter-ablation.json")
    assert is_paper(path)
    rows = read_printed(path)
    assert len(rows) == 8
    assert rows[2] == Printed("LLaDA-PRM", "red", 5222, 0.225, 249)
    assert rows[-2:] == [
        Printed("LLaDA-PRM", "random", 5222, 0.191, 271),
        Printed("ReasonEval-WizardMath-V1.1", "random", 4437, 0.202, 272),
    ]
    (tmp_path / "other.json").write_text(json.dumps({"label": "tab:other"}))
    assert not is_paper(tmp_path / "other.json")
    assert not is_paper(tmp_path)
