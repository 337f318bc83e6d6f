"""A real grid of two runs, each a few seconds of training."""

import json
import shutil
from dataclasses import replace

import pytest

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.trace import Trace
from stepsight.storage.database.store import open_store
from stepsight.storage.judgments.evaluators import list_evaluators
from stepsight.storage.judgments.judgments import read_judgments
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from stepsight.training.experiments.grid.design import read_design
from stepsight.training.experiments.grid.experiment import Grid, main
from stepsight.training.experiments.grid.results import read_results
from tests.messages import refused
from tests.storage.samples import add
from tests.training.experiments.grid.toy import TOY, write_toy
from tests.training.small_runs import forked_pair


def grid(folder, **changes):
    """A grid in `folder`, with the design and the store beside its output."""
    folder.mkdir(parents=True, exist_ok=True)
    return copied(folder, write_toy(folder, **changes))


def copied(folder, path=None):
    """The grid of a folder that is there."""
    path = path or folder / "toy.yaml"
    return Grid(read_design(path), path, folder / "out", str(folder / "store.db"))


def measured(made):
    with open_store(made.db) as store:
        return made.results(store)


def run(made, jobs=1):
    return made.run(list(made.design.runs()), jobs)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a grid in one go; not to be changed."""
    folder = tmp_path_factory.mktemp("grid")
    run(grid(folder))
    return folder


def test_every_run_is_measured_in_both_modes(whole):
    found = read_results(whole / "out")
    assert [of_run.run.name for of_run in found.runs] == ["tiny-24-bidirectional-13", "tiny-24-causal-13"]
    assert found.keys == [("synthetic", "offline"), ("synthetic", "online")]
    assert found.notes == {"synthetic": "Complete."}
    assert set(found.baselines) == {f"baseline:{name}" for name in ("constant", "position", "length", "last-step")}
    # What says the same of every step ranks nothing.
    assert found.baselines["baseline:constant"]["synthetic"]["offline"]["macro_auc"] == 0.5
    bidirectional, causal = (of_run.tests["synthetic"] for of_run in found.runs)
    # 12 traces; a causal evaluator says the same in both modes, a bidirectional one does not.
    assert bidirectional["offline"]["traces"] == 12
    assert causal["offline"] == causal["online"]
    assert bidirectional["offline"] != bidirectional["online"]
    about = [of_run.about for of_run in found.runs]
    assert 20 <= about[0]["examples"] <= 24
    assert about[0]["steps"] == about[1]["steps"] == 3


def test_both_masks_share_the_tokenizer_and_start(whole):
    folders = [whole / "out" / "runs" / f"tiny-24-{mask}-13" for mask in ("bidirectional", "causal")]
    shared = (whole / "out" / "tokenizer" / "tokenizer.json").read_text()
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
        names = [(judgment.evaluator.name, judgment.mode.value) for judgment in read_judgments(store, traces[0])]
        # Both modes are in the triangle.
        assert sorted(names) == [(f"toy tiny-24-{mask}-13", "hindsight") for mask in ("bidirectional", "causal")]
        assert len(list_evaluators(store)) == 2


def test_the_same_again_changes_nothing(whole):
    out = whole / "out"
    before = {
        path: path.stat().st_mtime_ns
        for path in out.rglob("*")
        if path.parent.name not in ("out", "tests") and path.is_file()
    }
    text = (out / "results.json").read_text()
    run(copied(whole))
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert (out / "results.json").read_text() == text


ONE_RUN = """
import sys
from stepsight.training.experiments.grid.experiment import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_a_run_on_two_processes_is_measured_once(whole, tmp_path):
    made = grid(tmp_path)
    with open_store(made.db) as store:
        made.prepare(store)
    first = next(made.design.runs())
    pair = forked_pair(made.path, made.folder, first.name, "--db", made.db, source=ONE_RUN)
    assert [process.returncode for process in pair] == [0, 0], pair[0].stderr + pair[1].stderr
    with open_store(made.db) as store:
        assert [evaluator.name for evaluator in list_evaluators(store)] == [f"toy {first.name}"]
    of_run, expected = (measured(of).runs[0] for of in (made, copied(whole)))
    assert (of_run.about["devices"], expected.about["devices"]) == ("2 x cpu", "1 x cpu")
    assert of_run.about["final_loss"] == pytest.approx(expected.about["final_loss"], abs=1e-4)
    figures, same = (result.tests["synthetic"]["offline"] for result in (of_run, expected))
    assert figures == pytest.approx(same, abs=0.02)


def test_a_run_that_fails_does_not_keep_the_others_back(whole, tmp_path):
    made = copied(shutil.copytree(whole, tmp_path / "grid"))
    first, second = made.design.runs()
    for settings in (first, second):
        made.done_path(settings).unlink()
    # The first run's folder holds something else.
    record = made.folder / "runs" / first.name / "config.used.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"epochs": 7}))
    with refused():
        run(made)
    assert [result.run for result in read_results(made.folder).runs] == [second]


def test_the_folder_of_another_grid_is_refused(whole, tmp_path):
    other = write_toy(tmp_path, base=TOY["base"] | {"epochs": 2})
    with refused():
        run(Grid(read_design(other), other, whole / "out", str(tmp_path / "store.db")))


def test_a_mistake_is_told_without_a_traceback(tmp_path, capsys):
    made = grid(tmp_path)
    assert main([str(made.path), str(made.folder), "nothing", "--db", made.db]) == 2
    assert capsys.readouterr().err.startswith("toy has no run 'nothing'.")


def test_results_are_those_of_the_store(whole, tmp_path):
    made = copied(shutil.copytree(whole, tmp_path / "grid"))
    assert measured(made) == read_results(made.folder)
    # Another store has the traces, but no judgments of the runs.
    other = replace(made, db=str(tmp_path / "other.db"))
    with open_store(other.db) as store:
        other.prepare(store)
        with refused():
            other.results(store)


def test_traces_to_learn_from_can_be_in_another_store_than_the_judgments(tmp_path):
    named = str(tmp_path / "named.db")
    with open_store(named) as store:
        add(store, [Trace.of(f"{n} + {n}?", [f"{n} + {n} = {2 * n}."], ["pos"], id=str(n)) for n in range(8)])
    made = grid(
        tmp_path, data={"8": {"data": {"sources": [{"kind": "store", "dataset": "sums"}]}}}, masks=["causal"]
    )
    (result,) = run(replace(made, source_db=named)).runs
    assert result.about["examples"] == 8
