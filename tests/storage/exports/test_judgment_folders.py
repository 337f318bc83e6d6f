"""Folders that the `datasets` library loads, and that come in again."""

import datasets
import pytest
import yaml

from stepsight.storage.exports.frames import frame
from stepsight.storage.exports.judgment_folders import write_judgments
from stepsight.storage.judgments.judgments import save_judgments
from tests.messages import refused
from tests.storage.samples import add, evaluator, judge


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)


def load(folder, name):
    return datasets.load_dataset(str(folder), name, split="train", cache_dir=str(folder.parent / "cache"))


def test_judgments_are_loaded_as_the_frame_has_them(sqlite_store, tmp_path):
    stored = add(sqlite_store)
    save_judgments(
        sqlite_store, evaluator(sqlite_store, "a *bold* `name`").id, (judge(t, "hindsight") for t in stored)
    )
    rows = write_judgments(sqlite_store, tmp_path / "out", "sums", [trace.trace_id for trace in stored])
    assert rows == {"judgments": 2 * (3 + 1 + 2 + 4), "traces": 4}
    loaded = load(tmp_path / "out", "judgments").to_pandas()
    expected = frame(sqlite_store, "sums", substeps=True, metadata=False)
    assert list(loaded) == list(expected)
    for name in expected:
        missing = expected[name].isna()
        assert loaded[name].isna().tolist() == missing.tolist()
        assert loaded[name][~missing].tolist() == expected[name][~missing].tolist()
    traces = load(tmp_path / "out", "traces")
    assert traces["labels"][3] == ["valid", "neg", None]
    card = (tmp_path / "out" / "README.md").read_text()
    _, front, body = card.split("---\n", 2)
    about = yaml.safe_load(front)
    assert (about["pretty_name"], about["size_categories"]) == ("Judgments of sums", ["n<1K"])
    assert [one["config_name"] for one in about["configs"]] == ["judgments", "traces"]
    assert r"- a \*bold\* \`name\`, fingerprint" in body


def test_a_folder_that_is_there_is_left_alone_and_none_is_left_over(sqlite_store, tmp_path):
    stored = add(sqlite_store)
    ids = [trace.trace_id for trace in stored]
    (tmp_path / "there").mkdir()
    with refused():
        write_judgments(sqlite_store, tmp_path / "there", "sums", ids)
    (tmp_path / "out.partial").mkdir()
    assert write_judgments(sqlite_store, tmp_path / "out", "sums", ids)["traces"] == 4
    (tmp_path / "file").write_text("")
    with refused():
        write_judgments(sqlite_store, tmp_path / "file" / "out", "sums", ids)
    assert sorted(path.name for path in tmp_path.iterdir() if "store" not in path.name) == [
        "file",
        "out",
        "out.partial",
        "there",
    ]
