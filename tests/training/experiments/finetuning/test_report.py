from datetime import date

import pytest

from stepsight.core.files.json_values import write_json
from stepsight.core.paths import asset
from stepsight.training.experiments.finetuning.report import make_filtering_report
from stepsight.training.experiments.finetuning.results import FILE
from tests.messages import refused
from tests.training.experiments.finetuning.test_results import result

PAPER = asset("reference", "filter-ablation.json")


@pytest.fixture
def folder(tmp_path):
    for one in (result([1, 0, 1]), result([0, 0, 1], "random")):
        write_json(tmp_path / "runs" / one.model / FILE, one.as_json())
    return tmp_path / "runs"


def test_a_report_holds_our_tables_and_the_papers(folder):
    report = make_filtering_report([folder, PAPER], date(2026, 11, 21))
    assert [table.name for table in report.tables] == ["subsets", "runs", "paper-subsets"]
    assert "+33.3 points against the random subset" in report.page
    assert "21 November 2026" in report.page
    assert [table.name for table in make_filtering_report([PAPER]).tables] == ["paper-subsets"]


def test_the_papers_table_is_given_once(folder):
    with refused():
        make_filtering_report([PAPER, PAPER])
    with refused():
        make_filtering_report([folder.parent / "empty"])
