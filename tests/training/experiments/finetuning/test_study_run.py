"""A run of a study."""

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
