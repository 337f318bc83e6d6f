"""A page that goes through the paper item by item.

Each printed item is shown beside the value computed from the paper's own tables and the value measured by
StepSight.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from math import isnan, nan
from pathlib import Path

from stepsight.core.metrics.published import PublishedTable, reference_tables
from stepsight.storage.database.store import Store
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.experiments.finetuning.results import read_results as read_filtering
from stepsight.training.experiments.grid.results import read_results as read_grid
from stepsight.training.paper.facts import (
    Facts,
    cells_of,
    filter_facts,
    grid_facts,
    label_facts,
    neutral_facts,
    paper_facts,
    recipe_facts,
    store_facts,
    training_facts,
)
from stepsight.training.paper.items import PaperItem, PaperSection, paper_sections
from stepsight.training.report.html import Part, Section
from stepsight.training.report.report import Report
from stepsight.training.report.tables import Cell, CellKind, Column, Table


def _texts(**titles: str) -> tuple[Column, ...]:
    return tuple(Column(key, title, CellKind.TEXT) for key, title in titles.items())


_COLUMNS = _texts(what="What", printed="The paper", rows="Its own rows", ours="Here", same="Same", source="By")
_SOURCES = _texts(name="By", command="Command", needs="Needs")
_NOTES = (
    "Its own rows: what a number of the text comes to by the rows of the paper's tables, which are rounded.",
    "Here: set in a recipe, counted in a file or measured; else what it needs, by the first table. Undefined: what "
    "was measured has no such figure, as an AUC where all steps have one label. Same: to the printed digit.",
)


@dataclass(frozen=True)
class FigureSources:
    """The sources of StepSight's own figures. Sources that are None are skipped.

    `train` and `test` are the names of the stored datasets that hold the two parts of PRM800K. `grid` and `run` are
    the folders of a grid and of a training run, and `filtering` lists folders of fine-tuning experiments.
    """

    store: Store | None = None
    train: str | None = None
    test: str | None = None
    grid: Path | None = None
    filtering: Sequence[Path] = ()
    run: Path | None = None


def our_facts(evidence: FigureSources) -> Facts:
    """Return all facts that the sources provide. Raises `UserError` if a source does not exist."""
    facts = recipe_facts()
    if evidence.store is not None:
        facts |= store_facts(evidence.store)
        for split, name in (("train", evidence.train), ("test", evidence.test)):
            if name is not None:
                facts |= label_facts(evidence.store, find_dataset(evidence.store, name), split)
        if evidence.test is not None:
            facts |= neutral_facts(evidence.store, find_dataset(evidence.store, evidence.test))
    if evidence.grid is not None:
        facts |= grid_facts(read_grid(evidence.grid))
    if evidence.filtering:
        facts |= filter_facts(read_filtering(evidence.filtering))
    if evidence.run is not None:
        facts |= training_facts(evidence.run)
    return facts


def make_paper_report(ours: Mapping[str, float], day: date | None = None) -> Report:
    printed, tables = paper_facts(), {table.label: table for table in reference_tables()}
    sections = [Section("Where figures come from", [_sources(ours, tables)])]
    sections += [Section(_title(section), [_table(section, printed, ours, tables)]) for section in paper_sections()]
    part = Part("LLaDA-PRM", "", sections)
    return Report.of("The paper, item by item", f"{day or date.today():%d %B %Y}", [part])


def _title(section: PaperSection) -> str:
    unnumbered = section.title.startswith(section.number)
    return section.title if unnumbered else f"{section.number} {section.title}"


def _sources(ours: Mapping[str, float], tables: Mapping[str, PublishedTable]) -> Table:
    sources = {item.source: None for section in paper_sections() for item in section.items}
    rows = tuple((one.name, one.command, one.needs or "nothing but a checkout") for one in sources)
    caption = "What is named in the last column of the others"
    return Table("paper-sources", caption, _SOURCES, rows, (_lead(ours, tables), *_NOTES))


def _table(
    section: PaperSection,
    printed: Mapping[str, float],
    ours: Mapping[str, float],
    tables: Mapping[str, PublishedTable],
) -> Table:
    rows = tuple(_row(item, printed, ours, tables) for item in section.items)
    return Table(f"paper-{section.number.lower()}", f"Printed in {_title(section)}", _COLUMNS, rows)


def _row(
    item: PaperItem, printed: Mapping[str, float], ours: Mapping[str, float], tables: Mapping[str, PublishedTable]
) -> tuple[Cell, ...]:
    if item.is_number:
        by_rows, here = item.computed(printed), item.computed(ours)
        said = tuple("" if value is None else item.shown(value) for value in (by_rows, here))
        same = None if here is None or isnan(here) else item.agrees(here)
        verdict = "" if same is None else "yes" if same else "no"
        what, text = item.what, item.printed
        missing = here is None and item.source.needs
    elif item.label in tables:
        names = cells_of(tables[item.label])
        there = [name for name in names if not isnan(ours.get(name, nan))]
        equal = sum(_same(printed[name], ours[name]) for name in there)
        what, text = f"Table: {item.what}", f"{len(names)} figures"
        said = ("", f"{len(there)} of them" if there else "")
        verdict = "" if not there else "yes" if equal == len(there) else f"{equal} of {len(there)}"
        missing = not there and item.source.needs
    else:
        what, text, said, verdict, missing = f"Figure: {item.what}", "", ("", ""), "", item.source.needs
    rows, here_text = said
    return what, text, rows, f"needs {item.source.name}" if missing else here_text, verdict, item.source.name


def _same(printed: float, ours: float) -> bool:
    """True if a value, rounded to the same number of decimals, equals the printed one."""
    decimals = len(f"{printed:.2f}".rstrip("0").partition(".")[2])
    return round(ours, max(decimals, 1)) == round(printed, max(decimals, 1))


def _lead(ours: Mapping[str, float], tables: Mapping[str, PublishedTable]) -> str:
    items = [item for section in paper_sections() for item in section.items]
    numbers = [item for item in items if item.is_number]
    labels = {item.label for item in items if not item.is_number}
    found = [(item, item.computed(ours)) for item in numbers]
    told = [item.agrees(value) for item, value in found if value is not None and not isnan(value)]
    same, other = (sum(one is verdict for one in told) for verdict in (True, False))
    return (
        f"{len(labels & set(tables))} tables, {len(labels - set(tables))} figures and {len(numbers)} numbers of "
        f"the text. Of the numbers {len(told)} are here, {same} as the paper prints them and {other} otherwise."
    )
