"""The commands that write and read labels and backups."""

import pytest

from stepsight.storage.database.store import open_store
from stepsight.storage.traces.queries import list_datasets
from tests.storage.labelling.labelled_sums import labelled
from tests.storage.labelling.samples import TRACES
from tests.storage.samples import add


@pytest.fixture
def path(sqlite_store):
    labelled(sqlite_store)
    return sqlite_store.name


def test_labels_go_out_and_in(path, command, tmp_path):
    file = tmp_path / "labels.jsonl"
    code, out, err = command("export", "labels", "first", file, "--format", "jsonl", "--db", path)
    assert (code, out, err) == (0, f"{file}: 3 traces.\n", "")
    code, _, err = command("export", "labels", "first", file, "--format", "events", "--db", path)
    assert (code, err) == (
        2,
        f"stepsight export: {file}: already exists. Name another file, or replace it with --force.\n",
    )
    assert command("export", "labels", "first", file, "--format", "events", "--force", "--db", path)[0] == 0
    other = tmp_path / "other.db"
    with open_store(str(other)) as store:
        add(store, TRACES, "sums")
    assert command("import", "labels", file, "--db", other) == (
        0,
        "first: 41 events added.\n",
        "",
    )
    assert command("import", "labels", file, "--db", other)[1].startswith("first: nothing new")


def test_a_store_is_backed_up_and_restored(path, command, tmp_path):
    file = tmp_path / "monday.backup"
    code, out, _ = command("backup", file, "--db", path)
    assert code == 0
    assert "rows" in out
    assert command("backup", file, "--db", path)[0] == 2
    code, out, _ = command("restore", file, "--db", tmp_path / "new.db")
    assert code == 0
    with open_store(str(tmp_path / "new.db")) as store:
        assert [dataset.name for dataset in list_datasets(store)] == ["sums"]
    code, _, err = command("restore", file, "--db", path)
    assert code == 2
    assert "the store is not empty" in err
    code, out, _ = command("restore", file, "--force", "--db", path)
    assert code == 0
    (aside,) = tmp_path.glob("store.before-*.db")
    assert str(aside) in out
