"""A real grid of two runs, each a few seconds of training."""

import json
import shutil
import signal
import subprocess
import sys

import pytest

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.storage.database.store import open_store
from stepsight.storage.judgments.evaluators import list_evaluators
from stepsight.storage.judgments.judgments import read_judgments
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from stepsight.training.experiments.grid.design import read_design
from stepsight.training.experiments.grid.experiment import Grid, result_path
from stepsight.training.experiments.grid.results import read_results, read_run
from tests.messages import refused
from tests.training.experiments.grid.toy import TOY, without_times, write_toy
from tests.training.small_runs import forked, forked_pair


def grid(folder, **changes):
    """A grid in `folder`, with the design beside its output."""
    folder.mkdir(parents=True, exist_ok=True)
    path = write_toy(folder, **changes)
    return Grid(read_design(path), path, folder / "out")


def run(made, jobs=1, store=None, db=None):
    return made.run(list(made.design.runs()), jobs, store, db)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The grid in one go, with a store; not to be changed."""
    folder = tmp_path_factory.mktemp("grid")
    with open_store(str(folder / "store.db")) as store:
        run(grid(folder / "whole"), store=store)
    return folder


def test_every_run_is_measured_in_both_modes(whole):
    found = read_results(whole / "whole" / "out")
    assert [run.settings.name for run in found.runs] == ["tiny-24-bidirectional-13", "tiny-24-causal-13"]
    assert found.keys == [("synthetic", "offline"), ("synthetic", "online")]
    assert found.notes == {"synthetic": "Complete."}
    assert set(found.baselines) == {f"baseline:{name}" for name in ("constant", "position", "length", "last-step")}
    bidirectional, causal = found.runs
    # 12 traces; a causal evaluator says the same in both modes, a bidirectional one does not.
    assert bidirectional.figures["synthetic", "offline"].traces == 12
    assert causal.figures["synthetic", "offline"] == causal.figures["synthetic", "online"]
    assert bidirectional.figures["synthetic", "offline"] != bidirectional.figures["synthetic", "online"]
    assert 20 <= bidirectional.about["examples"] <= 24
    assert bidirectional.about["steps"] == causal.about["steps"] == 3


def test_both_masks_share_the_tokenizer_and_start(whole):
    folders = [whole / "whole" / "out" / "runs" / f"tiny-24-{mask}-13" for mask in ("bidirectional", "causal")]
    shared = (whole / "whole" / "out" / "tokenizer" / "tokenizer.json").read_text()
    assert json.loads(shared)["model"]["vocab"].keys() <= {
        *load_evaluator(folders[0]).encoder.tokenizer.get_vocab()
    }
    assert [load_evaluator(folder).attention for folder in folders] == ["bidirectional", "causal"]
    # What was needed to go on is gone.
    assert [(folder / "checkpoints").exists() for folder in folders] == [False, False]


def test_judgments_are_in_the_store(whole):
    with open_store(str(whole / "store.db")) as store:
        traces = list(iterate_traces(store, find_dataset(store, "toy synthetic").id))
        assert len(traces) == 12
        names = [(one.evaluator.name, one.mode.value) for one in read_judgments(store, traces[0])]
        assert sorted(names) == [
            (f"toy tiny-24-{mask}-13", mode)
            for mask in ("bidirectional", "causal")
            for mode in ("offline", "online")
        ]
        assert len(list_evaluators(store)) == 2


def test_the_same_again_changes_nothing(whole):
    out = whole / "whole" / "out"
    before = {
        path: path.stat().st_mtime_ns for path in out.rglob("*") if path.parent.name != "out" and path.is_file()
    }
    made = Grid(read_design(whole / "whole" / "toy.yaml"), whole / "whole" / "toy.yaml", out)
    text = (out / "results.json").read_text()
    run(made)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert (out / "results.json").read_text() == text


KILLED = """
import os, signal, sys
from pathlib import Path
from stepsight.training.train import trainer
from stepsight.training.experiments.grid.design import read_design
from stepsight.training.experiments.grid.experiment import Grid

class Die(trainer.TrainingProgress):
    def on_step_begin(self, args, state, control, **_):
        if state.global_step == 2 and "causal" in str(args.output_dir):
            os.kill(os.getpid(), signal.SIGKILL)

trainer.TrainingProgress = Die
design = read_design(sys.argv[1])
Grid(design, Path(sys.argv[1]), Path(sys.argv[2])).run(list(design.runs()), 1, None)
"""


@pytest.mark.slow
def test_a_killed_grid_goes_on_to_identical_results(whole, tmp_path):
    made = grid(tmp_path)
    killed = forked(KILLED, made.path, made.folder)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    first, second = made.design.runs()
    # The first run was done, the second had a checkpoint after two of its three steps.
    assert (result_path(made.folder, first).is_file(), result_path(made.folder, second).is_file()) == (True, False)
    assert (made.folder / "runs" / second.name / "checkpoints" / "checkpoint-2").is_dir()
    run(made)
    assert without_times(made.folder / "results.json") == without_times(whole / "whole" / "out" / "results.json")


ONE_RUN = """
import sys
from stepsight.training.experiments.grid.experiment import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_a_run_on_two_processes_is_measured_once(whole, tmp_path):
    made = shutil.copytree(whole / "whole", tmp_path / "grid")
    one = next(read_design(made / "toy.yaml").runs())
    result_path(made / "out", one).unlink()
    shutil.rmtree(made / "out" / "runs")
    db = str(tmp_path / "store.db")
    with open_store(db) as store:
        Grid(read_design(made / "toy.yaml"), made / "toy.yaml", made / "out").run([], 1, store)
    first, second = forked_pair(made / "toy.yaml", made / "out", one.name, "--db", db, source=ONE_RUN)
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    with open_store(db) as store:
        assert [evaluator.name for evaluator in list_evaluators(store)] == [f"toy {one.name}"]
    run, expected = (read_run(result_path(folder, one)) for folder in (made / "out", whole / "whole" / "out"))
    assert (run.about["devices"], expected.about["devices"]) == ("2 x cpu", "1 x cpu")
    assert run.about["final_loss"] == pytest.approx(expected.about["final_loss"], abs=1e-4)
    assert run.figures["synthetic", "offline"].whole == pytest.approx(
        expected.figures["synthetic", "offline"].whole, abs=0.02, nan_ok=True
    )


def test_a_run_of_several_processes_is_launched_by_torchrun(tmp_path):
    made = grid(tmp_path, processes=2)
    planned = made._planned(next(made.design.runs()), ["--no-store"])
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m"]
    assert list(planned.arguments[:5]) == torchrun


def test_a_run_that_fails_does_not_keep_the_others_back(whole, tmp_path):
    copied = shutil.copytree(whole / "whole", tmp_path / "grid")
    made = Grid(read_design(copied / "toy.yaml"), copied / "toy.yaml", copied / "out")
    first, second = made.design.runs()
    for one in (first, second):
        result_path(made.folder, one).unlink()
    # The first run's folder holds something else.
    record = made.folder / "runs" / first.name / "config.used.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"epochs": 7}))
    with refused():
        run(made)
    assert [run.settings for run in read_results(made.folder).runs] == [second]


def test_the_folder_of_another_grid_is_refused(whole, tmp_path):
    other = write_toy(tmp_path, base=TOY["base"] | {"epochs": 2})
    with refused():
        run(Grid(read_design(other), other, whole / "whole" / "out"))


HOLD = """
import fcntl, sys, time
lock = open(sys.argv[1], "w")
fcntl.flock(lock, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(60)
"""


def test_a_run_that_another_process_is_at_is_left_to_it(tmp_path):
    made = grid(tmp_path)
    made.run([], 1, None)
    first = next(made.design.runs())
    folder = made.folder / "runs" / first.name
    folder.mkdir(parents=True)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder / "running.lock")], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with refused():
            made.run([first], 1, None)
    finally:
        holder.kill()
        holder.wait()
        if holder.stdout:
            holder.stdout.close()
