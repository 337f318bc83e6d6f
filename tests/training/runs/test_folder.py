import pytest

from stepsight.core.errors import UserError
from stepsight.training.runs.folder import RECORD, alone, check_claim, claim


def test_a_folder_belongs_to_one_run(tmp_path):
    folder = tmp_path / "run"
    claim(folder, {"seed": 1, "betas": (0.9, 0.95), "save_steps": 10})
    claim(folder, {"seed": 1, "betas": (0.9, 0.95), "save_steps": 20}, free=("save_steps",))
    before = (folder / RECORD).read_bytes()
    with pytest.raises(UserError, match=r"run holds another run \(save steps, seed\)\. Choose another --output"):
        claim(folder, {"seed": 2, "betas": (0.9, 0.95), "save_steps": 10})
    assert (folder / RECORD).read_bytes() == before


def test_what_is_no_run_is_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for folder in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(UserError, match="holds something else"):
            check_claim(folder, {})
    (tmp_path / "empty").mkdir()
    check_claim(tmp_path / "empty", {})
    (tmp_path / "empty" / f"{RECORD}.partial").write_text("{")
    check_claim(tmp_path / "empty", {})
    check_claim(tmp_path / "none", {})


def test_a_folder_is_held_by_one_at_a_time(tmp_path, monkeypatch):
    folder = tmp_path / "runs" / "one"
    with alone(folder):
        with pytest.raises(UserError, match=f"{folder}: another process is at this run"), alone(folder):
            pytest.fail("it was held twice")
        # The second of those that were launched together leaves it to the first.
        monkeypatch.setenv("RANK", "1")
        with alone(folder):
            pass
        monkeypatch.delenv("RANK")
        assert [path.name for path in folder.iterdir()] == ["running.lock"]
    with alone(folder):
        pass
    # Nothing is left of it, nor of a folder that was not there before.
    assert not folder.exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="file/one: cannot be written"), alone(tmp_path / "file" / "one"):
        pytest.fail("there is no folder")
