"""The Evaluators page without a browser: from the hub to a judged dataset, and what keeps one from it."""

import json
import threading
import time
from contextlib import suppress
from datetime import timedelta

import pytest
from safetensors.torch import load_file

from stepsight.app.evaluators import model_list
from stepsight.app.evaluators import page as evaluators_page
from stepsight.app.evaluators.page import card_html, state_html
from stepsight.app.jobs.worker import Worker
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.baseline_check import card_id
from stepsight.app.web.pages import PART
from stepsight.core.evaluators.opening import describe_fetched
from stepsight.core.hubs import hub_cache
from stepsight.core.hubs.hub_cache import find_fetched, storage_folder
from stepsight.core.models import kernels, memory
from stepsight.core.models.location import EQUATIONS, shipped_evaluators
from stepsight.core.models.placement import Placement, expected_dtype
from stepsight.core.paths import asset
from stepsight.storage.database.jobs_schema import State
from stepsight.storage.jobs.jobs import cancel_job, get_job, list_jobs, resume_job
from stepsight.storage.judgments.evaluators import list_evaluators
from tests.app.client import asking
from tests.app.elements import read
from tests.app.evaluators.conftest import OTHER, SMALL
from tests.checkpoints import QWEN2, write_adapter, write_language_model
from tests.core.formats.cases import tokenizer_of
from tests.hub import COMMIT, point_to
from tests.storage.samples import add

NAME = "Qwen2-0.5B-Reward-Math-Sheperd"
WEIGHTS = "model.safetensors"


@pytest.fixture
def evaluators(hub, tiny):
    return Evaluators([tiny], shipped=False, fetched=True)


@pytest.fixture(autouse=True)
def fetched_ones_are_seen_at_once(monkeypatch):
    monkeypatch.setattr("stepsight.app.scoring.evaluators._LOOKS", 0.0)


def page_of(client):
    return read(client.get("/evaluators", headers={PART: "1"}).text)


def fetch(client, repo=SMALL):
    return client.post("/evaluators/fetch", json={"repo": repo})


def offered(page):
    return {one.attributes["data-fetch"] for one in page.all("button") if "data-fetch" in one.attributes}


def test_one_is_fetched_and_judges_a_dataset_without_a_new_start(client, sqlite_store, evaluators):
    add(sqlite_store)
    assert SMALL in offered(page_of(client))
    assert NAME not in client.get("/").text
    job = fetch(client).json()["job"]
    assert get_job(sqlite_store, job).request == {"repo": SMALL, "revision": COMMIT, "parts": {}}
    assert fetch(client).json()["job"] == job
    worker = Worker(sqlite_store)
    assert worker.work_one()
    done = get_job(sqlite_store, job)
    assert (done.state, done.reason) == (
        State.DONE, f"{NAME}: token-classification format, inputs of up to 1,024 tokens."
    )  # fmt: skip
    assert done.done == done.total == sum(find_fetched(SMALL).files.values())
    page = page_of(client)
    assert SMALL not in offered(page)
    assert f"fetched from {SMALL} at {COMMIT[:8]} · loaded on first use" in page.text
    for path in ("/", "/jobs", "/browse?dataset=sums"):
        assert NAME in client.get(path).text, path
    values = {"dataset": "sums", "evaluator": NAME, "mode": "hindsight"}
    assert client.post("/api/v1/jobs", json=values).status_code == 201
    assert worker.work_one()
    assert [one.state for one in list_jobs(sqlite_store)] == [State.DONE, State.DONE]
    assert NAME in {one.name for one in list_evaluators(sqlite_store)}
    # What is judged is seen without loading it; a new solution loads it.
    assert evaluators.local(NAME).batcher is None
    assert client.get(f"/evidence?trace=1&evaluator={NAME}").status_code == 200
    assert evaluators.local(NAME).batcher is None
    scored = client.post("/api/v1/score", json={"problem": "2 + 3?", "steps": ["It is 5."], "evaluator": NAME})
    assert scored.status_code == 200, scored.text
    assert evaluators.local(NAME).batcher is not None
    assert "· in memory" in page_of(client).text


def test_a_model_that_is_in_no_catalogue_can_be_fetched_too(client, sqlite_store):
    assert fetch(client, f" {OTHER} ").status_code == 201
    assert Worker(sqlite_store).work_one()
    assert "fetched from lab/other-prm" in page_of(client).text


@pytest.mark.parametrize(
    ("repo", "message"),
    [
        ("lab/none", "the model hub has no model 'lab/none' to which you have access."),
        ("no id", "'no id' is not the id of a model."),
        ("", "'' is not the id of a model."),
    ],
)
def test_an_unavailable_model_is_refused_at_once_and_nothing_is_started(client, sqlite_store, repo, message):
    answer = fetch(client, repo)
    assert (answer.status_code, answer.json()["error"]) == (422, message)
    assert list_jobs(sqlite_store) == []
    assert client.get("/evaluators").status_code == 200


@pytest.mark.parametrize(("able", "size"), [(True, "16.4"), (False, "32.5")])
def test_a_model_too_large_for_this_machine_is_not_offered_and_is_refused(
    client, sqlite_store, monkeypatch, able, size
):
    """7 billion parameters of two bytes each, or of four where the processor has no instructions for bfloat16."""
    monkeypatch.setattr(kernels, "is_native", lambda dtype: able)
    for module in (memory, model_list, evaluators_page):
        monkeypatch.setattr(module, "total_memory", lambda: 8_000_000_000)
    page = page_of(client)
    assert "Qwen/Qwen2.5-Math-PRM-7B" not in offered(page)
    assert page.text.count("This machine has 8.0 GB of memory") == 1
    assert "No room" in page.one("tr", data_card="Qwen/Qwen2.5-Math-PRM-7B").text
    assert SMALL in offered(page)
    answer = fetch(client, "Qwen/Qwen2.5-Math-PRM-7B")
    assert answer.json() == {
        "error": f"Qwen/Qwen2.5-Math-PRM-7B: takes about {size} GB of memory, and this machine has 8.0 GB.",
        "hint": "Choose a smaller one, load the weights in bfloat16, or use a machine with more memory.",
    }
    assert list_jobs(sqlite_store) == []


def test_a_full_disk_is_refused_before_it_is_begun(client, sqlite_store, monkeypatch):
    monkeypatch.setattr(hub_cache, "free_disk", lambda: 1000)
    assert "of disk space, but" in fetch(client).json()["error"]
    assert list_jobs(sqlite_store) == []


def wait_for(condition, seconds=60.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def partial():
    total = 0
    for path in storage_folder(SMALL).glob("blobs/*incomplete"):
        # A file that has come meanwhile has another name.
        with suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


@pytest.mark.slow
def test_a_cancelled_one_stops_and_is_resumed(client, sqlite_store, hub, monkeypatch):
    monkeypatch.setattr("stepsight.app.jobs.lease._BEAT", 0.1)
    hub.pause = 1.0
    job = fetch(client).json()["job"]
    worker = threading.Thread(target=Worker(sqlite_store).work_one, daemon=True)
    worker.start()
    wait_for(lambda: partial() > 20_000)
    # A busy machine has time to cancel it before the last piece.
    hub.pause = 5.0
    page = page_of(client)
    (meter,) = page.all("div", cls="meter")
    assert 0 <= int(meter.attributes["aria-valuenow"]) < 100
    cancel_job(sqlite_store, job)
    worker.join(120)
    assert not worker.is_alive()
    assert (get_job(sqlite_store, job).state, find_fetched(SMALL)) == (State.CANCELLED, None)
    hub.pause = 0.0
    resume_job(sqlite_store, job)
    assert Worker(sqlite_store).work_one()
    assert get_job(sqlite_store, job).state == State.DONE


@pytest.mark.slow
def test_one_that_does_not_load_fails_with_its_reason_and_the_server_goes_on(
    client, sqlite_store, hub, evaluators, monkeypatch
):
    config = hub.folders[SMALL] / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"hidden_size": 32}))
    job = fetch(client).json()["job"]
    assert Worker(sqlite_store).work_one()
    failed = get_job(sqlite_store, job)
    assert failed.state == State.FAILED
    assert failed.reason.startswith(f"{SMALL} was fetched, but cannot be loaded: ")
    assert evaluators.names == ["tiny"]
    page = page_of(client)
    assert failed.reason in page.text
    assert f"It does not load: {failed.reason.partition('does not load: ')[2]}" in page.text
    assert SMALL in offered(page)
    # Later it stands beside its model alone.
    monkeypatch.setattr("stepsight.app.evaluators.page._SHOWN_FAILURES", timedelta())
    page = page_of(client)
    assert "Not fetched" not in [one.text for one in page.all("h2")]
    (said,) = [one.text for one in page.all("small", cls="reason") if "Not fetched: " in one.text]
    assert f"{SMALL} was fetched, but cannot be loaded" in said
    assert client.post("/api/v1/score", json={"problem": "1?", "steps": ["1"]}).status_code == 200


def test_too_little_free_memory_fails_the_try_and_later_it_loads_without_the_hub(
    client, sqlite_store, tmp_path, monkeypatch
):
    job = fetch(client).json()["job"]
    with monkeypatch.context() as patch:
        patch.setattr(memory, "free_memory", lambda: 1_000_000)
        assert Worker(sqlite_store).work_one()
    failed = get_job(sqlite_store, job)
    assert "needs about 300." in failed.reason
    assert "MB of memory; 1.0 MB is free." in failed.reason
    point_to(monkeypatch, "http://127.0.0.1:9", tmp_path / "hub")
    assert fetch(client).status_code == 201
    assert Worker(sqlite_store).work_one()
    assert NAME in client.get("/").text


def test_an_adapter_comes_with_its_base_as_one_job_that_goes_on_after_a_break(
    client, sqlite_store, hub, tmp_path, monkeypatch
):
    psa, qwen = "openreasoner/Math-psa", "Qwen/Qwen2.5-Math-7B-Instruct"
    for module in (memory, model_list):
        monkeypatch.setattr(module, "total_memory", lambda: 10**12)
    base, folder = tmp_path / "base", tmp_path / "Math-psa"
    write_language_model(base, QWEN2, tokenizer_of(QWEN2))
    write_adapter(folder / "checkpoint-2127", "their base", load_file(base / WEIGHTS))
    hub.folders |= {psa: folder, qwen: base}
    hub.commits[qwen] = "b" * 40
    assert "Fetched with its base, Qwen2.5-Math-7B-Instruct: it is an adapter." in page_of(client).text
    job = fetch(client, psa).json()["job"]
    request = get_job(sqlite_store, job).request
    assert request == {"repo": psa, "revision": COMMIT, "parts": {f"{qwen}@main": "b" * 40}}
    hub.cut, hub.times = {WEIGHTS: 0}, 100
    assert Worker(sqlite_store).work_one()
    failed = get_job(sqlite_store, job)
    assert (failed.state, failed.reason.startswith(f"{qwen}: the connection to the model hub")) == (
        State.FAILED,
        True,
    )
    # Later it goes on where it broke, at the commits of before.
    hub.times, hub.commits[qwen], hub.tags = 0, "c" * 40, {"b" * 40}
    hub.asked.clear()
    resume_job(sqlite_store, job)
    assert Worker(sqlite_store).work_one()
    done = get_job(sqlite_store, job)
    assert (done.state, done.reason) == (State.DONE, "Math-psa: two-token format, inputs of up to 256 tokens.")
    assert (hub.sent("adapter_model.safetensors"), hub.sent(WEIGHTS)) == ([], [None])
    fetched = find_fetched(psa)
    assert fetched.pins == request["parts"]
    files = [fetched.files, *(one.files for one in fetched.parts.values())]
    assert done.total == sum(size for one in files for size in one.values())


def test_one_named_at_the_start_is_fetched_then_and_shown_once(sqlite_store, hub, capsys):
    evaluators = Evaluators([SMALL], shipped=False, fetched=True)
    assert f"{SMALL} at {COMMIT}: " in capsys.readouterr().err
    with asking(sqlite_store, evaluators) as client:
        page = page_of(client)
        assert f"{NAME}started with" in page.text.replace("\n", "")
        assert "has not been loaded" not in page.text
        assert SMALL not in offered(page)
    describe_fetched(find_fetched(SMALL), Placement())
    assert Evaluators([SMALL], shipped=False, fetched=True).names == [NAME]


def test_a_job_has_memory_given_up_for_it_and_goes_on(client, sqlite_store, evaluators, monkeypatch):
    add(sqlite_store)
    fetch(client)
    assert Worker(sqlite_store).work_one()
    client.post("/api/v1/jobs", json={"dataset": "sums", "evaluator": NAME, "mode": "offline"})
    free, asked = [1_000_000], []

    def give(needed):
        asked.append(needed)
        free[0] = 10**12

    with monkeypatch.context() as patch:
        patch.setattr(memory, "free_memory", lambda: free[0])
        assert Worker(sqlite_store, ask_room=give).work_one()
    done = list_jobs(sqlite_store)[0]
    assert (done.state, done.reason, asked) == (State.DONE, "", [memory.memory_of(find_fetched(SMALL), "float32")])
    # Nobody who gives any: the job says what it lacks.
    client.post("/api/v1/jobs", json={"dataset": "sums", "evaluator": NAME, "mode": "online"})
    monkeypatch.setattr("stepsight.app.jobs.kinds._ROOM", 0.2)
    with monkeypatch.context() as patch:
        patch.setattr(memory, "free_memory", lambda: 1_000_000)
        assert Worker(sqlite_store, ask_room=asked.append).work_one()
    assert "of memory; 1.0 MB is free" in list_jobs(sqlite_store)[0].reason
    assert len(asked) == 2


def listed(page):
    return [row.attributes["data-repo"] for row in page.all("tr") if "data-repo" in row.attributes]


def test_public_evaluators_stand_in_the_order_of_their_use(client, sqlite_store, monkeypatch):
    """Fetched, then with room on this machine, each with the best published figure first."""
    for module in (memory, model_list):
        monkeypatch.setattr(module, "total_memory", lambda: 8_000_000_000)
    best, small = (f"HuggingFaceH4/Qwen2.5-Math-{size}B-Instruct-PRM-0.2" for size in ("7", "1.5"))
    monkeypatch.setattr(model_list.os, "cpu_count", lambda: 2)
    page = page_of(client)
    # Twice 1.5 thousand million weights for each of 300 tokens, at 80 or 240 thousand million operations a second.
    seconds = {"float32": 12, "bfloat16": 4}[expected_dtype("", Placement())]
    assert f"Start with {small}:" in page.text
    assert f"this processor reads a solution of 300 tokens in about {seconds} s." in page.text
    before = listed(page)
    assert before[0] == small
    # Two of one name, by two owners.
    assert {small, small.replace("HuggingFaceH4", "plaguss")} <= set(before)
    assert before.index("Qwen/Qwen2.5-Math-PRM-72B") < before.index(best)
    assert before.index("Qwen/Qwen2.5-Math-PRM-72B") > before.index(SMALL)
    fetch(client)
    assert Worker(sqlite_store).work_one()
    assert listed(page_of(client))[:2] == [SMALL, small]


@pytest.mark.parametrize("name", shipped_evaluators())
def test_the_card_of_a_shipped_evaluator_is_whole(name):
    text = (asset("evaluators", name) / "README.md").read_text(encoding="utf-8")
    card = read(card_html(name))
    assert len(card.all("h3")) == text.count("\n## ")
    assert len(card.all("table")) == text.count("\n\n|")
    rows = [line for line in text.splitlines() if line.startswith("|") and "---" not in line and line != "| | |"]
    assert len(card.all("tr")) == len(rows)
    assert "parameters" in [head.text for head in card.all("th", scope="row")]
    assert [part.text for part in card.all("p") if "|" in part.text or "**" in part.text] == []


def test_an_evaluator_that_is_not_shipped_has_no_card():
    assert card_html(EQUATIONS) == card_html("../mini-bidir") == card_html("lab/large") == ""


def test_every_evaluator_has_a_place_that_its_card_is_found_at(sqlite_store):
    evaluators = Evaluators([*shipped_evaluators()[:1], EQUATIONS], shipped=False)
    page = read(state_html(sqlite_store, evaluators, may_fetch=False))
    rows = [evaluators.register(sqlite_store, name) for name in evaluators.all_names]
    places = [page.one(id=card_id(row.fingerprint)) for row in rows]
    assert [place.tag for place in places] == ["div", "tr"]
    assert page.all("details", cls="model-card")[0].one("summary").text == f"Model card of {rows[0].name}"
