"""The public evaluators as they are shown, and the facts that are not known."""

import json

import pytest

from stepsight.core.errors import UserError
from stepsight.core.hubs import public
from stepsight.core.hubs.checkpoint_files import is_hub_id
from stepsight.core.hubs.public import BenchmarkPart, find_public, public_evaluators, unreadable
from stepsight.core.paths import asset


def test_each_has_a_hub_id_of_its_own_and_small_ones_come_first():
    evaluators = public_evaluators()
    assert len({one.id for one in evaluators}) == len(evaluators) > 30
    assert all(is_hub_id(one.id) for one in evaluators)
    sizes = [one.parameters for one in evaluators]
    assert sizes == sorted(sizes)


def test_figures_have_a_source_and_an_average_of_their_parts():
    for one in public_evaluators():
        if one.processbench:
            mean = sum(one.processbench.of(part) for part in BenchmarkPart) / 4
            # To the digit that is printed.
            assert one.processbench.average == pytest.approx(mean, abs=0.06), one.id
            assert one.processbench.source
        assert one.prmbench is None or one.prmbench.source


def test_one_in_full():
    skywork = find_public("Skywork/Skywork-o1-Open-PRM-Qwen-2.5-1.5B")
    assert (skywork.name, skywork.size, skywork.format) == (
        "Skywork-o1-Open-PRM-Qwen-2.5-1.5B",
        3_090_000_000,
        "value-head",
    )
    assert [skywork.processbench.of(part) for part in BenchmarkPart] == [59.0, 48.0, 19.3, 19.2]
    assert skywork.prmbench.score == 31.7
    assert not skywork.redundancy
    assert find_public("GAIR/ReasonEval-7B").redundancy
    assert find_public("GAIR/ReasonEval-7B").processbench is None
    assert find_public("nobody/nothing") is None


def test_without_its_bytes_two_for_each_parameter_are_taken():
    qwen = find_public("Qwen/Qwen2.5-Math-PRM-7B")
    assert (qwen.bytes, qwen.size) == (None, 14_000_000_000)


def test_a_second_model_counts():
    eurus = find_public("PRIME-RL/EurusPRM-Stage1")
    assert (eurus.all_parameters, eurus.size) == (14 * 10**9, 28 * 10**9)
    # That of its authors' script, 0.5005, is for another coefficient.
    assert eurus.threshold is None


@pytest.mark.parametrize(
    ("repo", "formats", "why"),
    [
        ("Qwen/Qwen2.5-Math-PRM-7B", ["qwen-prm"], ""),
        ("Qwen/Qwen2.5-Math-PRM-7B", ["reasoneval"], "Its format, qwen-prm, cannot be read by this version."),
        ("peiyi9979/math-shepherd-mistral-7b-prm", ["math-shepherd"], ""),
        ("PRIME-RL/EurusPRM-Stage1", ["log-ratio"], ""),
        ("wls04/math_bi7b", ["token-classification"], "It was trained with BidirectionalPRM"),
    ],
)
def test_an_unreadable_evaluator_gives_the_reason(repo, formats, why):
    said = unreadable(find_public(repo), formats)
    assert said.startswith(why)
    assert bool(said) == bool(why)


@pytest.mark.parametrize(
    "wrong", [{"parameters": 0}, {"judges": "all"}, {"sise": 3}, {"prmbench": {"score": 30.0}}]
)
def test_a_catalogue_with_a_mistake_is_refused(wrong, tmp_path, monkeypatch):
    content = json.loads(asset("evaluators.json").read_text())
    content["evaluators"][0] |= wrong
    path = tmp_path / "evaluators.json"
    path.write_text(json.dumps(content))
    monkeypatch.setattr(public, "asset", lambda name: path)
    with pytest.raises(UserError):
        public.public_evaluators.__wrapped__()
