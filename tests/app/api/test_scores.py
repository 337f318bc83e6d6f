"""POST /api/v1/score, and our client of it."""

import csv
import io
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from stepsight import Client, Scorer
from stepsight.app.browse.page import CSV_PATH as BROWSE_CSV
from stepsight.app.score.entered import Entered
from stepsight.app.score.files import CSV_PATH as SCORE_CSV
from stepsight.app.scoring.batcher import Batcher
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.judgment import Mode
from stepsight.core.models.location import EQUATIONS
from stepsight.core.scores import Thresholds
from stepsight.core.trace import Trace
from stepsight.storage.database.store import open_store
from stepsight.storage.exports.frames import frame
from stepsight.storage.judgments.evaluators import Threshold, register_loaded, save_calibration
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.people.logins import open_login
from stepsight.storage.people.users import Role, end_user, find_user
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.evaluate.strength import concluded_record
from tests.app.client import asking, assert_alike
from tests.cases import each
from tests.checkpoints import write_actprm, write_evaluator
from tests.messages import refused
from tests.serving import served
from tests.storage.people.samples import user
from tests.storage.samples import add

BODY = {"problem": "What is 2 + 3?", "steps": ["2 + 3 = 6.", ["So 6.", "Check: 6 - 3 = 3."]]}
TRACE = Trace.of(BODY["problem"], BODY["steps"])


def post(client, **changes):
    return client.post("/api/v1/score", json=BODY | changes)


@pytest.mark.parametrize("name", ["tiny", "math-shepherd"])
@pytest.mark.parametrize("mode", list(Mode))
def test_the_answer_is_the_record_of_the_scorers_judgment(mixed, sqlite_store, name, mode):
    with asking(sqlite_store, mixed) as client:
        answer = post(client, mode=mode.value, evaluator=name).json()
    expected = concluded_record(mixed.scorer(name).score_one(TRACE, mode), mixed.about(name))
    # What is scored together differs by no more than 1e-5.
    assert_alike(answer, expected.model_dump(mode="json"), 2e-5)
    assert answer["fingerprint"] == mixed.scorer(name).evaluator.fingerprint
    views = [answer[key] for key in ("online", "offline") if answer[key] is not None]
    assert len(views) == (2 if mode == Mode.HINDSIGHT else 1)


def test_the_first_evaluator_and_offline_are_meant_where_nothing_is_said(client):
    answer = post(client).json()
    assert (answer["evaluator"], answer["mode"]) == ("tiny", "offline")


def test_the_verdicts_are_at_the_thresholds_in_force(evaluators, tmp_path):
    with open_store(str(tmp_path / "store.db")) as store:
        add(store)
        dataset = find_dataset(store, "sums")
        row = evaluators.register(store, "tiny")
        save_calibration(store, row.id, dataset, Threshold.VALIDITY, 0.999, {})
        with asking(store, evaluators) as client:
            answer = post(client).json()
    assert answer["thresholds"] == {"validity": 0.999, "redundancy": 0.15}
    assert not any(step["valid"] for step in answer["offline"]["steps"])


@each(
    "change, status, said",
    [
        ({"evaluator": "big"}, 404, "There is no evaluator 'big'"),
        ({"mode": "later"}, 422, "mode: Input should be 'offline', 'online' or 'hindsight', found 'later'"),
        ({"problem": " "}, 422, "the problem is empty"),
        ({"problem": 3}, 422, "problem: Input should be a valid string, found 3"),
        ({"steps": []}, 422, "steps: List should have at least 1 item"),
        ({"steps": ["a", ""]}, 422, "step 2 is empty"),
        ({"steps": ["a", []]}, 422, "step 2 is empty"),
        ({"steps": ["a", "\u200b"]}, 422, "step 2 has no visible text"),
        ({"steps": ["\x00"]}, 422, "step 1 contains a NUL byte"),
        ({"steps": ["a"] * 1001}, 422, "at most 1000 items"),
        ({"context": {"messages": []}}, 422, "context: Extra inputs are not permitted"),
        ({"step": ["a"]}, 422, "step: Extra inputs are not permitted"),
        ({"steps": ["7" * 20_000]}, 422, "the trace has 20,0"),
        ({"steps": ["7" * 1_100_000]}, 413, "larger than 1,000,000 bytes"),
    ],
)
def test_bad_input_is_told_with_its_reason(client, change, status, said):
    response = post(client, **change)
    assert response.status_code == status
    assert said in response.json()["error"]
    assert set(response.json()) == {"error", "hint"}
    assert response.json()["hint"]


@pytest.mark.parametrize(
    ("content", "headers", "said"),
    [
        (b"{", {"content-type": "application/json"}, "JSON decode error"),
        (b"[1]", {"content-type": "application/json"}, "valid dictionary"),
        (json.dumps(BODY).encode(), {}, "The body was not sent as JSON"),
        (b'{"problem": "\\ud800", "steps": ["a"]}', {"content-type": "application/json"}, ""),
    ],
)
def test_a_body_that_is_not_json_is_refused(client, content, headers, said):
    response = client.post("/api/v1/score", content=content, headers=headers)
    assert response.status_code == 422
    assert said in response.json()["error"]


def test_an_evaluator_in_words_gives_verdicts_and_no_numbers(filled, tiny):
    with asking(filled, Evaluators([tiny, EQUATIONS], shipped=False)) as client:
        _check_words(client)


def _check_words(client):
    answer = post(client, evaluator="equations", mode="hindsight").json()
    assert (answer["outputs"], answer["rationale"]) == ("checks", "Step 1: 2 + 3 is 5, not 6.")
    offline = answer["offline"]
    assert [row["valid"] for row in offline["steps"]] == [False, True, True]
    assert {row["validity"] for row in offline["steps"]} == {None}
    assert offline["solution"] == {"validity": None, "redundancy": None, "valid": False, "redundant": None}
    assert answer["hindsight"] == [["neg"], ["neg", "pos"], ["neg", "pos", "pos"]]
    silent = post(client, evaluator="equations", steps=["It is so."]).json()["offline"]
    assert (silent["steps"][0]["valid"], silent["solution"]["valid"]) == (None, None)


def test_the_spread_of_an_ensemble_is_wherever_its_scores_are(sqlite_store, tmp_path):
    write_actprm(tmp_path / "ActPRM", max_position_embeddings=1024)
    evaluators = Evaluators([tmp_path / "ActPRM"], shipped=False)
    trace = add(sqlite_store)[0]
    judged = evaluators.judge("ActPRM", trace)
    spread = judged.hindsight.spread.tolist()
    assert min(spread) > 0
    evaluator = register_loaded(sqlite_store, evaluators.scorer("ActPRM").evaluator)
    save_judgments(sqlite_store, evaluator.id, [replace(judged, trace=trace)])
    body = {"problem": trace.problem, "steps": [list(step.substeps) for step in trace.steps]}
    form = Entered.of(trace, ["ActPRM"], Thresholds())
    with asking(sqlite_store, evaluators) as client:
        answer = post(client, evaluator="ActPRM", mode="hindsight", **body).json()
        (stored,) = client.get(f"/api/v1/traces/{trace.trace_id}").json()["judgments"]
        for record, view in ((record, view) for record in (answer, stored) for view in ("online", "offline")):
            assert [row["spread"] for row in record[view]["steps"]] == pytest.approx(spread, abs=1e-5)
        for path, query in (
            (BROWSE_CSV, {"trace": trace.trace_id, "evaluator": "ActPRM"}),
            (SCORE_CSV, {"s": form.token()}),
        ):
            rows = list(csv.DictReader(io.StringIO(client.get(path, params=query).text.removeprefix("\ufeff"))))
            names = [name for name in rows[0] if name.endswith("spread")]
            found = [float(row[names[-1]]) for row in rows]
            assert found[-len(spread) :] == pytest.approx(spread, abs=1e-5)
        page = client.get("/browse", params={"trace": trace.trace_id, "evaluator": "ActPRM"}).text
        assert page.count('<b class="spread"') == 2 * len(spread)
        assert "a line across a bar" in page
    rows = frame(sqlite_store, trace.dataset, substeps=True)
    assert rows.spread.tolist() == pytest.approx([*spread, *spread], abs=1e-5)


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
    every._offered["tiny"].batcher.drain()
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
        evaluators._offered[name].batcher = Batcher(evaluators.scorer(name), evaluators._places, most=12)

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
