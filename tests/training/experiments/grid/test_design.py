import json

import pytest

from stepsight.training.data.sources_config import TraceOrigin
from stepsight.training.experiments.grid.design import RunSettings, read_design
from tests.cases import each
from tests.conftest import ROOT
from tests.messages import refused
from tests.training.experiments.grid.toy import TOY, write_toy

CONFIGS = ROOT / "training" / "configs"
MINI = ("grid-mini-as-labelled", "grid-mini-random")


def test_the_cells_are_all_combinations_and_pairs_come_together(tmp_path):
    design = read_design(write_toy(tmp_path, sizes={"a": {}, "b": {"epochs": 2}}, seeds=[1, 2]))
    assert [one.name for one in design.runs()] == [
        "a-24-bidirectional-1", "a-24-causal-1", "a-24-bidirectional-2", "a-24-causal-2",
        "b-24-bidirectional-1", "b-24-causal-1", "b-24-bidirectional-2", "b-24-causal-2",
    ]  # fmt: skip
    assert design.run_named("b-24-causal-2") == RunSettings("b", "24", "causal", 2)
    with refused():
        design.run_named("c")


def test_a_run_has_the_keys_of_its_size_and_data_and_leaves_out_the_tests(tmp_path):
    design = read_design(write_toy(tmp_path, sizes={"a": {}, "b": {"epochs": 2}}))
    config = design.config(RunSettings("b", "24", "causal", 13), "/somewhere")
    assert (config.attention, config.seed, config.epochs, config.tokenizer) == ("causal", 13, 2, "/somewhere")
    assert config.data.sources[0].sample == 24
    assert config.data.benchmarks == (TraceOrigin("synthetic", size=12, seed=4),)
    # Two tests of the same traces, one with a condition, are one benchmark.
    twice = [TOY["tests"][0], {"name": "other", "source": {"kind": "synthetic", "size": 12, "seed": 4, "rho": 0.5}}]
    shared = read_design(write_toy(tmp_path, tests=twice))
    assert shared.config(RunSettings("tiny", "24", "causal", 13)).data.benchmarks == config.data.benchmarks
    # The paper says nothing of leaving them out.
    kept = read_design(write_toy(tmp_path, leave_out_tests=False))
    assert kept.config(RunSettings("tiny", "24", "causal", 13)).data.benchmarks == ()
    other = design.config(RunSettings("b", "24", "bidirectional", 13), "/somewhere")
    assert {name for name in vars(config) if getattr(config, name) != getattr(other, name)} == {"attention"}


def test_the_traces_of_a_test_are_those_that_pass_its_conditions(tmp_path):
    whole, some = (
        read_design(
            write_toy(
                tmp_path, tests=[{"name": "t", "source": {"kind": "synthetic", "size": 40, "seed": 4, "rho": rho}}]
            )
        )
        .tests[0]
        .traces(tmp_path)
        for rho in (0, 0.5)
    )
    # A trace without a single error or detour has one label only.
    assert len(whole) == 40
    assert 0 < len(some) < 40
    assert [trace for trace in whole if trace in some] == some


@pytest.mark.parametrize("name", ["grid", *MINI])
def test_the_shipped_grids_have_54_runs_in_27_pairs(name):
    design = read_design(CONFIGS / f"{name}.yaml")
    runs = list(design.runs())
    # 3 sizes x 3 amounts of data x 3 seeds x 2 masks.
    assert (len(runs), len({(one.size, one.data, one.seed) for one in runs})) == (54, 27)
    assert design.seeds == (13, 42, 7)


def test_the_start_of_a_run_can_depend_on_its_attention(tmp_path):
    base = {key: value for key, value in TOY["base"].items() if key not in ("backbone", "vocabulary")}
    changes = {"base": base | {"init": "first-{mask}"}, "learn_tokenizer": False}
    design = read_design(write_toy(tmp_path, **changes))
    assert [design.config(run).init for run in design.runs()] == ["first-bidirectional", "first-causal"]


@each(
    "changes",
    [
        {"sizes": {}},
        {"seeds": [1, 1]},
        {"sizes": {"a b": {}}},
        {"readings": ["once", "twice"]},
        {"sizes": {"a": {"seed": 3}}},
        {"sizes": {"a": {"epoch": 3}}},
        {"tests": [{"name": "t", "source": {"kind": "synthetic", "size": 5, "seed": 3}}]},
        {"tests": [{"name": "t", "modes": ["hindsight"], "source": {"kind": "synthetic", "size": 5}}]},
    ],
)
def test_an_impossible_design_is_refused_with_its_key(tmp_path, changes):
    with refused():
        read_design(write_toy(tmp_path, **changes))


@each(
    "changes, is_same",
    [
        ({"notes": "Why."}, True),
        ({"tests": [TOY["tests"][0] | {"note": "Why.", "truncation": "as-labelled"}]}, True),
        ({"tests": [TOY["tests"][0] | {"truncation": "random"}]}, False),
        ({"leave_out_tests": False}, False),
        ({"base": TOY["base"] | {"epochs": 2}}, False),
    ],
)
def test_the_identity_is_whatever_results_depend_on(tmp_path, changes, is_same):
    first = read_design(write_toy(tmp_path)).identity()
    assert (read_design(write_toy(tmp_path, **changes)).identity() == first) is is_same


def test_the_traces_of_a_test_can_end_anywhere(tmp_path):
    source = {"kind": "synthetic", "size": 60, "seed": 4}
    tests = [{"name": "whole", "source": source}, {"name": "cut", "source": source, "truncation": "random"}]
    design = read_design(write_toy(tmp_path, tests=tests))
    whole, cut = (held.traces(tmp_path) for held in design.tests)
    kept = [len(trace.steps) for trace in cut]
    assert [trace.steps[:count] for trace, count in zip(whole, kept, strict=True)] == [one.steps for one in cut]
    assert cut == design.tests[1].traces(tmp_path)
    # Every length is as likely: about half of the steps are left.
    assert 0.4 < sum(kept) / sum(len(trace.steps) for trace in whole) < 0.7


def record(steps, generated):
    labelled = [
        {"completions": [{"text": text, "rating": rating}], "chosen_completion": 0} for text, rating in steps
    ]
    question = {"problem": "q", "pre_generated_steps": generated}
    return {"question": question, "label": {"steps": labelled, "finish_reason": "found_error"}}


def test_tests_can_go_on_beyond_their_error(tmp_path):
    steps = [("a", 1), ("b", -1)]
    records = [record(steps, ["a", "b", "c", "d"]), record(steps, ["x", "y", "z"]), record([("a", 1)], ["a"])]
    (tmp_path / "prm.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    test = {"name": "t", "source": {"kind": "prm800k", "path": "prm.jsonl"}, "truncation": "continued"}
    (held,) = read_design(write_toy(tmp_path, tests=[test])).tests
    # The second went another way than the generated solution; the third ends with its labels.
    assert [[step.text for step in trace.steps] for trace in held.traces(tmp_path)] == [["a", "b", "c", "d"], ["a"]]
    (tmp_path / "prm.jsonl").write_text(json.dumps(records[1]) + "\n")
    with refused():
        held.traces(tmp_path)


def test_a_trace_that_occurs_again_has_an_id_of_its_own(tmp_path):
    """Cut in two places it is two traces, which a store keeps apart."""
    source = {"kind": "prm800k", "path": "prm.jsonl"}
    (tmp_path / "prm.jsonl").write_text(2 * (json.dumps(record([("a", 1), ("b", -1)], ["a", "b"])) + "\n"))
    design = read_design(write_toy(tmp_path, tests=[{"name": "t", "source": source, "truncation": "random"}]))
    first, second = design.tests[0].traces(tmp_path)
    assert second.id == f"{first.id} (2)"
