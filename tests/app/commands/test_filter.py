"""`stepsight filter` as it is typed, within this process."""

import json

import pytest

from stepsight.app.commands.cli import main
from tests.checkpoints import write_evaluator
from tests.training.experiments.filtering.pools import sums, write_rows


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return str(write_evaluator(tmp_path_factory.mktemp("evaluators") / "tiny"))


@pytest.fixture
def pool(tmp_path):
    return str(write_rows(tmp_path / "pool.jsonl", sums(40)))


@pytest.fixture
def run(tmp_path):
    def run(*arguments):
        return main(["filter", *map(str, arguments), "--db", str(tmp_path / "store.db")])

    return run


def test_the_manifest_is_named_and_summarised(tmp_path, capsys, run, pool, tiny):
    folder = tmp_path / "out"
    options = ["--evaluator", tiny, "--output", folder, "--validity", "0.3", "--redundancy", "0.6"]
    assert run(pool, *options) == 0
    out, err = capsys.readouterr()
    assert out == f"{folder / 'manifest.json'}\n"
    size = json.loads((folder / "manifest.json").read_text())["size"]
    assert err.splitlines()[0].startswith("40 solutions judged by tiny: ")
    assert err.splitlines()[0].endswith(f" {size} valid and not redundant.")
    assert err.splitlines()[1] == f"{size} of them in each of val+red, val, red, random."
    # Again, it only says so; and so it does of the dataset that it made.
    before = (folder / "manifest.json").stat().st_mtime_ns
    for source in ([pool], ["--dataset", "pool"]):
        assert run(*source, *options) == 0
        assert capsys.readouterr() == (out, err)
    assert (folder / "manifest.json").stat().st_mtime_ns == before


def test_every_option_is_passed_on(tmp_path, capsys, run, tiny):
    rows = [{"ask": row["instruction"], "tell": row["output"], "source": "é"} for row in sums(12)]
    rows[4]["tell"] = ""
    pool = write_rows(tmp_path / "pool.jsonl", rows)
    benchmark = write_rows(tmp_path / "test.jsonl", [{"problem": "What is 2 + 3?", "answer": "5"}])
    options = [pool, "--fields", "ask", "tell", "--evaluator", tiny, "--output", tmp_path / "out", "--skip-bad"]
    options += ["--by", "val", "--by", "random", "--match", "99", "--seed", "3", "--benchmark", benchmark]
    assert run(*options, "--dataset", "mine", "--where", "source=é", "--sample", "11") == 0
    err = capsys.readouterr().err.splitlines()
    assert err[0] == "The pool: 11 of 11 solutions that meet source=é."
    assert err[-2:] == [
        f"1 row is a problem of {tmp_path.name}/test.jsonl, and left out.",
        f"1 row was left out; {tmp_path / 'out' / 'manifest.json'} says why.",
    ]
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert (manifest["pool"]["dataset"], manifest["seed"], manifest["match"], manifest["size"]) == (
        "mine",
        3,
        99,
        10,
    )
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "manifest.json", "random.jsonl", "run.json", "val.jsonl",
    ]  # fmt: skip
