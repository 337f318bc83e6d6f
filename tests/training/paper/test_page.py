"""What the paper prints, listed by section as it stands in its text, and the page that compares it."""

import re

from stepsight.app.commands.cli import main
from stepsight.core.metrics.published import reference_tables
from stepsight.core.paths import asset
from stepsight.training.paper import PaperItem, make_paper_report, paper, paper_facts, paper_sections, recipe_facts
from tests.cases import each

# How many tables, figures and numbers each section prints.
PRINTED = {
    "1": 9,
    "3.1": 2,
    "4.1": 6,
    "4.2": 34,
    "5.1": 9,
    "5.2": 29,
    "5.3": 22,
    "6.1": 7,
    "6.2": 17,
    "7": 5,
    "Limitations": 4,
    "Ethics": 1,
    "A.1": 7,
    "A.2": 25,
    "A.3": 16,
    "A.4": 9,
    "A.5": 11,
    "B": 22,
    "C": 23,
    "D": 3,
    "E": 8,
}
# Means over pairs that the paper has from unrounded figures.
ROUNDED = {"+2.03": "+2.02", "+1.05": "+1.06"}


ITEMS = [item for items in paper_sections().values() for item in items]
NUMBERS = [item for item in ITEMS if item.printed]


def values_of(facts):
    """The numbers that these facts give, with their items."""
    return [(item, value) for item in NUMBERS if (value := item.computed(facts)) is not None]


def test_every_table_figure_and_number_is_there():
    assert {number: len(items) for (number, _), items in paper_sections().items()} == PRINTED
    tables = sorted(item.table for item in ITEMS if item.table)
    assert tables == sorted(table.label for table in reference_tables())


def test_no_number_of_the_text_contradicts_the_rows_of_its_tables():
    values = values_of(paper_facts())
    # All that the text says of figures in tables, and of what they come to.
    assert len(values) > 130
    off = {item.printed: item.shown(value) for item, value in values if item.agrees(value) is False}
    assert off == ROUNDED


def test_recipes_have_what_the_paper_says_of_them():
    facts = recipe_facts()
    values = values_of(facts)
    assert len(values) > 70
    assert [(item.what, item.printed, value) for item, value in values if not item.agrees(value)] == []
    sizes = {name: value for name, value in paper_facts().items() if name.startswith("tab:scratch-configs")}
    assert {name: facts[name] for name in sizes} == sizes


def test_facts_that_items_ask_for_have_known_names():
    """What no fact of ours is called would be missing for ever."""
    known = set(paper_facts()) | set(recipe_facts())
    used = {name for item in NUMBERS for name in item.of}
    assert [name for name in used - known if not re.fullmatch(r"dataset/MR-.*/(traces|errors)", name)] == []
    # Those of PRM800K itself, of the grid by class and of the 8B run would need the paper's data and GPUs.
    sources = {item.source for item in NUMBERS if not item.of}
    assert all(source in ("training", "grid") or source.startswith("PRM800K") for source in sources)


def number(printed, bound="", of=("a",), how=""):
    return PaperItem("a number", "code", printed=printed, of=of, how=how, bound=bound)


@each(
    "printed, value, shown, agrees",
    [
        ("22", 22.0, "22", True),
        ("88.8", 88.84, "88.8", True),
        ("88.8", 88.86, "88.9", False),
        ("+2.03", 2.034, "+2.03", True),
        ("+0.3", -0.3, "−0.3", False),
        ("−0.1", -0.149, "−0.1", True),
        ("+0.1", 0.04, "+0.0", False),
        ("96,280", 96279.0, "96,279", False),
        ("1e-6", 0.000001, "1e-6", True),
        ("5e-5", 0.000051, "5e-5", True),
        ("21,784.6", 21784.6, "21,784.6", True),
    ],
)
def test_values_are_written_as_the_printed_one_is(printed, value, shown, agrees):
    assert (number(printed).shown(value), number(printed).agrees(value)) == (shown, agrees)


@each(
    "printed, bound, value, agrees",
    [
        ("24", "about", 99.0, None),
        ("20", "below", 19.9, True),
        ("less than 2", "below", 2.0, False),
        ("at most 3.5", "at most", 3.5, True),
        ("at most 3.5", "at most", 3.6, False),
        ("1", "", float("nan"), None),
    ],
)
def test_a_bound_decides_what_agrees_with_a_number(printed, bound, value, agrees):
    assert number(printed, bound).agrees(value) is agrees


@each(
    "of, how, value",
    [
        ("a", "", 5.0),
        ("ab", "", 1.0),
        ("ba", "percent", 80.0),
        ("abe", "quotient", 0.625),
        ("abcd", "largest drop", 2.0),
        ("az", "", None),
        ("", "", None),
    ],
)
def test_numbers_are_computed_from_facts_and_missing_where_one_is(of, how, value):
    facts = {"a": 5.0, "b": 4.0, "c": 3.0, "d": 1.0, "e": 2.0}
    assert number("1", of=tuple(of), how=how).computed(facts) == value


def test_every_source_is_used_and_has_a_command():
    sources = paper()["sources"]
    assert {item.source for item in ITEMS} == set(sources)
    assert all(values["command"].startswith("stepsight ") for values in sources.values())


def rows(markdown):
    """The cells of every row, but for the heads."""
    lines = [line for line in markdown.splitlines() if line.startswith("|") and not line.startswith("| --")]
    cells = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]
    return [row for row in cells if row[0] not in ("What", "By")]


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
        "tab:main-3k-results//LLaDA-bidir/1B Acc": 45.4,
        "tab:main-3k-results//LLaDA-causal/1B Acc": 45.3,
        "grid/mean/late_auc": float("nan"),
        "tab:paired-stats//Late-AUC/Mean Δ": float("nan"),
    }
    report = make_paper_report(ours)
    tables = {table.name: table for table in report.tables}
    found = {row[0]: row for row in tables["paper-a.3"].rows}
    assert found["runtime, seconds"][1:5] == ("21,784.6", "", "needs training", "")
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
    assert (same + other, other) == (here, 2)


def test_the_report_is_a_page_and_files(tmp_path, capsys):
    grid = str(asset("reports") / "grid-mini" / "as-labelled.json")
    assert main(["report", "paper", "--no-store", "--grid", grid, "--output", str(tmp_path / "out")]) == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert capsys.readouterr().out == f"{tmp_path / 'out' / 'report.html'}\n"
    assert len(list((tmp_path / "out" / "tables").glob("*.csv"))) == 1 + len(paper_sections())
    assert "F1 of neu over all runs of the grid, least" in page
