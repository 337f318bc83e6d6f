import json

from stepsight.training.experiments.finetuning.math500 import Problem, problems_path, read_problems
from tests.messages import refused


def test_problems_have_answers(tmp_path):
    path = tmp_path / "math500" / "test.jsonl"
    path.parent.mkdir()
    path.write_text(json.dumps({"problem": "2 + 2?", "answer": "4", "level": 1}) + "\n")
    found = read_problems(path)
    assert (found.name, found.items, len(found)) == ("math500/test.jsonl", (Problem("2 + 2?", "4"),), 1)
    assert found.as_json()["constant"] == {"answer": "4", "right": 1}
    path.write_text('{"problem": "2 + 2?", "answer": "4"}\n{"problem": "3 + 3?"}\n')
    with refused():
        read_problems(path)
    path.write_text("\n")
    with refused():
        read_problems(path)


def test_they_are_found_in_the_folder_of_data(tmp_path, monkeypatch):
    path = tmp_path / "math500" / "test.jsonl"
    path.parent.mkdir()
    path.write_text("")
    monkeypatch.setenv("STEPSIGHT_DATA", str(tmp_path))
    assert problems_path(None) == path
    assert problems_path(path) == path
    with refused():
        problems_path(path.with_name("none.jsonl").relative_to(path.parent))
    monkeypatch.delenv("STEPSIGHT_DATA")
    with refused():
        problems_path(None, tmp_path / "other")
