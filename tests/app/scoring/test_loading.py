"""Evaluators that are loaded when they are first asked for, within a budget."""

import shutil
import time
from concurrent.futures import wait
from dataclasses import replace

import pytest

from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.scoring.loading import LoadingError
from stepsight.core.errors import UserError
from stepsight.core.evaluators import loading
from stepsight.core.evaluators.opening import describe_fetched
from stepsight.core.hubs.hub_cache import find_fetched, save_fetched, storage_folder
from stepsight.core.hubs.hub_download import fetch
from stepsight.core.hubs.hub_lookup import look_up
from stepsight.core.models import memory
from stepsight.core.models.placement import Placement
from stepsight.core.trace import Trace
from tests.checkpoints import write_token_classifier
from tests.hub import Hub, point_to
from tests.messages import refused

TRACE = Trace.of("What is 2 + 3?", ["2 + 3 = 5.", "So 5."])
MODELS = ("lab/one", "lab/two")


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """The cache of a hub with two evaluators, and their descriptions."""
    folder, hub = tmp_path_factory.mktemp("hub"), Hub()
    for number, repo in enumerate(MODELS):
        hub.folders[repo] = folder / f"published-{number}"
        write_token_classifier(hub.folders[repo], "qwen2", intermediate_size=40 + 8 * number)
    with pytest.MonkeyPatch.context() as patch, hub.running():
        point_to(patch, hub.url, folder / "cache")
        described = [describe_fetched(fetch(look_up(repo)), Placement()) for repo in MODELS]
    return folder / "cache", described


@pytest.fixture
def fetched(cache, tmp_path, monkeypatch):
    """Two evaluators from a hub that is gone since."""
    folder, described = cache
    shutil.copytree(folder, tmp_path / "hub", symlinks=True)
    point_to(monkeypatch, "http://127.0.0.1:9", tmp_path / "hub")
    return described


@pytest.fixture
def slow(monkeypatch):
    """Loading takes half a second."""

    load_fetched = loading.load_fetched

    def load(*args):
        time.sleep(0.5)
        return load_fetched(*args)

    monkeypatch.setattr(loading, "load_fetched", load)


def offering(tiny, **options):
    return Evaluators([tiny], shipped=False, fetched=True, **options)


def in_memory(evaluators):
    return {name for name in evaluators.names if evaluators.local(name).batcher is not None}


def test_one_is_offered_before_it_is_loaded_and_judges_as_it_does_by_itself(fetched, tiny):
    evaluators = offering(tiny)
    assert evaluators.names == ["tiny", "one", "two"]
    assert in_memory(evaluators) == {"tiny"}
    assert evaluators.about("one") == fetched[0]
    judgment = evaluators.submit("one", TRACE).result(60)
    assert in_memory(evaluators) == {"tiny", "one"}
    alone = evaluators.scorer("one").score_one(TRACE)
    assert judgment.hindsight.packed == pytest.approx(alone.hindsight.packed, abs=1e-5)
    assert evaluators.spec("one") == str(find_fetched("lab/one").folder)
    assert [evaluators.local(name).origin for name in ("one", "tiny")] == ["fetched", "started with"]


def test_with_a_budget_for_one_the_other_gives_way_and_what_stays_stays(fetched, tiny):
    evaluators = offering(tiny, budget=1)
    for number, name in enumerate(("one", "two", "one")):
        # A solution that it has judged needs no weights.
        assert evaluators.submit(name, Trace.of(str(number), ["It is 1."])).result(60)
        assert in_memory(evaluators) == {"tiny", name}
    both = offering(tiny, budget=10**9)
    for name in ("one", "two"):
        both.submit(name, TRACE).result(60)
    assert in_memory(both) == {"tiny", "one", "two"}


def test_whoever_asks_while_it_is_loaded_waits_for_the_same(fetched, tiny, slow, monkeypatch):
    monkeypatch.setattr("stepsight.app.scoring.evaluators._PATIENCE", 0.05)
    evaluators = offering(tiny)
    with pytest.raises(LoadingError, match=r"one has been loading for .* This page continues by itself"):
        evaluators.scorer("one")
    with pytest.raises(LoadingError):
        evaluators.judge("one", TRACE)
    futures = [evaluators.submit("one", Trace.of(str(number), ["5"])) for number in range(4)]
    # Others are not held up.
    start = time.monotonic()
    evaluators.judge("tiny", TRACE)
    assert not any(future.done() for future in futures) or time.monotonic() - start > 0.5
    assert not wait(futures, 60).not_done
    assert len({id(future) for future in futures}) == 4
    assert [one.fetched.repo for one in evaluators._loader.loaded] == ["lab/one"]
    assert evaluators.scorer("one") is evaluators.scorer("one")


def test_one_that_does_not_load_says_why_and_the_others_go_on(fetched, tiny, monkeypatch):
    evaluators = offering(tiny)
    with monkeypatch.context() as patch:
        patch.setattr(memory, "free_memory", lambda: 1000)
        with pytest.raises(UserError, match=r"one needs about .* of memory; 1 kB is free"):
            evaluators.submit("one", TRACE).result(60)
        # It is not tried with every question.
        started = evaluators._offered["one"].begun
        with pytest.raises(UserError, match="of memory"):
            evaluators.scorer("one")
        assert evaluators._offered["one"].begun == started
    assert evaluators.judge("tiny", TRACE)
    monkeypatch.setattr("stepsight.app.scoring.loading._SECONDS", 0.0)
    assert evaluators.submit("one", TRACE).result(60)


def test_weights_that_were_changed_are_refused(fetched, tiny, tmp_path):
    evaluators = offering(tiny)
    assert "one" in evaluators.names
    write_token_classifier(tmp_path / "changed", "qwen2", initializer_range=0.5, num_hidden_layers=2)
    weights = find_fetched("lab/one").folder / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.resolve().write_bytes(content)
    with refused():
        evaluators.submit("one", TRACE).result(60)


def test_removed_evaluators_are_not_offered_and_new_ones_are(fetched, tiny, monkeypatch):
    monkeypatch.setattr("stepsight.app.scoring.evaluators._LOOKS", 0.0)
    evaluators = offering(tiny)
    record = storage_folder("lab/two") / "stepsight.json"
    record.rename(record.with_name("away.json"))
    assert evaluators.names == ["tiny", "one"]
    record.with_name("away.json").rename(record)
    assert evaluators.names == ["tiny", "one", "two"]


def test_another_type_of_weights_is_another_evaluator_and_has_to_be_loaded_once(fetched, tiny):
    evaluators = offering(tiny, place=Placement(dtype="bfloat16"))
    assert evaluators.names == ["tiny (bfloat16)"]
    describe_fetched(find_fetched("lab/one"), Placement(dtype="bfloat16"))
    assert offering(tiny, place=Placement(dtype="bfloat16")).names == ["tiny (bfloat16)", "one (bfloat16)"]


def test_a_description_of_another_version_is_made_anew(fetched, tiny):
    one = find_fetched("lab/one")
    before = replace(fetched[0], fingerprint="read in another way")
    save_fetched(one.described("float32", before))
    evaluators = offering(tiny)
    assert evaluators.about("one").fingerprint == "read in another way"
    assert evaluators.submit("one", TRACE).result(60)
    assert evaluators.about("one").fingerprint == fetched[0].fingerprint
    assert find_fetched("lab/one").descriptions["float32"].fingerprint == fetched[0].fingerprint


def test_one_that_nobody_asks_for_gives_its_memory_back(fetched, tiny, monkeypatch):
    monkeypatch.setattr("stepsight.app.scoring.loading._IDLE", 0.3)
    evaluators = offering(tiny)
    evaluators.submit("one", TRACE).result(60)
    until = time.monotonic() + 60
    while in_memory(evaluators) != {"tiny"}:
        assert time.monotonic() < until
        time.sleep(0.05)
    assert evaluators.submit("one", Trace.of("Again.", ["So."])).result(60)


def test_one_that_scores_nothing_gives_way_at_once_to_who_needs_the_room(fetched, tiny, monkeypatch):
    evaluators = offering(tiny, budget=10**9)
    for name in ("one", "two"):
        evaluators.submit(name, TRACE).result(60)
        # A result is known before the thread that made it sees that nothing waits.
        evaluators._offered[name].batcher.drain()
    loader = evaluators._loader

    def gone(*names):
        until = time.monotonic() + 60
        while in_memory(evaluators) != {"tiny", "one", "two"} - set(names):
            assert time.monotonic() < until
            time.sleep(0.02)

    # There is room, and nobody has to go.
    evaluators.give_room(1)
    loader._pool.submit(int).result(60)
    gone()
    # Room for one of them is made by the one that was used longest ago.
    free = iter([0, 10])
    with monkeypatch.context() as patch:
        patch.setattr(memory, "free_memory", lambda: next(free, 10))
        evaluators.give_room(10)
        gone("one")
    with monkeypatch.context() as patch:
        patch.setattr(memory, "free_memory", lambda: 0)
        patch.setattr(evaluators._offered["two"].batcher._short, "is_running", True)
        evaluators.give_room(10)
        loader._pool.submit(int).result(60)
        gone("one")
        patch.setattr(evaluators._offered["two"].batcher._short, "is_running", False)
        evaluators.give_room(10)
        gone("one", "two")
    assert evaluators.submit("one", Trace.of("Again.", ["So."])).result(60)


def test_a_description_made_by_a_worker_is_known_here(fetched, tiny, monkeypatch):
    monkeypatch.setattr("stepsight.app.scoring.evaluators._LOOKS", 0.0)
    evaluators = offering(tiny)
    assert evaluators.about("one").fingerprint == fetched[0].fingerprint
    save_fetched(find_fetched("lab/one").described("float32", replace(fetched[0], fingerprint="newer")))
    assert evaluators.about("one").fingerprint == "newer"


def test_a_judgment_that_is_kept_needs_no_evaluator(fetched, tiny):
    evaluators = offering(tiny, budget=1)
    judged = [evaluators.submit(name, TRACE).result(60) for name in ("one", "two")]
    again = [evaluators.judge(name, TRACE) for name in ("one", "two")]
    assert [one.hindsight is before.hindsight for one, before in zip(again, judged, strict=True)] == [True, True]
    assert in_memory(evaluators) == {"tiny", "two"}
