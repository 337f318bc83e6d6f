"""A store whose JSON, or whose packed numbers, somebody changed by other means: pages, files, commands and the API
show what is there or say what is damaged."""

import json
import shutil
import sqlite3
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from stepsight.app.commands.cli import main
from stepsight.core.keyed_cache import KeyedCache
from stepsight.storage.database.jobs_schema import Task
from stepsight.storage.database.store import open_store
from stepsight.storage.jobs.jobs import start_job, start_request
from stepsight.storage.judgments.evaluators import Threshold, register_evaluator, save_calibration
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.labelling.queue import assign_next
from stepsight.storage.labelling.record import record
from stepsight.storage.people.users import local_user
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from tests.app.client import asking
from tests.fuzz.attack import COUNT
from tests.fuzz.mutations import changed, damaged
from tests.seeds import chance
from tests.storage.labelling.labelled_sums import TRACES, labelled
from tests.storage.labelling.samples import act, campaign
from tests.storage.samples import judge

# What is damaged in one place is looked for in many.
EACH = max(3, COUNT // 12)
JSON_COLUMNS = {
    "traces": ("meta",),
    "evaluators": ("info",),
    "calibrations": ("info",),
    "jobs": ("request",),
    "campaigns": ("settings",),
    "label_events": ("old", "new"),
}
PACKED = {"judgments": ("scores",), "triangles": ("offline", "online", "packed")}
PLACES = [(table, column) for table, columns in (JSON_COLUMNS | PACKED).items() for column in columns]
PAGES = [
    "/browse?dataset=sums", "/browse?dataset=sums&evaluator=mini&meta=level%3E%3D1", "/browse?dataset=sums&trace=1",
    "/browse?dataset=sums&evaluator=mini&sort=change&trace=2",
    "/browse/export?dataset=sums&content=judgments&format=csv", "/browse/export?dataset=sums&content=traces",
    "/browse/trace.json?dataset=sums&trace=1", "/browse/trace.csv?dataset=sums&trace=1", "/results?dataset=sums",
    "/evaluators/state", "/data/state", "/jobs/list", "/annotate",
    "/annotate/campaign?campaign=1", "/annotate/campaign?campaign=2", "/annotate/label?campaign=2",
    "/annotate/agreement?campaign=1", "/annotate/adjudicate?campaign=1", "/annotate/disputes", "/people",
    "/annotate/export?campaign=1&format=events", "/annotate/export?campaign=1&format=jsonl&each=1",
    "/annotate/new?dataset=sums&evaluator=mini", "/api/v1/datasets", "/api/v1/datasets/sums/traces?evaluator=mini",
    "/api/v1/traces/1", "/api/v1/traces/2", "/api/v1/evaluators", "/api/v1/jobs",
]  # fmt: skip
COMMANDS = [
    ("datasets",), ("campaign", "list"), ("evaluate", "--dataset", "sums", "--draws", "10"),
    ("agreement", "first", "--draws", "10"), ("export", "traces", "sums", "OUT"),
    ("export", "judgments", "sums", "OUT", "--format", "csv"),
    ("export", "labels", "first", "OUT", "--format", "events"),
    ("export", "labels", "first", "OUT", "--format", "jsonl"), ("work", "--once"),
]  # fmt: skip


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A store in which every column has something, its file closed, and without what guards its logs."""
    path = tmp_path_factory.mktemp("fuzz") / "sound.db"
    with open_store(str(path)) as store:
        _fill(store)
    with closing(sqlite3.connect(path)) as database:
        triggers = database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for (name,) in triggers:
            if "label_events" in name:
                database.execute(f'DROP TRIGGER "{name}"')
        database.execute("PRAGMA journal_mode = DELETE")
        assert all(database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table, _ in PLACES)
    return path


def _fill(store):
    traces = [replace(trace, meta={"source": "MATH", "level": 3, "tags": ["a", "b"]}) for trace in TRACES]
    labelled(store, traces)
    dataset = find_dataset(store, "sums")
    info = {
        "outputs": "three-way",
        "thresholds": {"validity": 0.5, "redundancy": 0.2},
        "parameters": 5,
        "context": 9,
    }
    mini = register_evaluator(store, name="mini", fingerprint="m", format="f", attention="causal", info=info)
    stored = list(iterate_traces(store, dataset.id))
    save_judgments(store, mini.id, [judge(trace, "hindsight", trace.trace_id) for trace in stored])
    save_calibration(store, mini.id, dataset, Threshold.VALIDITY, 0.4, {"draws": 10})
    made = campaign(store, None, name="open", shows="scores", evaluator=mini.id, suggests=True)
    task = assign_next(store, made.id, local_user(store))
    assert task is not None
    record(store, task.slot, local_user(store), act("label", 0, "neg"))
    start_request(store, Task.IMPORT, "something", {"benchmark": "processbench"}, 10)
    start_request(store, Task.IMPORT, "a table", {"upload": 1, "holds": "traces", "columns": {"problem": "q"}}, 10)
    start_job(store, dataset.id, evaluator="mini", spec="mini-bidir", fingerprint="m", mode="online")


@pytest.fixture(scope="module")
def used(sound, tmp_path_factory, evaluators):
    path = Path(shutil.copy(sound, tmp_path_factory.mktemp("used") / "store.db"))
    with open_store(str(path)) as store, asking(store, evaluators) as client:
        yield path, store, client


@contextmanager
def damage(path, table, column, rng):
    """Another value in one row of a column, and the one before put back."""
    key = "rowid" if table != "judgments" else "trace_id || mode"
    with closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as database:
        rows = database.execute(f"SELECT {key}, {column} FROM {table} WHERE {column} IS NOT NULL").fetchall()
        row, before = rng.choice(rows)
        after = _damaged(before, rng)
        change = f"UPDATE {table} SET {column} = ? WHERE {key} = ?"
        database.execute(change, [after, row])
        try:
            yield after
        finally:
            database.execute(change, [before, row])


def _damaged(value, rng):
    if isinstance(value, bytes):
        return rng.choice([value[:-1], value + b"\0", value[:4], b"", b"\xff" * len(value), damaged(value, rng)])
    if rng.random() < 0.25:
        # SQLite takes any bytes as text, and Python reads none that are not.
        return damaged(value.encode(), rng).decode("utf-8", "ignore").replace("\0", "")
    return json.dumps(changed(json.loads(value), rng)).replace("\\u0000", "?")


@pytest.mark.parametrize(("table", "column"), PLACES)
def test_pages_and_the_api(table, column, used):
    path, store, client = used
    refused = 0
    for number in range(EACH):
        rng = chance(f"{table}.{column}:{number}")
        with damage(path, table, column, rng) as value:
            # No version tells of a change made behind the store's back.
            store.cache = KeyedCache(2**20)
            for address in rng.sample(PAGES, 5):
                for accept in ("text/html", "application/json"):
                    response = client.get(address, headers={"accept": accept})
                    place = (table, column, number, repr(value)[:200], address, response.status_code)
                    refused += response.status_code >= 400
                    assert "Traceback" not in response.text, place
                    if response.headers["content-type"] == "application/json" and response.status_code >= 400:
                        assert all(len(said) <= 2000 for said in response.json().values()), place
                    if response.status_code >= 500:
                        assert "Something else than StepSight changed the store" in response.text, place
    assert client.get("/browse?dataset=sums&trace=1").status_code == 200
    assert refused or EACH < 20


@pytest.mark.parametrize(("table", "column"), PLACES)
def test_commands(table, column, sound, tmp_path, capsys):
    path = Path(shutil.copy(sound, tmp_path / "store.db"))
    for number in range(EACH):
        rng = chance(f"commands {table}.{column}:{number}")
        with damage(path, table, column, rng):
            for command in rng.sample(COMMANDS, 2):
                words = [str(tmp_path / "out") if word == "OUT" else word for word in command]
                more = ["--force"] if command[0] == "export" else []
                code = main([*words, *more, "--db", str(path)])
                said = capsys.readouterr().err
                assert code in (0, 2), (table, column, number, command)
                assert len(said) <= 4100, said
                assert "Traceback" not in said, (table, column, number, command, said)
