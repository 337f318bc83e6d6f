"""The runs of a study, one by one."""

import fcntl
import shutil

from stepsight.training.experiments.finetuning.cell import main, result_path
from stepsight.training.experiments.finetuning.study import read_study


def test_a_share_of_the_runs_is_done_in_one_process(done, tmp_path):
    path, folder = done
    copy = shutil.copytree(folder, tmp_path / "out")
    cells = list(read_study(path).cells())
    for cell in cells:
        shutil.rmtree(copy / cell.name)
    assert main([str(path), str(copy), "1", "2"]) == 0
    assert [result_path(copy, cell).is_file() for cell in cells] == [False, True]
    left, right = (result_path(folder_, cells[1]).read_text() for folder_ in (copy, folder))
    assert left == right


def test_a_run_that_fails_does_not_keep_the_others(done, tmp_path, capsys):
    path, folder = done
    copy = shutil.copytree(folder, tmp_path / "out")
    cells = list(read_study(path).cells())
    for cell in cells:
        shutil.rmtree(copy / cell.name)
    (copy / "mini-bidir" / "subsets" / "red.jsonl").write_text('{"query": "2 + 2?"}\n')
    assert main([str(path), str(copy), "0", "1"]) == 2
    assert [result_path(copy, cell).is_file() for cell in cells] == [False, True]
    assert "red-1: " in capsys.readouterr().err


def test_a_run_that_another_process_is_at_is_left_to_it(done, tmp_path, capsys):
    path, folder = done
    copy = shutil.copytree(folder, tmp_path / "out")
    first = next(read_study(path).cells())
    result_path(copy, first).unlink()
    # A lock holds for every other opening of the file, in this process too.
    with open(copy / first.name / "running.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert main([str(path), str(copy), "0", "1"]) == 2
        assert capsys.readouterr().err == (
            f"{first.name}: {copy / first.name}: another process is at this run. Wait until it has ended.\n"
        )
    assert not result_path(copy, first).exists()
