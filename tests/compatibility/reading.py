"""What this version reads from the files that a version wrote, through commands and the HTTP API, which stay as
well: a change of the inside changes nothing here.
"""

import gzip
import json
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path

from sqlalchemy import NullPool, create_engine

from stepsight.app.commands.cli import main
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.storage.database.location import locate
from stepsight.storage.database.store import open_store
from tests.app.client import PAGE, asking
from tests.filling import PASSWORD, PERSON

SQLITE, POSTGRESQL = "store.sqlite.gz", "store.postgresql.sql"
EVENTS, PATCH, SCORES = "events.jsonl", "patch.jsonl", "scores.jsonl"
EVALUATOR, LINKS = "evaluator", "links.json"
DATASETS, CAMPAIGNS = ("sums", "control"), ("blind", "shown")
# Conditions of Browse, as they stand in its addresses and in the API.
QUERIES = (
    "verdict=valid&evaluator=mini&mode=online",
    "gold=error&sort=-validity&evaluator=mini",
    "q=1+%2B+1",
    "meta=level%3D2",
    "evaluator=mini&against=binary",
)
PROBLEM = {
    "problem": "What is 2 + 3?",
    "steps": ["2 + 3 = 6.", ["Check: 6 - 3 = 3.", "So 6."]],
    "mode": "hindsight",
}


def run(*words):
    """Run a command of `stepsight`, which has to succeed; returns what it prints."""
    with redirect_stdout(StringIO()) as printed:
        assert main([str(word) for word in words]) == 0, words
    return printed.getvalue()


def traces_of(dataset):
    """The file of a dataset's traces."""
    return f"traces.{dataset}.jsonl"


def load_store(folder, address):
    """Put the store of a folder at the address of an empty database."""
    url = locate(address)
    if url.get_backend_name() == "sqlite":
        Path(address).write_bytes(gzip.decompress((folder / SQLITE).read_bytes()))
        return
    with create_engine(url, poolclass=NullPool).begin() as connection:
        connection.connection.cursor().execute((folder / POSTGRESQL).read_text(encoding="utf-8"))


def copy_store(folder, scratch):
    """Put the store of a folder into another; returns its address."""
    load_store(folder, str(scratch / "copy.db"))
    return str(scratch / "copy.db")


def read_store(address, scratch):
    """Datasets, traces, judgments, pages of Browse, jobs, figures of an evaluation, and the logs of campaigns."""
    with client_of(address) as client:
        traces = {dataset: _traces(client, dataset) for dataset in DATASETS}
        content = {
            "traces": traces,
            "datasets": _get(client, "datasets"),
            "jobs": _get(client, "jobs"),
            "evaluators": [evaluator for evaluator in _get(client, "evaluators") if not evaluator["scores"]],
            "pages": {query: _get(client, f"datasets/sums/traces?{query}")["traces"] for query in QUERIES},
        }
    content["figures"] = json.loads(run("evaluate", "--dataset", "sums", "--json", "--force", "--db", address))
    return content | {"logs": {name: _export(name, address, scratch, "events") for name in CAMPAIGNS}}


def read_evaluator(folder, scratch):
    """What the evaluator is, and its scores of a trace."""
    with client_of(copy_store(folder, scratch), folder / EVALUATOR) as client:
        about = next(evaluator for evaluator in _get(client, "evaluators") if evaluator["name"] == EVALUATOR)
        answer = client.post("/api/v1/score", json=PROBLEM)
        assert answer.status_code == 200, answer.text
        return {"about": about, "scores": answer.json()}


def read_events(folder, scratch):
    """The labels that the log of a campaign folds to, imported into a store that has the traces alone."""
    address = str(scratch / "new.db")
    for dataset in DATASETS:
        run("import", "jsonl", folder / traces_of(dataset), "--dataset", dataset, "--db", address)
    run("import", "labels", folder / EVENTS, "--db", address)
    return _export("blind", address, scratch, "jsonl")


def read_patch(folder, scratch):
    """The figures of an evaluation with the accepted disputes of the patch."""
    address = copy_store(folder, scratch)
    return json.loads(
        run("evaluate", "--dataset", "sums", "--patch", folder / PATCH, "--json", "--force", "--db", address)
    )


def read_scores(folder, scratch):
    """The file of scores, stored as those of another evaluator."""
    address = copy_store(folder, scratch)
    run("import-scores", "sums", folder / SCORES, "--evaluator", "released", "--db", address)
    with client_of(address) as client:
        judgments = [judgment for trace in _traces(client, "sums") for judgment in trace["judgments"]]
    # They were stored just now.
    return [judgment | {"created": ""} for judgment in judgments if judgment["evaluator"] == "released"]


def read_links(folder, scratch):
    """The results that permalinks show."""
    with client_of(copy_store(folder, scratch), folder / EVALUATOR) as client:
        links = json.loads((folder / LINKS).read_text(encoding="utf-8"))
        for link in links["pages"]:
            assert client.get(link, headers=PAGE).status_code == 200, link
        answers = [client.get(f"/score/result.json?s={link}") for link in links["results"]]
        assert {answer.status_code for answer in answers} == {200}, [answer.text for answer in answers]
        return [answer.json() for answer in answers]


READERS = {
    "links": read_links,
    "evaluator": read_evaluator,
    "events": read_events,
    "patch": read_patch,
    "scores": read_scores,
}


@contextmanager
def client_of(address, *folders):
    """A client of the application on a store, logged in with the password of then."""
    with (
        open_store(address) as store,
        asking(store, Evaluators(folders or ["mini-causal"], shipped=False)) as client,
    ):
        answer = client.post("/login", data={"name": PERSON, "password": PASSWORD}, follow_redirects=False)
        assert answer.status_code == 303, answer.text
        yield client


def _get(client, path):
    answer = client.get(f"/api/v1/{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def _traces(client, dataset):
    lines = _get(client, f"datasets/{dataset}/traces")["traces"]
    return [_get(client, f"traces/{line['trace']}") for line in lines]


def _export(campaign, address, scratch, kind):
    path = scratch / f"{campaign}.exported"
    run("export", "labels", campaign, path, "--format", kind, "--force", "--db", address)
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
