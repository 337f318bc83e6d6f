"""What today's version reads from the files that a version wrote.

It is asked through commands and the HTTP API, which are promised to stay as well: a change of the inside changes
nothing here.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from stepsight.app.commands.cli import main
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.files.label_patch import read_patch
from stepsight.storage.database.store import open_store
from tests.app.client import asking
from tests.compatibility.filling import PASSWORD, PERSON
from tests.compatibility.stores import SQLITE

BACKUP, EVENTS, LABELS, PATCH, SCORES = (
    "store.backup",
    "events.jsonl",
    "labels.jsonl",
    "patch.jsonl",
    "scores.jsonl",
)
EVALUATOR = "evaluator"
LINKS = "permalinks.json"
DATASETS = ("sums", "control")
CAMPAIGNS = ("blind", "shown")
# Conditions of Browse, as they stand in its addresses, in saved views and in the API.
QUERIES = (
    "verdict=valid&evaluator=mini&mode=online",
    "gold=error&sort=-validity&evaluator=mini",
    "q=1+%2B+1",
    "relabelled=yes",
    "meta=level%3D2",
    "evaluator=mini&against=binary",
)
PROBLEM = {"problem": "What is 2 + 3?", "steps": ["2 + 3 = 6.", ["Check: 6 - 3 = 3.", "So 6."]]}

Reader = Callable[[Path, Path], Any]


def run(*words: str | Path) -> None:
    """Run a command of `stepsight`, which has to succeed."""
    assert main([str(word) for word in words]) == 0, words


def read_backup(folder: Path, scratch: Path) -> Any:
    """The store that the backup is restored to."""
    path = scratch / "restored.db"
    run("restore", folder / BACKUP, "--db", path)
    return read_address(str(path), scratch)


def read_evaluator(folder: Path, scratch: Path) -> Any:
    """What the evaluator is, and what it says of a trace."""
    with _client(_copy(folder, scratch), folder / EVALUATOR) as client:
        (about,) = (one for one in _get(client, "evaluators") if one["name"] == EVALUATOR)
        answer = client.post("/api/v1/score", json=PROBLEM | {"mode": "hindsight"})
        assert answer.status_code == 200, answer.text
        return {"about": about, "said": answer.json()}


def read_events(folder: Path, scratch: Path) -> Any:
    """The log of a campaign, which is imported into a store that has the traces alone, and exported again."""
    return _export("blind", _import(folder, EVENTS, scratch), scratch, "events")


def read_labels(folder: Path, scratch: Path) -> Any:
    """The labels of a campaign, likewise."""
    return _export("blind", _import(folder, LABELS, scratch), scratch, "jsonl")


def read_changes(folder: Path, scratch: Path) -> Any:
    """The label patch."""
    patch = read_patch(folder / PATCH)
    return {"dataset": patch.dataset, "changes": [change.as_json() for change in patch.changes]}


def read_scores(folder: Path, scratch: Path) -> Any:
    """The file that `stepsight score` wrote, stored as what a released evaluator says."""
    address = _copy(folder, scratch)
    run("import-scores", "sums", folder / SCORES, "--evaluator", "released", "--db", address)
    with _client(address) as client:
        said = [one for trace in _traces(client, "sums") for one in trace["judgments"]]
    # They were stored just now.
    return [one | {"created": ""} for one in said if one["evaluator"] == "released"]


def read_permalinks(folder: Path, scratch: Path) -> Any:
    """What the links to results show."""
    with _client(_copy(folder, scratch), folder / EVALUATOR) as client:
        answers = [client.get(f"/score/result.json?s={link}") for link in json.loads((folder / LINKS).read_text())]
        assert {answer.status_code for answer in answers} == {200}, [answer.text for answer in answers]
        return [answer.json() for answer in answers]


READERS: dict[str, Reader] = {
    "permalinks": read_permalinks,
    "evaluator": read_evaluator,
    "events": read_events,
    "labels": read_labels,
    "patch": read_changes,
    "scores": read_scores,
}


def _copy(folder: Path, scratch: Path) -> str:
    address = str(scratch / "store.db")
    shutil.copyfile(folder / SQLITE, address)
    return address


def read_address(address: str, scratch: Path) -> Any:
    """The store at an address through its datasets, traces, judgments, jobs, and the logs of its campaigns."""
    with _client(address) as client:
        datasets = {name: _traces(client, name) for name in DATASETS}
        pages = {query: _get(client, f"datasets/sums/traces?{query}")["traces"] for query in QUERIES}
        found = {"datasets": _get(client, "datasets"), "jobs": _get(client, "jobs"), "pages": pages}
        evaluators = [one for one in _get(client, "evaluators") if not one["scores"]]
    logs = {name: _export(name, address, scratch, "events") for name in CAMPAIGNS}
    return found | {"traces": datasets, "evaluators": evaluators, "logs": logs}


def _traces(client: TestClient, dataset: str) -> list[Any]:
    lines = _get(client, f"datasets/{dataset}/traces")["traces"]
    return [_get(client, f"traces/{line['trace']}") for line in lines]


@contextmanager
def _client(address: str, *folders: Path) -> Iterator[TestClient]:
    """A client of the application on a store, logged in with the password of then."""
    with (
        open_store(address) as store,
        asking(store, Evaluators(folders or ["mini-causal"], shipped=False)) as client,
    ):
        answer = client.post("/login", data={"name": PERSON, "password": PASSWORD}, follow_redirects=False)
        assert answer.status_code == 303, answer.text
        yield client


def _get(client: TestClient, path: str) -> Any:
    answer = client.get(f"/api/v1/{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def _import(folder: Path, name: str, scratch: Path) -> str:
    address = str(scratch / "new.db")
    for dataset in DATASETS:
        run("import", "jsonl", folder / traces_of(dataset), "--dataset", dataset, "--db", address)
    run("import", "labels", folder / name, "--db", address)
    return address


def _export(campaign: str, address: str, scratch: Path, format: str) -> list[Any]:
    path = scratch / f"{campaign}.exported"
    run("export", "labels", campaign, path, "--format", format, "--force", "--db", address)
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def traces_of(dataset: str) -> str:
    """The file of a dataset's traces."""
    return f"traces.{dataset}.jsonl"
