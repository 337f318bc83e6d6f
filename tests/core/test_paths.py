from stepsight.core.paths import DATA_VARIABLE, data_files, portable_name
from tests.messages import refused


def test_data_files_are_looked_up_beside_the_configuration_first(tmp_path, monkeypatch):
    root, data = tmp_path / "root", tmp_path / "data"
    for path in (root / "a.jsonl", data / "a.jsonl", data / "deep" / "c.jsonl", data / "deep" / "b.jsonl"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    assert data_files("a.jsonl", root) == [("a.jsonl", root / "a.jsonl")]
    with refused():
        data_files("deep/b.jsonl", root)
    monkeypatch.setenv(DATA_VARIABLE, str(data))
    assert data_files("a.jsonl", root) == [("a.jsonl", root / "a.jsonl")]
    names = ["deep/b.jsonl", "deep/c.jsonl"]
    assert data_files("deep/*.jsonl", root) == [(name, data / name) for name in names]
    # No file's name is that long.
    with refused():
        data_files("x" * 5000, root)


def test_a_portable_name_leaves_out_the_machines_folders():
    assert portable_name("/elsewhere/data/a.jsonl") == "a.jsonl"
    assert portable_name("data/a.jsonl") == "data/a.jsonl"
