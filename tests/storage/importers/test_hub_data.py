"""Datasets of a hub, fetched by its own client from one on this machine."""

import json

import pytest

from stepsight.core.hubs import hub_cache
from stepsight.storage.importers.column_mapping import ColumnMap
from stepsight.storage.importers.data_files import fetch_data
from stepsight.storage.traces.imports import import_table
from stepsight.storage.traces.queries import find_dataset
from tests.hub import COMMIT, Hub, point_to
from tests.messages import refused

REPO = "some/steps"
COLUMNS = ColumnMap("problem", "steps")


@pytest.fixture
def hub(tmp_path, monkeypatch):
    folder = tmp_path / "served"
    for part, count in (("train", 3), ("test", 1)):
        rows = [json.dumps({"problem": f"{part} {n}", "steps": ["One.", "Two."]}) for n in range(count)]
        path = folder / "data" / f"{part}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(rows) + "\n")
    (folder / "README.md").write_text("# Steps\n")
    with Hub().running() as one:
        one.folders[f"datasets:{REPO}"] = folder
        one.tags.add("v1")
        point_to(monkeypatch, one.url, tmp_path / "hub")
        yield one


def test_a_part_of_a_dataset_comes_at_a_commit_and_once(sqlite_store, hub):
    for _ in range(2):
        import_table(sqlite_store, COLUMNS, fetch_data(REPO, "v1", "train"), "steps")
    dataset = find_dataset(sqlite_store, "steps")
    assert (dataset.traces, dataset.source) == (3, f"{REPO}@{COMMIT}")
    # Neither the other part nor the card; the second time it is in the cache.
    assert [path for method, path, *_ in hub.asked if method == "GET" and "/resolve/" in path] == [
        f"/datasets/{REPO}/resolve/{COMMIT}/data/train.jsonl"
    ]


def test_a_dataset_that_the_hub_does_not_have_is_named(hub, monkeypatch):
    with refused():
        fetch_data(REPO)
    with refused():
        fetch_data(REPO, "", "dev")
    with refused():
        fetch_data(REPO, "v2")
    with refused():
        fetch_data("some/thing")
    monkeypatch.setattr(hub_cache, "free_disk", lambda folder: 200_000_000)
    with refused():
        fetch_data(REPO, "", "train")


def test_a_hub_that_is_not_there_and_a_gated_dataset_are_told(hub, monkeypatch):
    hub.gated.add(f"datasets:{REPO}")
    with refused():
        fetch_data(REPO, "", "train")
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with refused():
        fetch_data(REPO)
