"""From a benchmark to a trained evaluator: relabelled by three people through the server, decided, exported as rows
of PRM800K, imported again and trained on."""

import json
from collections import Counter
from dataclasses import replace
from itertools import count, islice
from typing import Any

import pytest
from starlette.testclient import TestClient

from stepsight.app.web.access import COOKIE
from stepsight.storage.labelling.campaigns import create_campaign
from stepsight.storage.labelling.plan import CampaignPlan
from stepsight.storage.labelling.queue import assign_next
from stepsight.storage.people.logins import open_login
from stepsight.storage.people.users import Role, User, add_user, local_user
from stepsight.storage.traces.imports import import_file
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from stepsight.training.data.sources_config import Data, Source
from stepsight.training.train.config import Backbone
from tests.app.client import asking
from tests.storage.labelling.samples import together
from tests.training.small_runs import CONFIG, write_config

DATASET = "mr-math-invalid"
TRACES = 12
_KEYS = count()


def truth(trace):
    """pos up to the benchmark's first error, then neg; steps after it are not labelled."""
    error = trace.first_error
    return ["pos"] * len(trace.steps) if error is None else ["pos"] * error + ["neg"]


def scripts(place, trace):
    """What three people say. The second finds the first step of every third trace redundant, the third is unsure of
    that of every sixth, and misses the error in every fourth."""
    ada, ben, cyd = truth(trace), truth(trace), truth(trace)
    if place % 4 == 0 and cyd[-1] == "neg":
        cyd = ["pos"] * len(trace.steps)
    if place % 3 == 0 and trace.first_error != 0:
        ben[0] = "neu"
    if place % 6 == 0 and trace.first_error != 0:
        cyd[0] = "unsure"
    return [ada, ben, cyd]


class Client:
    """A person at the server."""

    def __init__(self, client: TestClient, user: User, token: str) -> None:
        self._client, self.user, self._headers = client, user, {"cookie": f"{COOKIE}={token}"}

    def post(self, path: str, **body: Any) -> Any:
        found = self._client.post(f"/annotate/{path}", json=body, headers=self._headers)
        assert found.status_code in (200, 204), found.text
        return found.json() if found.content else None

    def act(self, slot: str, kind: str, step: int | None = None, new: Any = None) -> None:
        self.post(f"slots/{slot}/events", kind=kind, step=step, new=new, key=f"act-{next(_KEYS)}", seconds=0.5)


def label(store, client, campaign, said):
    """Label until nothing is left; returns how many traces there were."""
    done = 0
    while task := assign_next(store, campaign.id, client.user):
        shown = [task.trace.problem, [list(step.substeps) for step in task.trace.steps]]
        for step, name in enumerate(said[json.dumps(shown)]):
            client.act(task.slot, "label", step, name)
        client.act(task.slot, "submit")
        done += 1
    return done


@pytest.fixture
def dataset(sqlite_store, data, tmp_path):
    """The first traces of the published file."""
    with open(data / "mr-math" / "mr-math_invalid_errors.json", encoding="utf-8") as file:
        (tmp_path / "first.json").write_text("".join(islice(file, TRACES)), encoding="utf-8")
    import_file(sqlite_store, DATASET, tmp_path / "first.json")
    return list(iterate_traces(sqlite_store, find_dataset(sqlite_store, DATASET).id))


@pytest.fixture
def clients(sqlite_store, evaluators):
    """Three annotators and an adjudicator, each logged in."""
    roles = {"ada": Role.ANNOTATOR, "ben": Role.ANNOTATOR, "cyd": Role.ANNOTATOR, "eve": Role.ADJUDICATOR}
    users = [add_user(sqlite_store, name, role, f"password of {name}") for name, role in roles.items()]
    with asking(sqlite_store, evaluators) as client:
        yield [Client(client, user, open_login(sqlite_store, user)) for user in users]


@pytest.mark.slow
def test_a_benchmark_is_relabelled_and_trained_on(sqlite_store, dataset, clients, command, tmp_path, monkeypatch):
    assert len(dataset) == TRACES
    plan = CampaignPlan(
        name="second look", dataset=DATASET, guideline="Find the first error.", overlap=3, after_error=False
    )
    campaign = create_campaign(sqlite_store, plan, local_user(sqlite_store))
    *annotators, eve = clients
    said = {
        json.dumps([trace.problem, [list(step.substeps) for step in trace.steps]]): scripts(place, trace)
        for place, trace in enumerate(dataset)
    }
    for place, annotator in enumerate(annotators):
        own = {shown: each[place] for shown, each in said.items()}
        assert label(sqlite_store, annotator, campaign, own) == TRACES

    truths = {trace.id: truth(trace) for trace in dataset}
    ties = [one for one in together(sqlite_store, campaign.id) if "tie" in one.how]
    # Every sixth trace has pos, neu and unsure for its first step, unless that is its error.
    assert {one.trace.id for one in ties} == {trace.id for trace in dataset[::6] if trace.first_error != 0}
    for one in ties:
        fields = {
            "campaign": campaign.id,
            "item": one.annotations[0].item.id,
            "step": one.how.index("tie"),
            "key": f"k{next(_KEYS)}",
        }
        eve.post("adjudicate/decisions", label="pos", reason="It is right.", after=0, **fields)

    exported = tmp_path / "labels.jsonl"
    db = ("--db", sqlite_store.name)
    code, out, _ = command("export", "labels", "second look", exported, "--format", "prm800k", *db)
    assert (code, out) == (0, f"{exported}: {TRACES} traces.\n")
    rows = [json.loads(line) for line in exported.read_text(encoding="utf-8").splitlines()]
    ends = Counter(row["label"]["finish_reason"] for row in rows)
    wrong = sum(trace.first_error is not None for trace in dataset)
    assert ends == {"found_error": wrong, "solution": TRACES - wrong}

    assert command("import", "prm800k", exported, "--dataset", "relabelled", *db)[0] == 0
    again = iterate_traces(sqlite_store, find_dataset(sqlite_store, "relabelled").id)
    labels = {
        (trace.problem, tuple(trace.meta["pre_generated_steps"])): [
            None if label is None else label.text for label in trace.labels
        ]
        for trace in again
    }
    assert labels == {
        (trace.problem, tuple(step.text for step in trace.steps)): truths[trace.id] for trace in dataset
    }

    provenance = train(command, sqlite_store, tmp_path, monkeypatch)
    imported, relabelled = provenance["data"]["sources"]
    assert (imported["traces"], relabelled["traces"]) == (TRACES, TRACES)
    assert relabelled["relabel"]["campaign"] == "second look"
    assert relabelled["relabel"]["steps"]["adjudicated"] == len(ties)


def train(command, store, folder, monkeypatch):
    """Train a few steps on the rows imported again, and on the labels as they are in the store."""
    monkeypatch.setenv("STEPSIGHT_DB", store.name)
    monkeypatch.setenv("BROWSER_PATH", "/nowhere/chromium")
    sources = (
        Source("store", dataset="relabelled"),
        Source("store", dataset=DATASET, labels="relabel", campaign="second look"),
    )
    backbone = Backbone(hidden=32, layers=1, heads=2, mlp=48, context=4096)
    config = replace(CONFIG, data=Data(sources), backbone=backbone, epochs=1)
    path = write_config(folder / "tiny.yaml", config)
    code, _, err = command("train", path, "--output", folder / "run", "--threads", 1)
    assert code == 0, err
    found: dict[str, Any] = json.loads((folder / "run" / "stepsight.json").read_text(encoding="utf-8"))
    return found["provenance"]
