import pytest

from stepsight.training.runs.checkpoints import Checkpoints, is_whole


def write(checkpoints, step):
    folder = checkpoints.partial / f"checkpoint-{step}"
    (folder / "optimizer_0").mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"1234")
    (folder / "optimizer_0" / "0.distcp").write_bytes(b"12345")
    (folder / "trainer_state.json").write_text("{}")
    checkpoints.publish(step)
    return checkpoints.folder / folder.name


@pytest.fixture
def checkpoints(tmp_path):
    found = Checkpoints(tmp_path)
    for step in (5, 10, 15):
        write(found, step)
    return found


def test_the_newest_two_are_kept(checkpoints):
    assert sorted(path.name for path in checkpoints.folder.iterdir()) == ["checkpoint-10", "checkpoint-15"]
    assert checkpoints.last() == checkpoints.folder / "checkpoint-15"
    assert checkpoints.last_step() == 15
    # 100 comes after 15, though not in the alphabet.
    write(checkpoints, 100)
    assert checkpoints.last_step() == 100


def test_there_may_be_none(tmp_path):
    for folder in (tmp_path, tmp_path / "none"):
        assert Checkpoints(folder).last() is None
        assert Checkpoints(folder).last_step() == 0


FILES = ("model.safetensors", "optimizer_0/0.distcp", "trainer_state.json", "contents.json")


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("damage", ["shorter", "longer", "missing"])
def test_one_with_a_damaged_file_is_passed_over(checkpoints, file, damage):
    path = checkpoints.folder / "checkpoint-15" / file
    assert is_whole(checkpoints.folder / "checkpoint-15")
    content = path.read_bytes()
    path.unlink()
    if damage != "missing":
        path.write_bytes(content[:-3] if damage == "shorter" else content + b"!")
    assert not is_whole(checkpoints.folder / "checkpoint-15")
    assert checkpoints.last_step() == 10


def test_an_unfinished_checkpoint_does_not_count(checkpoints):
    half = checkpoints.partial / "checkpoint-20"
    half.mkdir(parents=True)
    (half / "model.safetensors").write_bytes(b"12")
    (checkpoints.folder / "checkpoint-old").mkdir()
    assert checkpoints.last_step() == 15
    checkpoints.clear()
    assert not checkpoints.partial.exists()


def test_a_damaged_one_is_replaced(checkpoints):
    (checkpoints.folder / "checkpoint-15" / "model.safetensors").unlink()
    assert is_whole(write(checkpoints, 15))
