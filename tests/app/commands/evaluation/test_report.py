"""`stepsight report` as it is typed, within this process."""

import csv
import json

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


def test_the_report_has_the_numbers_that_evaluate_prints(db, tmp_path, capsys):
    folder = tmp_path / "out"
    options = ["--draws", "20", "--db", db]
    assert main(["report", "--dataset", "three_way", "--output", str(folder), *options]) == 0
    assert capsys.readouterr().out == f"{folder / 'report.html'}\n"
    assert main(["evaluate", "--dataset", "three_way", "--json", *options]) == 0
    said = {
        (row["errors"], row["mode"], row["evaluator"]): row for row in json.loads(capsys.readouterr().out)["rows"]
    }
    assert len(said) == 22
    for (errors, mode, evaluator), row in said.items():
        with open(folder / "tables" / f"three-way-{errors}-{mode}.csv", encoding="utf-8-sig", newline="") as file:
            (told,) = [line for line in csv.DictReader(file) if line["evaluator"] == evaluator]
        for name in ("sol_f1", "sol_auc", "step_f1", "step_auc"):
            assert (float(told[name]) if told[name] else None) == row[name]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--dataset", "nowhere"], "There is no dataset 'nowhere'. The store holds three_way."),
        (["--dataset", "three_way", "--evaluator", "nobody"], "'nobody' has no judgments of three_way."),
        (["--dataset", "three_way", "--draws", "0"], "--draws is 0, expected more than 0."),
    ],
)
def test_mistakes_are_told_and_nothing_is_written(db, tmp_path, capsys, options, message):
    folder = tmp_path / "out"
    assert main(["report", "--output", str(folder), "--db", db, *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"stepsight report: {message}")
    assert not folder.exists()
