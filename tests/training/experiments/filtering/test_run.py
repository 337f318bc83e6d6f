"""Whole filterings: twice, killed, gone on with, in a folder of another."""

import hashlib
import json
import shutil
import signal

import pytest

from stepsight.training.experiments.filtering.run import filter_pool
from stepsight.training.experiments.filtering.subsets import SUBSETS
from tests.checkpoints import write_evaluator, write_math_shepherd
from tests.messages import refused
from tests.training.experiments.filtering.pools import files, lines, sums, wanted, write_rows
from tests.training.small_runs import forked


@pytest.fixture(scope="module")
def whole(tmp_path_factory, tiny):
    """The folder of an uninterrupted filtering of 40 sums, with its pool beside it; not to be changed."""
    folder = tmp_path_factory.mktemp("whole")
    filter_pool(wanted(folder, tiny))
    return folder / "out"


def again(tmp_path, whole, tiny, **changes):
    """The same in another place."""
    shutil.copy(whole.parent / "pool.jsonl", tmp_path)
    return wanted(tmp_path, tiny, **changes)


def test_four_subsets_of_one_size(whole):
    manifest = json.loads((whole / "manifest.json").read_text())
    scores = lines(whole / "scores.jsonl")
    passing = [row["row"] for row in scores if row["validity"] >= 0.3 and row["redundancy"] < 0.6]
    # Neither all nor none, or the test would show nothing.
    assert 4 <= len(passing) <= 36
    assert manifest["size"] == len(passing) == manifest["solutions"]["valid_and_not_redundant"]
    found = {name: lines(whole / f"{name}.jsonl") for name in SUBSETS}
    assert {name: len(rows) for name, rows in found.items()} == dict.fromkeys(SUBSETS, len(passing))
    pool = sums(40)
    rows = {name: [pool.index(as_in_pool(row)) + 1 for row in subset] for name, subset in found.items()}
    assert rows["val+red"] == passing
    by_validity = sorted(scores, key=lambda row: -row["validity"])[: len(passing)]
    assert rows["val"] == sorted(row["row"] for row in by_validity)
    by_redundancy = sorted(scores, key=lambda row: row["redundancy"])[: len(passing)]
    assert rows["red"] == sorted(row["row"] for row in by_redundancy)
    assert rows["random"] == sorted(rows["random"])
    assert manifest["shared"]["val and red"] == len({*rows["val"]} & {*rows["red"]})


def as_in_pool(row):
    return {"instruction": row["query"], "output": row["response"], "source": row["source"]}


def test_the_manifest(whole, evaluator):
    manifest = json.loads((whole / "manifest.json").read_text())
    digest = hashlib.sha256((whole.parent / "pool.jsonl").read_bytes()).hexdigest()
    assert manifest["pool"] == {
        "files": [{"name": "pool.jsonl", "sha256": digest, "fields": ["instruction", "output"]}],
        "rows": 40,
    }
    assert manifest["evaluator"] == {
        "name": "tiny",
        "format": "stepsight",
        "outputs": "three-way",
        "fingerprint": evaluator.fingerprint,
    }
    assert manifest["thresholds"] == {"validity": 0.3, "redundancy": 0.6}
    assert (manifest["match"], manifest["seed"], manifest["mode"]) == ("val+red", 0, "offline")
    assert manifest["left_out"] == {"rows": 0, "first": []}
    for name in SUBSETS:
        held = (whole / f"{name}.jsonl").read_bytes()
        assert manifest["subsets"][name]["sha256"] == hashlib.sha256(held).hexdigest()
    # Where files lay concerns nobody else.
    assert str(whole.parent).encode() not in b"".join(files(whole).values())


def test_two_runs_are_the_same_to_the_byte(whole, tmp_path, tiny):
    filter_pool(again(tmp_path, whole, tiny))
    assert files(tmp_path / "out") == files(whole)
    assert set(files(whole)) == {
        "run.json",
        "scores.jsonl",
        "manifest.json",
        *(f"{name}.jsonl" for name in SUBSETS),
    }


def test_finished_work_is_not_repeated(whole, tmp_path, tiny):
    job = again(tmp_path, whole, tiny)
    first = filter_pool(job)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}
    seen = []
    assert filter_pool(job, lambda *told: seen.append(told)) == first
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()} == before
    assert seen == []


KILLED = """
import os, signal, sys
from dataclasses import asdict
from pathlib import Path
from stepsight.training.experiments.filtering import run
from stepsight.training.experiments.filtering.scores import ChunkedScores
from stepsight.training.runs.row_file import format_line

class Dying(ChunkedScores):
    def add_chunk(self, rows):
        if self.rows == 16:
            self._file.write("".join(format_line(asdict(row)) for row in rows)[:250].encode())
            self._file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        super().add_chunk(rows)

run.ChunkedScores = Dying
folder, evaluator = map(Path, sys.argv[1:])
pool = (folder / "pool.jsonl",)
run.filter_pool(run.Filtering(pool, folder / "out", str(evaluator), validity=0.3, redundancy=0.6, chunk=8))
"""


@pytest.mark.slow
def test_a_killed_one_goes_on_and_ends_the_same(whole, tmp_path, tiny):
    job = again(tmp_path, whole, tiny)
    killed = forked(KILLED, tmp_path, tiny)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    left = (tmp_path / "out" / "scores.jsonl").read_bytes()
    # Two chunks of 8, and of the third two lines and a bit.
    assert left.count(b"\n") == 18
    assert not left.endswith(b"\n")
    seen = []
    filter_pool(job, lambda *told: seen.append(told))
    assert [told for told in seen if told[0] == "solutions scored"] == [
        ("solutions scored", done, 40) for done in (24, 32, 40)
    ]
    assert files(tmp_path / "out") == files(whole)


def test_one_that_was_stopped_while_writing_ends_the_same(whole, tmp_path, tiny):
    job = again(tmp_path, whole, tiny)

    def stop(what, done, total):
        if (what, done) == ("rows written", 20):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        filter_pool(job, stop)
    assert set(files(tmp_path / "out")) == {"run.json", "scores.jsonl"}
    filter_pool(job)
    assert files(tmp_path / "out") == files(whole)


@pytest.mark.parametrize(
    "changes",
    [{"redundancy": 0.7}, {"validity": 0.4}, {"seed": 1}, {"match": 3}, {"by": ("val", "red")}, {"chunk": 16}],
)
def test_a_folder_of_another_run_is_refused(whole, tiny, changes):
    with refused():
        filter_pool(wanted(whole.parent, tiny, **changes))


def test_a_folder_of_another_pool_or_evaluator_is_refused(whole, tmp_path, tiny):
    other = write_rows(tmp_path / "pool.jsonl", sums(41))
    with refused():
        filter_pool(wanted(whole.parent, tiny, pool=(other,)))
    another = write_evaluator(tmp_path / "another", seed=1)
    with refused():
        filter_pool(wanted(whole.parent, another))


def test_a_folder_of_something_else_is_refused(tmp_path, tiny):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("Mine.")
    with refused():
        filter_pool(wanted(tmp_path, tiny))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.tex"]


def test_scores_are_taken_over(whole, tmp_path, tiny):
    seen = []
    job = again(tmp_path, whole, tiny, match=5, seed=7, scores=whole)
    manifest = filter_pool(job, lambda what, *_: seen.append(what))
    assert set(seen) == {"rows written"}
    assert (manifest["size"], manifest["match"]) == (5, 5)
    assert (tmp_path / "out" / "scores.jsonl").read_bytes() == (whole / "scores.jsonl").read_bytes()


def test_scores_of_another_evaluator_are_not(whole, tmp_path, tiny):
    another = write_evaluator(tmp_path / "another", seed=1)
    with refused():
        filter_pool(again(tmp_path, whole, another, scores=whole))
    with refused():
        filter_pool(again(tmp_path, whole, tiny, scores=tmp_path))
    assert not (tmp_path / "out").exists()


def test_bad_rows_are_refused_before_anything_is_scored(tmp_path, tiny):
    write_rows(tmp_path / "pool.jsonl", [*sums(9), {"instruction": "Q", "output": " "}])
    with refused():
        filter_pool(wanted(tmp_path, tiny))
    assert not (tmp_path / "out").exists()


def test_bad_rows_are_left_out_and_named(tmp_path, tiny):
    bad = {"instruction": "Q", "output": " "}
    long = {"instruction": "Q", "output": "word " * 400}
    write_rows(tmp_path / "pool.jsonl", [*sums(9), bad, long, *sums(12)[9:]])
    manifest = filter_pool(wanted(tmp_path, tiny, skip_bad=True))
    assert (manifest["pool"]["rows"], manifest["solutions"]["scored"], manifest["left_out"]["rows"]) == (14, 12, 2)
    empty, too_long = manifest["left_out"]["first"]
    assert empty == "pool.jsonl line 10: the field 'output' is empty. Give it a text."
    assert too_long.startswith("pool.jsonl line 11: the trace has ")
    # The same without leaving rows out is another thing to ask for, though all is there.
    with refused():
        filter_pool(wanted(tmp_path, tiny))
    (tmp_path / "out" / "manifest.json").unlink()
    with refused():
        filter_pool(wanted(tmp_path, tiny))


def test_problems_of_a_benchmark_are_left_out_and_counted(whole, tmp_path, tiny):
    (tmp_path / "sums").mkdir()
    benchmark = write_rows(
        tmp_path / "sums" / "test.jsonl", [{"problem": "what is $7 + 3$?"}, {"question": "Why?"}]
    )
    # The pool has it in the spelling of its own.
    job = again(tmp_path, whole, tiny, benchmarks=(benchmark,))
    manifest = filter_pool(job)
    digest = hashlib.sha256(benchmark.read_bytes()).hexdigest()
    assert manifest["benchmarks"] == [{"name": "sums/test.jsonl", "sha256": digest, "problems": 2, "rows": 1}]
    assert (manifest["solutions"]["scored"], manifest["left_out"]["rows"]) == (39, 0)
    scores = lines(tmp_path / "out" / "scores.jsonl")
    assert scores[7] == {"row": 8, "problem_of": digest[:16]}
    # What the others got is what they get without a benchmark.
    before = lines(whole / "scores.jsonl")
    near = pytest.approx
    assert [row["validity"] for row in scores if row["row"] != 8] == [
        near(row["validity"], abs=1e-6) for row in before if row["row"] != 8
    ]
    kept = {row["query"] for name in SUBSETS for row in lines(tmp_path / "out" / f"{name}.jsonl")}
    assert len(kept) > 10
    assert "What is 7 + 3?" not in kept
    with refused():
        filter_pool(again(tmp_path, whole, tiny))
    with refused():
        filter_pool(again(tmp_path, whole, tiny, name="two", scores=tmp_path / "out"))


def test_thresholds_that_nothing_passes_are_told_and_the_scores_kept(tmp_path, tiny):
    with refused():
        filter_pool(wanted(tmp_path, tiny, validity=1.0, redundancy=0.0))
    assert len(lines(tmp_path / "out" / "scores.jsonl")) == 40
    manifest = filter_pool(wanted(tmp_path, tiny, "other", scores=tmp_path / "out"))
    assert manifest["size"] > 0


def test_an_evaluator_of_validity_alone(tmp_path):
    folder = tmp_path / "math-shepherd-mistral-7b-prm"
    write_math_shepherd(folder)
    for changes in ({}, {"by": ("red",), "match": 3}, {"by": ("val",)}):
        with refused():
            filter_pool(wanted(tmp_path, folder, **changes))
    assert not (tmp_path / "out").exists()
    manifest = filter_pool(wanted(tmp_path, folder, by=("val", "random"), match=3))
    assert manifest["evaluator"]["outputs"] == "validity"
    assert {name: len(lines(tmp_path / "out" / f"{name}.jsonl")) for name in manifest["subsets"]} == {
        "val": 3,
        "random": 3,
    }
    assert set(manifest["solutions"]) == {"scored", "valid"}


@pytest.mark.slow
def test_mini_bidir_on_a_real_pool(tmp_path, data):
    """Two runs on the first 40 solutions, one of them gone on with after its first chunk."""
    source = data / "sft-pool" / "gsm8k_model_solutions.jsonl"
    pool = write_rows(tmp_path / "pool.jsonl", source.read_text(encoding="utf-8").splitlines()[:40])
    real = {"pool": (pool,), "validity": None, "redundancy": None, "chunk": 24}

    def stop(what, done, total):
        if what == "solutions scored":
            raise KeyboardInterrupt

    manifest = filter_pool(wanted(tmp_path, "mini-bidir", "one", **real))
    with pytest.raises(KeyboardInterrupt):
        filter_pool(wanted(tmp_path, "mini-bidir", "two", **real), stop)
    assert len(lines(tmp_path / "two" / "scores.jsonl")) == 24
    filter_pool(wanted(tmp_path, "mini-bidir", "two", **real))
    assert files(tmp_path / "one") == files(tmp_path / "two")
    assert manifest["thresholds"] == {"validity": 0.5, "redundancy": 0.15}
    sizes = {len(lines(tmp_path / "one" / f"{name}.jsonl")) for name in SUBSETS}
    assert sizes == {manifest["size"]}
    assert 0 < manifest["size"] < 40
    row = lines(tmp_path / "one" / "val.jsonl")[0]
    assert set(row) == {"query", "response", "source", "is_correct", "ground_truth"}


MEASURED = """
import re, sys
from pathlib import Path
from stepsight.training.experiments.filtering.run import Filtering, filter_pool

folder, evaluator = map(Path, sys.argv[1:])
pool = (folder / "pool.jsonl",)
filter_pool(Filtering(pool, folder / "out", str(evaluator), by=("val", "random"), match=20, chunk=8))
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.slow
def test_memory_stays_flat(tmp_path, tiny):
    peaks = []
    for count in (24, 200):
        folder = tmp_path / str(count)
        folder.mkdir()
        # 400 KB a row: 80 MB in the larger pool.
        write_rows(folder / "pool.jsonl", [row | {"ballast": "x" * 400_000} for row in sums(count)])
        done = forked(MEASURED, folder, tiny)
        assert done.returncode == 0, done.stderr
        peaks.append(int(done.stdout) / 1024)
    assert peaks[1] - peaks[0] < 25, peaks
