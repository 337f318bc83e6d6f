"""`stepsight report` as it is typed, within this process."""

import csv
import json
import sys

import pytest

from stepsight.app.commands.cli import main
from stepsight.core.paths import asset
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


@pytest.mark.slow
def test_figures_for_a_paper(tmp_path, capsys, monkeypatch, browser_path):
    printed = str(asset("reference", "filter-ablation.json"))
    assert main(["report", "filtering", printed, "--output", str(tmp_path / "out"), "--figures"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'out' / 'report.html'}\n"
    names = [f"the-paper-pass-1-and-length-{kind}-by-subset" for kind in ("length", "pass-1")]
    assert sorted(path.name for path in (tmp_path / "out" / "figures").iterdir()) == [
        f"{name}.{suffix}" for name in names for suffix in ("pdf", "png", "svg")
    ]
    # An option may stand before the subject too.
    assert main(["report", "--figures", "filtering", printed]) == 2
    assert capsys.readouterr() == ("", "stepsight report: --figures goes with --output.\n")
    monkeypatch.setitem(sys.modules, "kaleido", None)
    assert main(["report", "filtering", printed, "--output", str(tmp_path / "other"), "--figures"]) == 2
    assert "pip install 'stepsight[figures]'" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()
