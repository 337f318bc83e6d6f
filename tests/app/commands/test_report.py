"""`stepsight report` as it is typed, within this process."""

import pytest

from stepsight.app.commands.cli import main
from stepsight.storage.database.store import open_store
from tests.training.judged import fill


@pytest.fixture
def db(tmp_path):
    path = str(tmp_path / "store.db")
    with open_store(path) as store:
        fill(store)
    return path


def test_the_report_is_written_and_its_page_named(db, tmp_path, capsys):
    folder = tmp_path / "out"
    assert main(["report", "--dataset", "three_way", "--output", str(folder), "--draws", "20", "--db", db]) == 0
    assert capsys.readouterr().out == f"{folder / 'report.html'}\n"
    assert (folder / "tables" / "three-way-invalid-offline.csv").is_file()
