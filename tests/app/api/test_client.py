"""`stepsight.Client` against a real server: the methods and returns of `Scorer`."""

from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import numpy as np
import pytest

from stepsight import Client, Scorer
from stepsight.app.scoring.batcher import Batcher
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.judgment import Mode
from stepsight.core.models.location import EQUATIONS
from stepsight.core.trace import Trace
from stepsight.storage.database.store import open_store
from stepsight.storage.people.logins import open_login
from stepsight.storage.people.users import Role, end_user, find_user
from tests.checkpoints import write_actprm, write_evaluator
from tests.messages import refused
from tests.serving import served
from tests.storage.people.samples import user

# Six digits come over the line, and what is scored together differs by no more than 1e-5.
CLOSE = 2e-5
TRACES = [
    Trace.of(f"What is {n} + 3?", ["2 + 3 = 5.", ["Check.", "Yes."]][: 1 + n % 2], id=str(n)) for n in range(90)
]


@pytest.fixture(scope="module")
def every(tiny, tiny_causal, tmp_path_factory):
    """Evaluators of all kinds of outputs."""
    folder = tmp_path_factory.mktemp("evaluators")
    write_actprm(folder / "ActPRM", max_position_embeddings=1024)
    write_evaluator(folder / "tiny-long", max_position_embeddings=4096)
    write_evaluator(folder / "long-causal", max_position_embeddings=4096, is_causal=True)
    long = [folder / "tiny-long", folder / "long-causal"]
    return Evaluators([tiny, tiny_causal, folder / "ActPRM", *long, EQUATIONS], shipped=False)


@pytest.fixture(scope="module")
def address(every, tmp_path_factory):
    with open_store(str(tmp_path_factory.mktemp("client") / "store.db")) as store, served(store, every) as address:
        yield address


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("name", ["tiny", "tiny-causal", "ActPRM", "equations"])
def test_judgments_are_those_of_the_scorer(address, every, name, mode):
    scorer = every.scorer(name)
    with Client(address, evaluator=name) as client:
        found = list(client.score(TRACES, mode))
    assert [one.trace for one in found] == TRACES
    for ours, theirs in zip(found, scorer.score(TRACES, mode), strict=True):
        assert (ours.mode, ours.solution, ours.rationale) == (theirs.mode, theirs.solution, theirs.rationale)
        for view in ("online", "offline"):
            one, other = getattr(ours, view), getattr(theirs, view)
            assert (one is None) == (other is None)
            if one is not None:
                np.testing.assert_allclose(one.probs, other.probs, atol=CLOSE)
                assert (one.spread is None) == (other.spread is None)
        if mode == Mode.HINDSIGHT:
            np.testing.assert_allclose(ours.hindsight.packed, theirs.hindsight.packed, atol=CLOSE)


@pytest.mark.parametrize("name", ["tiny", "tiny-causal", "ActPRM", "equations"])
def test_the_other_methods_give_what_the_scorers_do(address, every, name):
    scorer = every.scorer(name)
    with Client(address, evaluator=name) as client:
        assert client.evaluator == every.about(name)
        one = client.score_one(TRACES[1])
        np.testing.assert_allclose(one.hindsight.packed, scorer.score_one(TRACES[1]).hindsight.packed, atol=CLOSE)
        for steps in ([], ["2 + 3 = 5.", ["Check.", "Yes."]]):
            found = client.score_next("What is 2 + 3?", steps, ["5.", "2 + 3 = 6.", "5."])
            expected = scorer.score_next("What is 2 + 3?", steps, ["5.", "2 + 3 = 6.", "5."])
            assert (found.dtype, found.shape) == (np.float32, (3, 3))
            np.testing.assert_allclose(found, expected, atol=CLOSE)
        ours, theirs = client.leave_one_out(TRACES[1]), scorer.leave_one_out(TRACES[1])
        np.testing.assert_allclose(ours.probs, theirs.probs, atol=CLOSE)
        np.testing.assert_allclose(ours.whole.probs, theirs.whole.probs, atol=CLOSE)
        for one, other in zip(client.offline_scores(TRACES), scorer.offline_scores(TRACES), strict=True):
            np.testing.assert_allclose(one.probs, other.probs, atol=CLOSE)


def test_it_offers_what_the_scorer_offers():
    for name in ("score", "score_one", "score_next", "leave_one_out", "offline_scores"):
        assert callable(getattr(Client, name))
        assert callable(getattr(Scorer, name))


def test_errors_are_the_scorers(address, every):
    client, scorer = Client(address), every.scorer("tiny")
    long = Trace.of("q", ["7" * 20_000], id="long")
    for one in (client, scorer):
        with refused():
            list(one.score([TRACES[0], long, TRACES[1]]))
        skipped: list[Trace] = []
        rest = list(one.score([TRACES[0], long, TRACES[1]], on_skip=lambda trace, _, to=skipped: to.append(trace)))
        assert ([judgment.trace for judgment in rest], skipped) == ([TRACES[0], TRACES[1]], [long])
        assert [scores is None for scores in one.offline_scores([TRACES[0], long, TRACES[1]])] == [
            False,
            True,
            False,
        ]
        with refused():
            one.score_next("q", ["a"], [])
        with refused():
            one.score_next("q", ["a"], ["b", " "])
        with refused():
            one.score_next("q", ["a"], ["b", "7" * 20_000])
    with refused():
        _ = Client(address, evaluator="big").evaluator
    with refused():
        Client(address, evaluator="big").score_one(TRACES[0])
    with refused():
        client.score_one(Trace.of("q", ["7" * 1_000_100]))


def test_an_abandoned_iterator_leaves_nothing_in_the_queue(address, every):
    client = Client(address, evaluator="tiny")
    assert len(list(islice(client.score(TRACES, "hindsight"), 2))) == 2
    every._batchers["tiny"].drain()
    assert client.score_one(TRACES[3]).trace is TRACES[3]


def test_a_key_is_asked_for_where_people_log_in(every, tmp_path):
    with open_store(str(tmp_path / "store.db")) as store:
        user(store, "ada", Role.VIEWER)
        key = open_login(store, find_user(store, "ada"))
        with served(store, every) as address:
            for other in (None, "another"):
                with refused():
                    Client(address, key=other).score_one(TRACES[0])
            client = Client(address, key=key)
            assert client.score_one(TRACES[0]).trace is TRACES[0]
            user(store, "boss", Role.ADMIN)
            end_user(store, "ada")
            with refused():
                client.score_one(TRACES[0])


def test_loops_at_once_each_get_their_own(tiny, tiny_causal, tmp_path):
    """Twelve loops in a server in which six candidates may wait: nobody fails, everybody gets what is theirs."""
    evaluators = Evaluators([tiny, tiny_causal], shipped=False)
    for name in ("tiny", "tiny-causal"):
        evaluators._batchers[name] = Batcher(evaluators.scorer(name), evaluators._places, most=12)

    def loop(number):
        name = ("tiny", "tiny-causal")[number % 2]
        client = Client(address, evaluator=name)
        steps, found = [], []
        for depth in range(3):
            candidates = [f"{number} + {depth} = {one}." for one in range(4)]
            rows = client.score_next(f"q {number}", steps, candidates)
            found.append((list(steps), candidates, rows))
            steps.append(candidates[int(rows[:, 2].argmax())])
        return name, number, found

    with (
        open_store(str(tmp_path / "store.db")) as store,
        served(store, evaluators) as address,
        ThreadPoolExecutor(12) as pool,
    ):
        loops = list(pool.map(loop, range(12)))
    for name, number, found in loops:
        for steps, candidates, rows in found:
            expected = evaluators.scorer(name).score_next(f"q {number}", steps, candidates)
            np.testing.assert_allclose(rows, expected, atol=CLOSE)
