"""What the paper prints, listed by section as it stands in its text."""

import json
import re

from stepsight.core.metrics.published import reference_tables
from stepsight.core.paths import asset
from stepsight.training.paper.facts import paper_facts, recipe_facts, table_facts
from stepsight.training.paper.items import FigureOrigin, PaperItem, paper_sections
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


def numbers():
    return [item for section in paper_sections() for item in section.items if item.is_number]


def test_every_table_figure_and_number_is_there():
    assert {one.number: len(one.items) for one in paper_sections()} == PRINTED


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
