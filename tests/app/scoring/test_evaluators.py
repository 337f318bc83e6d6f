import json
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.errors import UserError
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.judgment import Mode
from stepsight.core.keyed_cache import KeyedCache
from stepsight.core.models.location import EQUATIONS, shipped_evaluators
from stepsight.core.models.model import THREE_WAY
from stepsight.core.models.placement import Placement
from stepsight.core.scores import Thresholds
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from stepsight.storage.judgments.evaluators import Threshold, list_evaluators, register_loaded, save_calibration
from stepsight.storage.traces.queries import find_dataset
from tests.checkpoints import write_evaluator
from tests.messages import refused
from tests.storage.samples import ERROR, add
from tests.vllm_server import Classifier, Day, VllmServer

TRACE = Trace.of("What is 2 + 3?", ["2 + 3 = 5.", "So 5.", "Check: 5 - 3 = 2."], id="a")

PLACED = Placement(dtype="bfloat16")


@pytest.fixture
def fresh(tiny):
    """Evaluators that have judged nothing yet."""
    return Evaluators([tiny], shipped=False)


def test_bidirectional_evaluators_come_first(evaluators):
    assert evaluators.names == ["tiny", "tiny-causal"]
    assert [evaluators.scorer(name).evaluator.attention for name in evaluators.names] == ["bidirectional", "causal"]


def test_a_judgment_is_the_scorers_in_hindsight_mode(evaluators):
    judgment = evaluators.judge("tiny", TRACE)
    assert judgment.mode == Mode.HINDSIGHT
    again = evaluators.scorer("tiny").score_one(TRACE)
    np.testing.assert_allclose(judgment.hindsight.packed, again.hindsight.packed, atol=1e-5)
    assert np.abs(judgment.hindsight.retroactive).max() > 1e-4
    assert not evaluators.judge("tiny-causal", TRACE).hindsight.retroactive.any()


def test_a_bidirectional_evaluator_has_no_other_reading(evaluators):
    with refused():
        evaluators.about("tiny, read in both orders")


def test_another_reading_uses_the_weights_in_memory_and_gives_what_a_process_of_its_own_does(evaluators):
    for name in ("tiny-causal", "tiny-causal, read in both orders"):
        judgment, scorer = evaluators.judge(name, TRACE), evaluators.scorer(name)
        assert scorer.forward is evaluators.scorer("tiny-causal").forward
        assert evaluators.scorer(name) is scorer
        alone = load_evaluator(evaluators.spec(name))
        assert (alone.name, alone.fingerprint) == (name, evaluators.about(name).fingerprint)
        assert alone.attention == evaluators.about(name).attention == scorer.evaluator.attention
        expected = Scorer(alone).score_one(TRACE).hindsight.packed
        np.testing.assert_allclose(judgment.hindsight.packed, expected, atol=1e-5)
        assert evaluators.scores_together(name) == (name == "tiny-causal")


def test_a_solution_longer_than_the_context_is_read_in_windows_and_first_as_a_whole(evaluators):
    """The context is 1,024 tokens; a step of ten numbers has more than ten."""
    steps = [f"Step {i}: " + " + ".join(map(str, range(i, i + 10))) for i in range(100)]
    whole, first = Trace.of("q", steps), Trace.of("q", steps[:3])
    windowed = {name: f"{name}, read in windows of 1024 tokens" for name in evaluators.names}
    assert evaluators.fit("tiny", first) == ("tiny", Mode.HINDSIGHT)
    assert evaluators.fit("tiny", whole) == (windowed["tiny"], Mode.OFFLINE)
    # One pass of a causal evaluator gives everything.
    assert evaluators.fit("tiny-causal", whole) == (windowed["tiny-causal"], Mode.HINDSIGHT)
    # A link may name the windows, as may one with smaller windows.
    assert evaluators.fit(windowed["tiny"], whole) == (windowed["tiny"], Mode.OFFLINE)
    assert evaluators.fit(windowed["tiny"], first) == (windowed["tiny"], Mode.HINDSIGHT)
    small = "tiny, read in windows of 512 tokens"
    assert evaluators.fit(small, whole) == (small, Mode.OFFLINE)
    assert {evaluators.plain(name) for name in (*windowed.values(), "tiny")} == {"tiny", "tiny-causal"}
    judgment = evaluators.judge(windowed["tiny"], whole, Mode.OFFLINE)
    assert (len(judgment.offline), judgment.online) == (100, None)
    assert evaluators.judge(windowed["tiny"], whole, Mode.OFFLINE).result is judgment.result


def test_a_step_longer_than_the_context_is_left_to_the_evaluators_refusal(evaluators):
    trace = Trace.of("q", ["7" * 20_000])
    assert evaluators.fit("tiny", trace) == ("tiny", Mode.HINDSIGHT)
    with pytest.raises(UserError, match=r"tiny reads at most 1,024\."):
        evaluators.judge("tiny", trace)


def test_an_equal_trace_is_scored_once_and_keeps_its_own_id(fresh):
    first = fresh.judge("tiny", TRACE)
    second = fresh.judge("tiny", Trace.of(TRACE.problem, TRACE.substeps, id="b"))
    assert second.result is first.result
    assert (first.trace.id, second.trace.id) == ("a", "b")
    other = fresh.judge("tiny", Trace.of(TRACE.problem, [*TRACE.substeps[:2], "Check: 5."]))
    assert other.result is not first.result


def test_a_kept_judgment_has_its_rationale_in_every_mode():
    evaluators = Evaluators()
    wrong = Trace.of("What is 2 + 3?", ["2 + 3 = 6.", "So 6."])
    for mode in (Mode.HINDSIGHT, *Mode):
        judgment = evaluators.submit(EQUATIONS, wrong, mode).result(30)
        assert (judgment.mode, judgment.solution) == (mode, 0.0)
        assert judgment.rationale == "Step 1: 2 + 3 is 5, not 6."


def test_a_bounded_number_of_judgments_is_kept_and_the_least_recently_used_go(fresh, monkeypatch):
    # 2,000 each, 46 and 2 characters, three steps of 150 + 24 and one of 150 + 12: the first and four more.
    monkeypatch.setattr(fresh, "_judgments", KeyedCache(2568 + 4 * 2164))
    others = [Trace.of(str(number), ["5"]) for number in range(5)]
    first = fresh.judge("tiny", TRACE)
    kept = [fresh.judge("tiny", other) for other in others[:4]]
    assert fresh.judge("tiny", TRACE).result is first.result
    fresh.judge("tiny", others[4])
    assert fresh.judge("tiny", TRACE).result is first.result
    assert fresh.judge("tiny", others[0]).result is not kept[0].result


def test_a_repeated_request_shares_the_judgment_under_way(fresh):
    with fresh._places.short, fresh._places.short:
        begun = fresh.submit("tiny", TRACE, comes_back=True)
        again = fresh.submit("tiny", TRACE, comes_back=True)
        assert not begun.done()
    judgment = begun.result(30)
    assert again.result(30).result is judgment.result
    assert fresh.submit("tiny", TRACE, comes_back=True).result().result is judgment.result


def test_a_shared_judgment_is_scored_until_all_have_left(fresh):
    line = fresh._offered["tiny"].batcher._short
    with fresh._places.short, fresh._places.short:
        one, other = fresh.submit("tiny", TRACE), fresh.submit("tiny", TRACE)
        assert len(list(line)) == 1
        assert one.cancel()
        (request,) = line
        assert not request.answer.is_left
        assert other.cancel()
        assert request.answer.is_left
        # Nobody joins what is given up.
        third = fresh.submit("tiny", TRACE)
        assert len(list(line)) == 2
    assert third.result(30)
    assert request.answer.cancelled()


def test_a_submission_joins_a_begun_judgment_and_may_leave(fresh):
    with fresh._places.short, fresh._places.short:
        begun = fresh.submit("tiny", TRACE, comes_back=True)
        same = Trace.of(TRACE.problem, TRACE.substeps, id="b")
        stays, leaves = fresh.submit("tiny", same), fresh.submit("tiny", same)
        assert leaves.cancel()
        # What is shorter does not wait for it.
        assert not fresh.submit("tiny", TRACE, Mode.OFFLINE).cancelled()
        assert len(list(fresh._offered["tiny"].batcher._short)) == 2
    judgment = stays.result(30)
    assert judgment.result is begun.result(30).result
    assert judgment.trace.id == "b"


def test_where_what_was_begun_fails_all_who_wait_learn_of_it(fresh, monkeypatch):
    def fail(*_):
        raise UserError("a probability is not a number.")

    with fresh._places.short, fresh._places.short:
        fresh.submit("tiny", TRACE, comes_back=True)
        second = fresh.submit("tiny", TRACE)
        monkeypatch.setattr(fresh.scorer("tiny"), "stream_encoded", fail)
    with refused():
        second.result(30)
    monkeypatch.undo()
    # So does who comes back; afterwards it is tried again.
    with refused():
        fresh.submit("tiny", TRACE, comes_back=True).result(30)
    later = time.monotonic() + 60
    monkeypatch.setattr("stepsight.core.keyed_cache.time", SimpleNamespace(monotonic=lambda: later))
    assert fresh.submit("tiny", TRACE, comes_back=True).result(30)


def test_an_unknown_name_is_refused_with_those_that_are_known(evaluators):
    with refused():
        evaluators.judge("big", TRACE)


def test_folders_come_beside_the_shipped_ones(tiny):
    shipped = shipped_evaluators()
    assert set(Evaluators([str(tiny)]).names) == {"tiny", *shipped}


def test_one_whose_name_is_taken_goes_by_its_path(tiny, tmp_path):
    other = write_evaluator(tmp_path / "tiny", seed=1)
    evaluators = Evaluators([tiny, other], shipped=False)
    assert set(evaluators.names) == {"tiny", str(other)}
    assert evaluators.scorer(str(other)).evaluator.name == str(other)


def test_those_that_are_named_are_placed_and_the_shipped_ones_are_not(tiny, tmp_path):
    other = write_evaluator(tmp_path / "tiny", seed=1)
    evaluators = Evaluators([tiny, other, "mini-causal"], place=PLACED)
    rough = {
        "tiny (bfloat16)": str(tiny),
        f"{other} (bfloat16)": str(other),
        "mini-causal (bfloat16)": "mini-causal",
    }
    assert set(evaluators.names) == {*shipped_evaluators(), *rough}
    assert {name: evaluators.spec(name) for name in rough} == rough
    for name in evaluators.names:
        dtype = "bfloat16" if name in rough else "float32"
        assert evaluators.scorer(name).evaluator.dtype == dtype


def test_a_type_is_stored_with_the_evaluator(tiny, sqlite_store):
    exact, rough = Evaluators([tiny], shipped=False), Evaluators([tiny], shipped=False, place=PLACED)
    rows = [exact.register(sqlite_store, "tiny"), rough.register(sqlite_store, "tiny (bfloat16)")]
    assert [row.dtype for row in rows] == ["float32", "bfloat16"]
    assert len(list_evaluators(sqlite_store)) == 2


def test_none_at_all_and_one_that_does_not_load_are_refused(tmp_path):
    with refused():
        Evaluators(shipped=False)
    with refused():
        Evaluators([tmp_path / "nowhere"], shipped=False)


def test_looking_at_many_readings_stores_none_and_keeps_a_few(evaluators, sqlite_store):
    names = [f"tiny, read in windows of {size} tokens" for size in range(500, 520)]
    for name in names:
        assert evaluators.thresholds(sqlite_store, name) == evaluators.about("tiny").thresholds
        kept = evaluators.scorer(name)
        assert evaluators.scorer(name) is kept
    assert list_evaluators(sqlite_store) == []
    assert evaluators.scorer(names[-1]) is kept
    assert len(evaluators._offered["tiny"].batcher._read_as) == 16


def test_an_evaluator_is_registered_once(evaluators, sqlite_store):
    row = evaluators.register(sqlite_store, "tiny")
    evaluator = evaluators.scorer("tiny").evaluator
    assert register_loaded(sqlite_store, evaluator) == row
    assert list_evaluators(sqlite_store) == [row]
    assert (row.name, row.fingerprint, row.attention) == ("tiny", evaluator.fingerprint, "bidirectional")
    own = {"validity": 0.5, "redundancy": 0.15}
    assert row.info == {"parameters": evaluator.parameters, "context": 1024, "thresholds": own}


def test_thresholds_are_the_evaluators_own_until_some_are_calibrated(tmp_path, sqlite_store):
    folder = write_evaluator(tmp_path / "strict")
    card = json.loads((folder / "stepsight.json").read_text())
    (folder / "stepsight.json").write_text(json.dumps(card | {"thresholds": {"validity": 0.7, "redundancy": 0.3}}))
    evaluators = Evaluators([folder], shipped=False)
    row = evaluators.register(sqlite_store, "strict")
    assert evaluators.thresholds(sqlite_store, "strict") == row.thresholds == Thresholds(0.7, 0.3)
    add(sqlite_store, [ERROR])
    save_calibration(sqlite_store, row.id, find_dataset(sqlite_store, "sums"), Threshold.VALIDITY, 0.6, {})
    assert evaluators.thresholds(sqlite_store, "strict") == Thresholds(0.6, 0.3)


def test_thresholds_that_were_changed_since_are_stored_anew(tmp_path, sqlite_store):
    evaluator = load_evaluator(write_evaluator(tmp_path / "one"))
    register_loaded(sqlite_store, evaluator)
    again = register_loaded(sqlite_store, replace(evaluator, thresholds=Thresholds(0.9, 0.1)))
    assert again.thresholds == Thresholds(0.9, 0.1)
    assert list_evaluators(sqlite_store) == [again]


def test_equations_are_scored_with_and_are_no_evaluator_of_scores():
    evaluators = Evaluators()
    assert evaluators.all_names == [*evaluators.names, "equations"]
    assert evaluators.spec("equations") == "equations"
    trace = Trace.of("Add.", ["2 + 2 = 5."])
    assert evaluators.judge("equations", trace).rationale == "Step 1: 2 + 2 is 4, not 5."


def test_one_behind_a_server_is_offered_beside_the_others(tiny, monkeypatch):
    monkeypatch.setattr("stepsight.core.inference_servers.server._FIRST_PAUSE", 0.001)
    server = VllmServer(Classifier(tiny, THREE_WAY), tiny, context=1024)
    with server.running() as url:
        address = server.address(url)
        offered = Evaluators([tiny, address], shipped=False)
        assert offered.names == ["prm (vllm)", "tiny"]
        assert offered.spec("prm (vllm)") == address
        there, here = offered.judge("prm (vllm)", TRACE), offered.judge("tiny", TRACE)
        np.testing.assert_allclose(there.hindsight.packed, here.hindsight.packed, atol=1e-5)
        # What it said is kept when it has died.
        server.day = Day(asks=1, dies_after=1)
        assert offered.judge("prm (vllm)", TRACE).result is there.result
        with pytest.raises(UserError, match="the server broke the connection"):
            offered.judge("prm (vllm)", Trace.of("q", ["new"]))
