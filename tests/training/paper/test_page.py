"""The page, and `stepsight report paper` as it is typed."""

import re

import pytest

from stepsight.app.commands.cli import main
from stepsight.core.paths import asset
from stepsight.training.paper.facts import recipe_facts
from stepsight.training.paper.items import paper_sections
from stepsight.training.paper.page import make_paper_report


def rows(markdown):
    """The cells of every row, but for the heads."""
    lines = [line for line in markdown.splitlines() if line.startswith("|") and not line.startswith("| --")]
    cells = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]
    return [row for row in cells if row[0] not in ("What", "By")]


@pytest.mark.slow
def test_every_item_has_a_row_with_what_it_needs(tmp_path, capsys):
    assert main(["report", "paper", "--db", str(tmp_path / "store.db")]) == 0
    sources, told = [], []
    for row in rows(capsys.readouterr().out):
        (sources if len(row) == 3 else told).append(row)
    items = [item for section in paper_sections() for item in section.items]
    assert len(told) == len(items)
    named = {name for name, _, _ in sources}
    for item, (what, printed, _, here, same, by) in zip(items, told, strict=True):
        assert what.endswith(item.what)
        assert by in named
        if item.is_number:
            assert printed == item.printed
            # Nothing is both here and missing, and what is missing says what it needs.
            value = item.computed(recipe_facts())
            assert here == (f"needs {item.source.name}" if value is None else item.shown(value))
            assert same == ("" if value is None else "yes")
    missing = [row for row in told if row[3].startswith("needs ")]
    assert 120 < len(missing) < 200


def test_the_recorded_page_is_of_the_paper_as_it_is_read_now(tmp_path, capsys):
    """Its own figures are of a store with MR-MATH; all else stands in the checkout."""
    recorded = rows((asset("reports") / "paper" / "README.md").read_text(encoding="utf-8"))
    assert main(["report", "paper", "--no-store"]) == 0
    fresh = rows(capsys.readouterr().out)
    assert [row[:3] for row in recorded] == [row[:3] for row in fresh]
    for old, new in zip(recorded, fresh, strict=True):
        if not new[3:] or not new[3].startswith("needs "):
            assert old == new or new[1].endswith("figures")


def test_figures_of_ours_stand_beside_those_of_the_paper():
    ours = recipe_facts() | {
        "training/seconds": 21784.6,
        "training/gpu_hours": 25.0,
        "tab:main-3k-results//LLaDA-bidir/1B Acc": 45.4,
        "tab:main-3k-results//LLaDA-causal/1B Acc": 45.3,
        "grid/late/gain": float("nan"),
        "tab:paired-stats//Late-AUC/Mean Δ": float("nan"),
    }
    report = make_paper_report(ours)
    tables = {table.name: table for table in report.tables}
    found = {row[0]: row for row in tables["paper-a.3"].rows}
    assert found["runtime, seconds"][1:5] == ("21,784.6", "", "21,784.6", "yes")
    assert found["GPU-hours"][1:5] == ("24.2", "", "25.0", "no")
    grid = {row[0]: row for row in tables["paper-4.2"].rows}
    assert grid["Table: both masks at 3,000 traces, mean of three seeds"][1:5] == (
        "27 figures", "", "2 of them", "1 of 2"
    )  # fmt: skip
    assert grid["1B, bidirectional − causal, accuracy"][1:5] == ("+0.3", "+0.3", "+0.1", "no")
    assert grid["2B, bidirectional − causal, accuracy"][1:5] == ("+1.7", "+1.7", "needs grid", "")
    late = {row[0]: row for row in tables["paper-b"].rows}
    assert late["gain in the late bucket, macro-AUC"][1:5] == ("+6.2", "+6.2", "undefined", "")
    assert late["Table: matched pairs"][3] == "needs grid"
    lead = tables["paper-sources"].notes[0]
    here, same, other = map(
        int, re.search(r"Of the numbers (\d+) are here, (\d+) as .* and (\d+) otherwise", lead).groups()
    )
    assert (same + other, other) == (here - 1, 3)


def test_the_report_is_a_page_and_files(tmp_path, capsys):
    grid = str(asset("reports") / "grid-mini" / "as-labelled.json")
    assert main(["report", "paper", "--no-store", "--grid", grid, "--output", str(tmp_path / "out")]) == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert capsys.readouterr().out == f"{tmp_path / 'out' / 'report.html'}\n"
    assert len(list((tmp_path / "out" / "tables").glob("*.csv"))) == 1 + len(paper_sections())
    assert "F1 of neu over all runs of the grid, least" in page


def test_missing_sources_are_named(tmp_path, capsys):
    db = str(tmp_path / "store.db")
    for options, message in (
        (["--no-store", "--train", "x"], "--train and --test need the store"),
        (["--db", db, "--test", "x"], "There is no dataset 'x'"),
        (["--no-store", "--grid", str(tmp_path)], "there is no results.json with the results of a grid"),
        (["--no-store", "--run", str(tmp_path)], "stepsight.json is missing"),
        (["--no-store", "--filtering", str(tmp_path)], "there is no math500.json in it"),
    ):
        assert main(["report", "paper", *options, "--output", str(tmp_path / "out")]) == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
