"""A run of a study."""

import fcntl
import shutil

from stepsight.training.experiments.finetuning.experiment import main, result_path
from stepsight.training.experiments.finetuning.study import read_study


def test_a_run_is_done_by_its_name(done, tmp_path, capsys):
    path, folder = done
    copy = shutil.copytree(folder, tmp_path / "out")
    runs = list(read_study(path).runs())
    for run in runs:
        shutil.rmtree(copy / run.name)
    assert main([str(path), str(copy), runs[1].name]) == 0
    assert [result_path(copy, run).is_file() for run in runs] == [False, True]
    left, right = (result_path(folder_, runs[1]).read_text() for folder_ in (copy, folder))
    assert left == right
    capsys.readouterr()
    assert main([str(path), str(copy), "none"]) == 2
    assert capsys.readouterr().err == "small has no run 'none'. See the folder's study.json.\n"


def test_a_run_that_another_process_is_at_is_left_to_it(done, tmp_path, capsys):
    path, folder = done
    copy = shutil.copytree(folder, tmp_path / "out")
    first = next(read_study(path).runs())
    result_path(copy, first).unlink()
    # A lock holds for every other opening of the file, in this process too.
    with open(copy / first.name / "running.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert main([str(path), str(copy), first.name]) == 2
        assert capsys.readouterr().err == (
            f"{copy / first.name}: another process is working on this run. Wait until it has ended.\n"
        )
    assert not result_path(copy, first).exists()
