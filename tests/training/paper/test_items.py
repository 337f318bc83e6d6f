"""What the paper prints, listed by section as it stands in its text."""

import json
import re

from stepsight.core.metrics.published import reference_tables
from stepsight.core.paths import asset
from stepsight.training.paper.facts import paper_facts, recipe_facts, table_facts
from stepsight.training.paper.items import FigureOrigin, PaperItem, paper_sections
from tests.cases import each

PRINTED = {
    "1": ("fig:later-step-schematic; 22; 27; 88.8; 83.8; +11.3; +10.3; 5,222; +3.4"),
    "3.1": ("0.5; 0.15"),
    "4.1": ("54; 27; 1,000; 2,000; 3,000; 608"),
    "4.2": (
        "tab:main-3k-results; 45.4; 40.1; 59.6; 45.1; 40.4; 59.7; +0.3; −0.3; −0.1; 46.9; 41.1; 60.8; "
        "45.2; 39.9; 59.6; +1.7; +1.2; +1.2; 46.7; 41.1; 60.6; 44.1; 38.7; 58.5; +2.6; +2.4; +2.1; 22; "
        "+2.03; 22; +0.90; 22; +1.05"
    ),
    "5.1": ("159; 83; 1,418; 2,999; 8; 1; 2,048; 4; 64"),
    "5.2": (
        "tab:benchmarks; 93.0; 97.2; 88.8; 96.4; +13.4; +6.4; +11.3; +3.6; 90.2; 95.7; 83.8; 93.0; +9.2; "
        "+10.3; +5.0; +1.6; 63.6; 68.4; 61.0; 71.2; +2.0; +3.6; +1.3; −1.0; +20.5; +22.2; 85.9; +7.3"
    ),
    "5.3": (
        "tab:online-vs-offline; at most 3.5; less than 2; less than 4; less than 2; 3.9; 3.2; 0.6; 93.0; "
        "90.2; 89.8; 79.6; 89.6; 81.0; 66.6; 64.8; 60.7; 59.7; 60.1; 61.6; 70.3; 72.2"
    ),
    "6.1": ("10,000; 5,222; 52; 4,437; 44; 4; 3"),
    "6.2": (
        "tab:filter_ablation; 22.5; 249; 19.1; +3.4; 22; +1.6; +3.3; 19.2; +0.1; 20.9; 280; 19.2; 19.3; "
        "19.3; 250; 20.2"
    ),
    "7": ("54; 22; 88.8; 83.8; +3.4"),
    "Limitations": ("7.8; 79.6; 6.6; 82.0"),
    "Ethics": ("24"),
    "A.1": ("tab:scratch-configs; 1e-5; 500,000; 126,464; 4,096; 1,024; 3"),
    "A.2": (
        "54; 1,000; 2,000; 3,000; 13; 42; 7; 6; 4; 24; 4; 24; 2; 12; 1; 1,024; 200; 99.3; 0.9; 0.999; "
        "0.01; 5e-5; 8; 1.0; 3"
    ),
    "A.3": ("fig:8b-training; 12,000; 3.65; 0.5; 8; 2,048; 0.9; 0.95; 0.1; 1e-6; 64; 0.5; 1; 4; 21,784.6; 24.2"),
    "A.4": ("96,279; 96,280; 8; 2,048; 64; 1; 13; 64; 8"),
    "A.5": ("4; 4; 32; 4; 2,048; 5e-7; 16; 2; 42; 43; 44"),
    "B": (
        "tab:full-grid-results; tab:paired-stats; 54; 27; 22; +2.03; 22; +0.90; 22; +1.05; "
        "fig:grid-scaling; fig:grid-scatter; fig:grid-positional; fig:grid-diagnostics; +6.2; 23.8; 17.6; "
        "0; 45; 20; 8; 9"
    ),
    "C": (
        "fig:neutral-diagnostics; 96,280; 663,101; 79.6; 12.6; 7.8; 2,726; 18,559; 82.0; 11.4; 6.6; 49; "
        "0.3; 3.1; 2.8; 41.9; 1.5; 25.7; 22.1; 30.8; 74.5; 14.8; 22.3"
    ),
    "D": ("tab:gsm8k-full; 1,418; 2,999"),
    "E": ("0.5; 4,252; 1,000; 2,000; 3,000; 0.5; 608; 27"),
}
# Means over pairs that the paper has from unrounded figures.
ROUNDED = {"+2.03": "+2.02", "+1.05": "+1.06"}


def numbers():
    return [item for section in paper_sections() for item in section.items if item.is_number]


def test_every_table_figure_and_number_is_there_in_the_order_of_the_paper():
    found = {one.number: [item.label or item.printed for item in one.items] for one in paper_sections()}
    assert found == {section: text.split("; ") for section, text in PRINTED.items()}


def test_every_table_is_among_them_once():
    labels = [item.label for section in paper_sections() for item in section.items if item.label.startswith("tab:")]
    assert sorted(labels) == sorted(table.label for table in reference_tables())


def test_no_number_of_the_text_contradicts_the_rows_of_its_tables():
    facts = paper_facts()
    told = [(item, value) for item in numbers() if (value := item.computed(facts)) is not None]
    # All that the text says of figures in tables, and of what they come to.
    assert len(told) > 130
    off = {item.printed: item.shown(value) for item, value in told if item.agrees(value) is False}
    assert off == ROUNDED


def test_recipes_have_what_the_paper_says_of_them():
    facts = recipe_facts()
    told = [(item, value) for item in numbers() if (value := item.computed(facts)) is not None]
    assert len(told) > 70
    assert [(item.what, item.printed, value) for item, value in told if not item.agrees(value)] == []
    sizes = [name for name in table_facts() if name.startswith("tab:scratch-configs")]
    assert {name: facts[name] for name in sizes} == {name: table_facts()[name] for name in sizes}


def test_facts_that_items_ask_for_have_known_names():
    """What no fact of ours is called would be missing for ever."""
    known = set(paper_facts()) | set(recipe_facts())
    measured = re.compile(
        r"grid/(test_traces|early/neg|neu_auc|neu_f1(/least|/greatest)?)|dataset/MR-.*/(traces|errors)|pool/(train|test)"
        r"|prm800k-(train|test)/(traces|steps|neg|neu|pos)|training/(steps|seconds|gpu_hours|first_loss|final_loss)"
        r"|neutral/(predicted|predicted_share|f1|auc|0\.(5|15)/(f1|precision|recall))"
    )
    asked = {name for item in numbers() for name in item.of}
    assert [name for name in asked - known if not measured.fullmatch(name)] == []
    # Two of the appendix would need the paper's data and tokenizer.
    assert [item.printed for item in numbers() if not item.of] == ["200", "99.3"]


def item(printed, what="a number", how=""):
    return PaperItem(what, FigureOrigin("s", "c"), printed=printed, of=("a",), how=how)


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
    assert (item(printed).shown(value), item(printed).agrees(value)) == (shown, agrees)


def test_words_around_a_number_decide_what_agrees_with_it():
    assert item("24", "GPU-hours, about").agrees(99.0) is None
    assert item("20", "F1 of neu, below").agrees(19.9) is True
    assert item("20", "F1 of neu, below").agrees(20.1) is False
    drop = item("at most 3.5", how="largest drop")
    assert (drop.agrees(3.5), drop.agrees(3.6)) == (True, False)
    assert item("less than 2", how="largest drop").agrees(2.0) is False


def test_numbers_are_computed_from_facts_and_missing_where_one_is():
    facts = {"a": 5.0, "b": 4.0, "c": 3.0, "d": 1.0}

    def of(*names, how=""):
        return PaperItem("x", FigureOrigin("s", "c"), printed="1", of=names, how=how).computed(facts)

    assert (of("a"), of("a", "b"), of("b", "a", how="percent")) == (5.0, 1.0, 80.0)
    assert of("a", "b", "c", "d", how="largest drop") == 2.0
    assert (of("a", "z"), of()) == (None, None)


def test_every_source_is_used_and_has_a_command():
    sources = json.loads(asset("reference", "paper.json").read_text(encoding="utf-8"))["sources"]
    used = {one.source.name for section in paper_sections() for one in section.items}
    assert used == set(sources)
    assert all(values["command"].startswith("stepsight ") for values in sources.values())
