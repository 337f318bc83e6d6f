from datetime import date

import pytest

from core.assets import asset
from core.errors import UserError
from core.json_file import write_json
from tests.training.finetuning.test_results import result
from training.finetuning.report import make_filtering_report
from training.finetuning.results import FILE

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
    with pytest.raises(UserError, match="given twice"):
        make_filtering_report([PAPER, PAPER])
    with pytest.raises(UserError, match=r"there is no math500\.json"):
        make_filtering_report([folder.parent / "empty"])
