"""The API as a whole: its description, its page, its errors, and the routes of datasets, traces and jobs."""

import re

import pytest

import stepsight.app.api.scores
from stepsight.app.jobs.worker import Worker
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.server import build_app
from stepsight.core.judgment import Judgment, Mode, Usage
from stepsight.core.judgment_record import judgment_record
from stepsight.core.models import memory
from stepsight.core.scores import Outputs, StepScores
from stepsight.storage.browse.browse import browse
from stepsight.storage.browse.filters import Sort, TraceFilter
from stepsight.storage.database.store import open_store
from stepsight.storage.judgments.evaluators import register_evaluator
from stepsight.storage.judgments.judgments import read_judgments, save_judgments
from stepsight.storage.judgments.score_files import import_scores
from stepsight.storage.traces.queries import find_dataset, get_trace, iterate_traces
from tests.app.client import PAGE, asking
from tests.app.held_up import hold_up, posted, served
from tests.app.processes import until
from tests.cases import each
from tests.storage.samples import add, judge, write_lines


def test_every_route_is_described_with_what_it_takes_and_gives(client):
    document = client.get("/api/v1/openapi.json").json()
    assert document["openapi"].startswith("3.")
    assert set(document["paths"]) == {
        "/score", "/score/batch", "/next", "/evaluators", "/datasets", "/datasets/{name}/traces", "/traces/{trace}",
        "/jobs", "/jobs/{job}", "/jobs/{job}/cancel", "/jobs/{job}/resume",
    }  # fmt: skip
    schemas = document["components"]["schemas"]
    for methods in document["paths"].values():
        for route in methods.values():
            assert route["summary"]
            assert {"404", "422", "503"} <= set(route["responses"])
            for response in route["responses"].values():
                schema = response["content"]["application/json"]["schema"]
                for kind in schema.get("anyOf") or [schema]:
                    name = kind.get("$ref") or kind["items"]["$ref"]
                    assert name.rpartition("/")[2] in schemas
    assert schemas["Failure"]["required"] == ["error", "hint"]


def test_the_page_of_it_names_every_route_and_object_and_loads_nothing_from_elsewhere(client):
    response = client.get("/api/v1/docs")
    assert response.headers["content-type"].startswith("text/html")
    document = client.get("/api/v1/openapi.json").json()
    for path in document["paths"]:
        assert f"<code>/api/v1{path}</code>" in response.text
    for name in document["components"]["schemas"]:
        assert f'id="{name}"' in response.text
    # Each link within the page leads to something.
    targets = set(re.findall(r'href="#([^"]+)"', response.text)) - {"content"}
    assert targets <= set(re.findall(r'id="([^"]+)"', response.text))
    loaded = re.findall(r'(?:src|href)="([^"#]+)"', response.text)
    assert loaded
    assert [address for address in loaded if not address.startswith("/")] == []


def test_the_example_of_the_page_works(client):
    body = client.get("/api/v1/openapi.json").json()["components"]["schemas"]["ScoreRequest"]["properties"]
    example = {key: value["examples"][0] for key, value in body.items() if "examples" in value}
    assert client.post("/api/v1/score", json=example).status_code == 200


def test_another_method_is_refused(client):
    response = client.delete("/api/v1/score")
    assert response.status_code == 405
    assert response.json()["error"] == "This route does not support that method."


def test_a_fault_of_ours_tells_nothing_of_itself(filled, evaluators, monkeypatch, caplog):
    def fail(*args):
        raise RuntimeError("secret of ours")

    monkeypatch.setattr(stepsight.app.api.scores, "list_evaluators", fail)
    with asking(filled, evaluators) as client:
        response = client.get("/api/v1/evaluators", headers={"x-request-id": "abc"})
    assert response.status_code == 500
    assert response.json() == {
        "error": "Something went wrong in StepSight itself.",
        "hint": "The server's log has the reason under request abc.",
    }
    assert "secret of ours" in caplog.text


START = {"dataset": "sums", "evaluator": "tiny"}


def test_a_job_is_started_worked_off_and_told(evaluators, tmp_path):
    with open_store(str(tmp_path / "store.db")) as store, asking(store, evaluators) as client:
        add(store)
        started = client.post("/api/v1/jobs", json=START)
        assert started.status_code == 201
        job = started.json()
        assert (job["dataset"], job["evaluator"], job["mode"], job["state"]) == (
            "sums",
            "tiny",
            "hindsight",
            "queued",
        )
        assert job["fingerprint"] == evaluators.scorer("tiny").evaluator.fingerprint
        assert client.post("/api/v1/jobs", json=START).json()["job"] == job["job"]
        assert Worker(store).work_one()
        found = client.get(f"/api/v1/jobs/{job['job']}").json()
        assert (found["state"], found["total"], found["done"], found["left_out"]) == ("done", 4, 4, 0)
        assert found["finished"] is not None
        judged = client.get("/api/v1/traces/1").json()["judgments"]
        assert [(said["evaluator"], said["mode"]) for said in judged] == [("tiny", "hindsight")]


def test_a_job_is_cancelled_and_resumed(evaluators, tmp_path):
    with open_store(str(tmp_path / "store.db")) as store, asking(store, evaluators) as client:
        add(store)
        number = client.post("/api/v1/jobs", json=START | {"mode": "online"}).json()["job"]
        assert client.post(f"/api/v1/jobs/{number}/cancel").json()["state"] == "cancelled"
        again = client.post(f"/api/v1/jobs/{number}/cancel")
        assert (again.status_code, again.json()["error"]) == (
            422,
            f"Job {number} cannot be cancelled: it is cancelled.",
        )
        assert client.post(f"/api/v1/jobs/{number}/resume").json()["state"] == "queued"
        assert [job["job"] for job in client.get("/api/v1/jobs").json()] == [number]


def test_a_job_for_an_unknown_dataset_or_evaluator_is_refused(evaluators, tmp_path):
    with open_store(str(tmp_path / "store.db")) as store, asking(store, evaluators) as client:
        add(store)
        for change, said in (({"dataset": "x"}, "no dataset 'x'"), ({"evaluator": "x"}, "no evaluator 'x'")):
            response = client.post("/api/v1/jobs", json=START | change)
            assert response.status_code == 404
            assert said in response.json()["error"]
        assert client.get("/api/v1/jobs").json() == []


def test_a_read_only_server_describes_only_what_it_does(filled, evaluators):
    with asking(filled, evaluators, read_only=True) as client:
        paths = client.get("/api/v1/openapi.json").json()["paths"]
        assert [path for path, methods in paths.items() if "post" in methods] == ["/score", "/score/batch", "/next"]
        assert client.get("/api/v1/jobs").json() == []


def test_evaluators_that_score_here_come_first(filled, client, evaluators):
    register_evaluator(filled, name="GPT-4", fingerprint="file", format="scores", attention="none")
    found = client.get("/api/v1/evaluators").json()
    assert [(row["name"], row["scores"], row["attention"]) for row in found] == [
        ("tiny", True, "bidirectional"),
        ("tiny-causal", True, "causal"),
        ("GPT-4", False, "none"),
    ]
    assert found[0]["fingerprint"] == evaluators.scorer("tiny").evaluator.fingerprint
    assert (found[0]["context"], found[2]["context"]) == (1024, None)
    assert found[0]["thresholds"] == {"validity": 0.5, "redundancy": 0.15}


def test_datasets_with_their_counts(client):
    # Of the four traces two name an error; they have 2 + 1 + 2 + 3 steps, and two steps have a sub-step more.
    assert client.get("/api/v1/datasets").json() == [
        {
            "name": "sums",
            "kind": "plain",
            "traces": 4,
            "errors": 2,
            "redundant": 0,
            "steps": 8,
            "substeps": 10,
            "left_out": 0,
        }
    ]


def test_traces_by_page_and_condition(client):
    page = client.get("/api/v1/datasets/sums/traces", params={"limit": 2, "offset": 1}).json()
    assert (page["dataset"], page["total"], page["offset"]) == ("sums", 4, 1)
    assert [row["id"] for row in page["traces"]] == ["clean", "missing"]
    errors = client.get("/api/v1/datasets/sums/traces?gold=error").json()
    assert [(row["id"], row["first_error"], row["has_gold"]) for row in errors["traces"]] == [
        ("error", 2, True),
        ("first", 2, True),
    ]
    found = client.get("/api/v1/datasets/sums/traces", params={"q": "2 + 2"}).json()
    assert [row["id"] for row in found["traces"]] == ["clean"]
    assert client.get("/api/v1/datasets/sums/traces?offset=2000000000").json()["traces"] == []


def test_traces_by_what_an_evaluator_says_as_the_browse_page_has_them(evaluators, tmp_path):
    with open_store(str(tmp_path / "store.db")) as store:
        traces = add(store)
        row = evaluators.register(store, "tiny")
        save_judgments(store, row.id, [judge(trace, Mode.HINDSIGHT, seed) for seed, trace in enumerate(traces[:3])])
        with asking(store, evaluators) as client:
            asked = {"evaluator": "tiny", "sort": "-validity"}
            page = client.get("/api/v1/datasets/sums/traces", params=asked).json()
            shown = browse(store, traces[0].dataset_id, TraceFilter(evaluator=row.id), Sort("validity", True))
            unjudged = client.get("/api/v1/datasets/sums/traces", params=asked | {"verdict": "unjudged"}).json()
    assert (page["evaluator"], page["total"]) == ("tiny", 4)
    assert [line["trace"] for line in page["traces"]] == [line.trace_id for line in shown.rows]
    validities = [line["validity"] for line in page["traces"]]
    assert validities[:3] == sorted(validities[:3], reverse=True)
    assert validities[3] is None
    assert [line["id"] for line in unjudged["traces"]] == ["first"]


def test_a_dataset_may_have_a_slash_in_its_name(evaluators, tmp_path):
    with open_store(str(tmp_path / "store.db")) as store:
        add(store, dataset="a/b c")
        with asking(store, evaluators) as client:
            assert client.get("/api/v1/datasets/a%2Fb%20c/traces").json()["total"] == 4


def test_a_trace_with_gold_and_judgments(evaluators, tmp_path):
    with open_store(str(tmp_path / "store.db")) as store:
        error = add(store)[0]
        row = evaluators.register(store, "tiny")
        judgment = judge(error, Mode.HINDSIGHT)
        save_judgments(store, row.id, [judgment])
        said = register_evaluator(store, name="whole", fingerprint="w", format="scores", attention="none",
                                  info={"outputs": Outputs.SOLUTION.value})  # fmt: skip
        zeros = StepScores([[0, 0, 0]] * 3)
        save_judgments(
            store, said.id, [Judgment(error, Mode.OFFLINE, zeros, 0.25, "A quarter.", Usage(2, 1, 30, None))]
        )
        with asking(store, evaluators) as client:
            found = client.get(f"/api/v1/traces/{error.trace_id}").json()
        stored = read_judgments(store, get_trace(store, error.trace_id))
    assert (found["dataset"], found["id"], found["problem"]) == ("sums", "error", "What is 1 + 1?")
    assert found["steps"] == [
        {
            "step": 1,
            "substeps": ["It is a sum."],
            "label": "pos",
            "valid": True,
            "share": None,
        },
        {
            "step": 2,
            "substeps": ["So 1 + 1 = 3.", "Done."],
            "label": "neg",
            "valid": False,
            "share": None,
        },
    ]
    assert found["first_error"] == 2
    assert found["judgments"] == [judgment_record(one, one.evaluator).model_dump(mode="json") for one in stored]
    # It said nothing of steps, which is not the same as nought.
    tiny, whole = found["judgments"]
    assert (tiny["mode"], tiny["stale"], len(tiny["hindsight"])) == ("hindsight", False, 3)
    assert (whole["outputs"], whole["offline"], whole["solution_score"]) == ("solution", None, 0.25)
    assert whole["spent"] == {"calls": 2, "unread": 1, "prompt_tokens": 30, "completion_tokens": None}


def test_an_imported_evaluator_is_listed_without_a_type(mixed, tmp_path):
    with open_store(str(tmp_path / "store.db")) as store:
        register_evaluator(store, name="percent", fingerprint="p", format="scores", attention="none",
                           info={"outputs": Outputs.VALIDITY.value})  # fmt: skip
        with asking(store, mixed) as client:
            listed = {info["name"]: info for info in client.get("/api/v1/evaluators").json()}
    assert (listed["percent"]["outputs"], listed["percent"]["dtype"]) == ("validity", None)


def test_unlabelled_is_null_and_valid_alone_is_told(client, filled):
    first = next(trace for trace in iterate_traces(filled, find_dataset(filled, "sums").id) if trace.id == "first")
    steps = client.get(f"/api/v1/traces/{first.trace_id}").json()["steps"]
    assert [(step["label"], step["valid"]) for step in steps] == [(None, True), ("neg", False), (None, None)]


@each(
    "path, status, said",
    [
        ("/traces/99", 404, "There is no trace 99"),
        ("/traces/-1", 404, "There is no trace -1"),
        (f"/traces/{2**70}", 404, "There is no trace"),
        ("/traces/abc", 422, "path.trace: Input should be a valid integer"),
        ("/datasets/none/traces", 404, "There is no dataset 'none'"),
        ("/datasets/sums/traces?gold=sideways", 422, "query.gold"),
        ("/datasets/sums/traces?limit=501", 422, "query.limit"),
        ("/jobs?limit=0", 422, "query.limit"),
        ("/jobs?limit=501", 422, "query.limit"),
        ("/jobs?offset=-1", 422, "query.offset"),
        ("/datasets/sums/traces?offset=-1", 422, "query.offset"),
        ("/datasets/sums/traces?text=x", 422, "query.text: Extra inputs"),
        ("/datasets/sums/traces?evaluator=none", 404, "No evaluator 'none' has judged this dataset"),
        ("/datasets/sums/traces?sort=-sideways", 422, ""),
        ("/datasets/sums/traces?cell=neg", 422, "query.cell: 'neg' found"),
        ("/jobs/99", 404, "There is no job 99"),
        ("/nothing", 404, "There is no such route"),
    ],
)
def test_missing_things_are_json_errors_also_for_a_browser(client, path, status, said):
    response = client.get(f"/api/v1{path}", headers=PAGE)
    assert response.status_code == status
    assert response.json()["error"].startswith(said)


def test_scores_without_a_step_come_when_asked_for(filled, client, tmp_path):
    trace, *_ = iterate_traces(filled, find_dataset(filled, "sums").id)
    n = len(trace.substeps)
    row = {"id": trace.id, "left_out": 1, "whole": [0.5] * n, "scores": [0.25] * (n - 1)}
    import_scores(filled, "sums", write_lines(tmp_path / "x.jsonl", [row]), "prm")
    address = f"/api/v1/traces/{trace.trace_id}"
    for query, expected in (
        ("", None),
        ("?left_out=true", [{"step": 1, "substep": 1, "cells": [None, *[0.25] * (n - 1)]}]),
    ):
        (found,) = [one for one in client.get(address + query).json()["judgments"] if one["evaluator"] == "prm"]
        assert found["left_out"] == expected


STEPS = ["2 + 3 = 5."]


@pytest.fixture
def held(tiny):
    return hold_up(tiny)


def post(client, steps=STEPS, mode="offline"):
    return client.post("/api/v1/score", json={"problem": "What is 2 + 3?", "steps": steps, "mode": mode})


def test_too_many_tokens_are_refused_with_their_number(sqlite_store, tiny):
    evaluators = Evaluators([tiny], shipped=False, tokens=20_000)
    with asking(sqlite_store, evaluators) as client:
        refused = post(client, ["5."] * 300, "hindsight")
        assert refused.status_code == 422
        assert "at most 20,000" in refused.json()["error"]
        assert post(client, ["5."] * 300).status_code == 200


def test_a_request_over_its_time_gets_a_503_and_its_work_ends(sqlite_store, held):
    evaluators, scorer = held
    with asking(sqlite_store, evaluators, seconds=0.3) as client:
        late = post(client)
        assert late.status_code == 503
        assert "longer than the 0.3 s" in late.json()["error"]
        assert int(late.headers["retry-after"]) > 0
        assert scorer.ended.wait(120)
        scorer.go.set()
        assert post(client).status_code == 200


def test_nothing_is_begun_where_memory_is_short(sqlite_store, tiny, monkeypatch):
    with asking(sqlite_store, Evaluators([tiny], shipped=False)) as client:
        with monkeypatch.context() as patch:
            patch.setattr(memory, "free_memory", lambda: 10_000_000)
            refused = post(client)
        assert refused.status_code == 503
        assert int(refused.headers["retry-after"]) > 0
        assert "short of memory" in refused.json()["error"]
        assert post(client).status_code == 200


def test_work_ends_when_its_client_disconnects(sqlite_store, held):
    evaluators, scorer = held
    with served(build_app(sqlite_store, evaluators)) as address:
        with posted(address, "/api/v1/score", {"problem": "q", "steps": STEPS}):
            assert scorer.at_work.wait(30)
            assert not scorer.ended.is_set()
        assert scorer.ended.wait(120)
        until(lambda: not evaluators._offered["tiny"].batcher.is_busy)
