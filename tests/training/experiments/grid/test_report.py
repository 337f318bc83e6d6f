from dataclasses import replace
from datetime import date

from stepsight.core.paths import asset
from stepsight.training.experiments.grid.results import read_results
from stepsight.training.experiments.grid.tables import make_grid_report
from stepsight.training.report.report import write_report
from tests.messages import refused
from tests.training.experiments.grid.toy import KEY, results

DAY = date(2026, 1, 2)
PLACES = [("a", "1k", seed) for seed in range(9)]
FIRST = results(dict.fromkeys(PLACES, (0.75, 0.5)), "as-labelled", about="as labelled")
SECOND = results(dict.fromkeys(PLACES, (0.625, 0.5)), "random", about="cut at random")


def test_the_papers_rows_make_a_page_and_its_tables(tmp_path):
    report = make_grid_report([read_results(asset("reference", "full-grid-results.json"))], DAY)
    assert "In macro-AUC the bidirectional run is ahead in 22 of 27 pairs, by +1.06 [" in report.page
    assert "In Late-AUC the bidirectional run is ahead in 22 of 27 pairs, by +6.20 [" in report.page
    names = {table.name for table in report.tables}
    assert names == {f"the-paper-s-grid-prm800k-offline-{what}" for what in ("pairs", "means", "cells", "runs")}
    page = write_report(report, tmp_path / "out")
    assert page.read_text(encoding="utf-8") == report.page
    for name in names:
        for suffix in (".tex", ".csv", ".md"):
            assert (tmp_path / "out" / "tables" / f"{name}{suffix}").stat().st_size > 100


def test_two_forms_are_compared_in_words():
    report = make_grid_report([FIRST, SECOND], DAY)
    # 0.25 in the first and 0.125 in the second: half of it.
    said = "the gain is +25.00 [+25.00, +25.00] points in the first and +12.50 [+12.50, +12.50] in the second"
    assert f"synthetic offline, macro-AUC: {said}: 50.0 [50.0, 50.0] % of it is left." in report.page
    assert "Late-AUC: the gain is 0.00 [0.00, 0.00] points" in report.page
    assert "; the first gain is not clearly above zero, so that" in report.page
    assert report.tables[0].name == "as-labelled-against-random"
    assert "as labelled; cut at random." in report.page


def test_a_report_needs_pairs_and_names_of_their_own():
    with refused():
        make_grid_report([FIRST, FIRST])
    elsewhere = tuple(replace(run, tests={"else": run.tests[KEY[0]]}) for run in FIRST.runs)
    other = replace(FIRST, name="other", runs=elsewhere)
    with refused():
        make_grid_report([FIRST, other])
    with refused():
        make_grid_report([replace(FIRST, name="half", runs=FIRST.runs[:1])])
