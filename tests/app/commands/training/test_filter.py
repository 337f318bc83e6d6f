"""`stepsight filter` as it is typed, within this process."""

import json

import pytest

from stepsight.app.commands.cli import main
from stepsight.training.experiments.filtering import scoring
from tests.checkpoints import write_evaluator
from tests.training.experiments.filtering.pools import lines, sums, write_rows


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return str(write_evaluator(tmp_path_factory.mktemp("evaluators") / "tiny"))


@pytest.fixture
def pool(tmp_path):
    return str(write_rows(tmp_path / "pool.jsonl", sums(140)))


def run(*arguments):
    return main(["filter", *map(str, arguments)])


def test_the_manifest_is_named_and_told(tmp_path, capsys, pool, tiny):
    folder = tmp_path / "out"
    options = ["--evaluator", tiny, "--output", folder, "--validity", "0.3", "--redundancy", "0.6"]
    assert run(pool, *options) == 0
    out, err = capsys.readouterr()
    assert out == f"{folder / 'manifest.json'}\n"
    size = json.loads((folder / "manifest.json").read_text())["size"]
    assert err.splitlines()[0].startswith("140 solutions judged by tiny: ")
    assert err.splitlines()[0].endswith(f" {size} valid and not redundant.")
    assert err.splitlines()[1] == f"{size} of them in each of val+red, val, red, random."
    # Again, it only tells.
    before = (folder / "manifest.json").stat().st_mtime_ns
    assert run(pool, *options) == 0
    assert capsys.readouterr() == (out, err)
    assert (folder / "manifest.json").stat().st_mtime_ns == before


def test_a_pool_is_drawn_before_it_is_scored(tmp_path, capsys, pool, tiny):
    folder = tmp_path / "out"
    options = ["--evaluator", tiny, "--output", folder, "--validity", "0.3", "--redundancy", "0.6"]
    assert run(pool, *options, "--where", "source=é", "--sample", "20") == 0
    assert capsys.readouterr().err.startswith("The pool: 20 rows of 140.\n20 solutions judged by tiny: ")
    assert run(pool, *options, "--where", "sauce=é") == 2
    assert "no row has the field 'sauce'. Did you mean source?" in capsys.readouterr().err
    assert run(pool, *options, "--sample", "141") == 2
    assert "a sample of 141 rows is requested, but only 140 of 140 rows qualify" in capsys.readouterr().err


def test_some_subsets_of_a_size(tmp_path, capsys, pool, tiny):
    folder = tmp_path / "out"
    options = [
        "--by",
        "val",
        "--by",
        "random",
        "--match",
        "12",
        "--seed",
        "3",
        "--evaluator",
        tiny,
        "--output",
        folder,
    ]
    assert run(pool, *options) == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        "manifest.json", "random.jsonl", "run.json", "scores.jsonl", "val.jsonl",
    ]  # fmt: skip
    assert len(lines(folder / "val.jsonl")) == len(lines(folder / "random.jsonl")) == 12
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["seed"], manifest["match"]) == (3, 12)
    capsys.readouterr()


def test_more_than_there_are_is_said(tmp_path, capsys, pool, tiny):
    options = ["--by", "val", "--match", "500", "--evaluator", tiny, "--output", tmp_path / "out"]
    assert run(pool, *options) == 0
    assert "500 were wanted, and there are no more to choose from" in capsys.readouterr().err
    assert len(lines(tmp_path / "out" / "val.jsonl")) == 140


def test_stopped_by_hand_it_goes_on(tmp_path, capsys, pool, tiny, monkeypatch):
    options = ["--by", "val", "--match", "12", "--evaluator", tiny, "--output", tmp_path / "out"]
    score = scoring.ChunkScorer.__call__

    def stop(self, number):
        if number == 1:
            raise KeyboardInterrupt
        return score(self, number)

    with monkeypatch.context() as patch:
        patch.setattr(scoring.ChunkScorer, "__call__", stop)
        assert run(pool, *options) == 130
    assert "stepsight filter: stopped." in capsys.readouterr().err
    # The first of two chunks of 128.
    assert len(lines(tmp_path / "out" / "scores.jsonl")) == 128
    assert run(pool, *options) == 0
    assert len(lines(tmp_path / "out" / "scores.jsonl")) == 140
    capsys.readouterr()


def test_a_bad_row_is_refused_or_left_out(tmp_path, capsys, tiny):
    pool = write_rows(tmp_path / "pool.jsonl", [*sums(5), {"instruction": "Q", "output": ""}])
    options = [pool, "--by", "val", "--match", "2", "--evaluator", tiny, "--output", tmp_path / "out"]
    assert run(*options) == 2
    assert capsys.readouterr().err == (
        "stepsight filter: pool.jsonl line 6: the field 'output' is empty. Give it a text. Fix the row, or leave "
        "it out with --skip-bad.\n"
    )
    assert not (tmp_path / "out").exists()
    assert run(*options, "--skip-bad") == 0
    assert f"1 row was left out; {tmp_path / 'out' / 'manifest.json'} says why." in capsys.readouterr().err


def test_problems_of_a_benchmark_are_left_out(tmp_path, capsys, tiny):
    pool = write_rows(tmp_path / "pool.jsonl", sums(5))
    benchmark = write_rows(tmp_path / "test.jsonl", [{"problem": "What is 2 + 3?", "answer": "5"}])
    options = [pool, "--by", "val", "--match", "9", "--evaluator", tiny, "--output", tmp_path / "out"]
    assert run(*options, "--benchmark", benchmark) == 0
    name = f"{tmp_path.name}/test.jsonl"
    assert f"1 row is a problem of {name}, and left out." in capsys.readouterr().err
    assert [row["query"] for row in lines(tmp_path / "out" / "val.jsonl")] == [
        f"What is {number} + 3?" for number in (0, 1, 3, 4)
    ]
    assert run(*options, "--benchmark", tmp_path / "nothing.jsonl") == 2
    assert "there is no file" in capsys.readouterr().err


def test_fields_by_name_and_scores_of_another_run(tmp_path, capsys, tiny):
    rows = [{"prompt": row["instruction"], "completion": row["output"]} for row in sums(9)]
    pool = write_rows(tmp_path / "pool.jsonl", rows)
    options = [pool, "--fields", "prompt", "completion", "--evaluator", tiny, "--by", "val"]
    assert run(*options, "--match", "2", "--output", tmp_path / "one") == 0
    assert run(*options, "--match", "3", "--output", tmp_path / "two", "--scores", tmp_path / "one") == 0
    assert [len(lines(tmp_path / name / "val.jsonl")) for name in ("one", "two")] == [2, 3]
    assert set(lines(tmp_path / "two" / "val.jsonl")[0]) == {"query", "response"}
    capsys.readouterr()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--evaluator", "nobody"], "there is no evaluator 'nobody'."),
        (["--scores", "nowhere"], "nowhere: there is no run.json."),
        (["--fields", "a", "b"], "none of 140 rows can be scored: pool.jsonl line 1: the field 'a' is missing"),
    ],
)
def test_mistakes_are_told_and_nothing_is_written(tmp_path, capsys, pool, tiny, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    assert run(pool, "--output", tmp_path / "out", "--evaluator", tiny, *options) == 2
    assert f"stepsight filter: {message}" in capsys.readouterr().err.replace(f"{tmp_path}/", "")
    assert not (tmp_path / "out").exists()


def test_a_pool_that_is_not_there_is_refused(tmp_path, capsys, pool):
    assert run(pool, tmp_path / "none.jsonl", "--output", tmp_path / "out") == 2
    assert f"{tmp_path / 'none.jsonl'}: cannot be read" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("options", [["--match", "0"], ["--match", "val"], ["--by", "both"], ["--validity", "2"]])
def test_options_that_cannot_be_are_refused(tmp_path, capsys, pool, options):
    with pytest.raises(SystemExit) as ended:
        run(pool, "--output", tmp_path / "out", *options)
    assert ended.value.code == 2
    capsys.readouterr()
