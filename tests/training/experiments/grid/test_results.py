import json

import pytest

from stepsight.core.files.json_values import write_json
from stepsight.core.paths import asset
from stepsight.training.experiments.grid.design import RunSettings
from stepsight.training.experiments.grid.results import read_results, read_run
from tests.messages import refused
from tests.training.experiments.grid.toy import KEY, results

FOUND = results({("a", "1k", 1): (0.75, 0.5)}, about="made by hand")
PAPER = asset("reference", "full-grid-results.json")


def test_results_are_read_as_they_were_written(tmp_path):
    write_json(tmp_path / "results.json", FOUND.as_json())
    for path in (tmp_path, tmp_path / "results.json"):
        again = read_results(path)
        assert again.as_json() == FOUND.as_json()
        assert (again.name, again.about, again.keys, again.rounded) == ("by-hand", "made by hand", [KEY], False)
    write_json(tmp_path / "run.json", FOUND.runs[0].as_json())
    assert read_run(tmp_path / "run.json").settings == RunSettings("a", "1k", "bidirectional", 1)


def test_the_rows_of_the_paper():
    found = read_results(PAPER)
    assert (len(found.runs), found.planned, found.rounded) == (54, 54, True)
    run = found.runs[0]
    assert run.settings == RunSettings("1B", "1k", "bidirectional", 13)
    # 48.1, 41.4, 61.8 and 31.8 percent.
    assert run.figures["PRM800K", "offline"].whole == {
        "accuracy": 0.481, "macro_f1": 0.414, "macro_auc": 0.618, "late_auc": 0.318,
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        None,
        "{",
        {"format": "other"},
        {"format": "stepsight-grid"},
        FOUND.as_json() | {"runs": [{"run": {}}]},
        FOUND.as_json() | {"runs": []},
    ],
)
def test_a_file_that_is_not_a_result_is_refused(tmp_path, text):
    if text is not None:
        (tmp_path / "results.json").write_text(text if isinstance(text, str) else json.dumps(text))
    with refused():
        read_results(tmp_path)


def test_the_result_of_a_run_that_is_none_is_named(tmp_path):
    (tmp_path / "run.json").write_text("{}")
    with refused():
        read_run(tmp_path / "run.json")
