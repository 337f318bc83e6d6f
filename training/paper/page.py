"""A page that goes through the paper item by item, as `assets/reference/paper.json` lists them.

Each printed item is shown beside the value computed from the paper's own tables and the value measured by
StepSight.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from math import isnan

from stepsight.core.metrics.published import reference_tables
from stepsight.training.paper.facts import cells_of, paper, paper_facts
from stepsight.training.report.html import Part, Section
from stepsight.training.report.report import Report
from stepsight.training.report.tables import Cell, CellKind, Column, Table

_NUMBER = re.compile(r"[+−-]?[\d,]+(\.(?P<decimals>\d+))?(e-?\d+)?")
_COLUMNS = {"what": "What", "printed": "The paper", "rows": "Its own rows", "ours": "Here", "same": "Same"}
_COLUMNS["source"] = "By"
_NOTES = (
    "Its own rows: what a number of the text comes to by the rows of the paper's tables, which are rounded.",
    "Here: set in a recipe, counted in a file or measured; else what it needs, by the first table. Undefined: what "
    "was measured has no such figure, as an AUC where all steps have one label. Same: to the printed digit.",
)


@dataclass(frozen=True)
class PaperItem:
    """An item of the paper: a `table` or a `figure` with its LaTeX label, or a number with its `printed` form.

    `of` names the facts (`training.paper.facts`) from which a number is computed. If `of` names one fact, the
    number is that fact. If it names two, the number is their difference. `how` names another rule: `percent` is the
    first as a percentage of the second, `quotient` the first divided by all others, and `largest drop` the largest
    difference within a pair. `bound` says in which way the paper is not exact: `about`, `below` or `at most`.
    `source` says where StepSight's own figures come from.
    """

    what: str
    source: str
    table: str = ""
    figure: str = ""
    printed: str = ""
    of: Sequence[str] = ()
    how: str = ""
    bound: str = ""

    def shown(self, value: float) -> str:
        """Return a value formatted like the printed number. NaN becomes "undefined"."""
        if isnan(value):
            return "undefined"
        number = self._number()
        if "e" in number[0]:
            return f"{value:.0e}".replace("e-0", "e-")
        decimals = len(number["decimals"] or "")
        sign = "−" if round(value, decimals) < 0 else "+" if number[0].startswith("+") else ""
        return f"{sign}{abs(value):,.{decimals}f}"

    def agrees(self, value: float) -> bool | None:
        """True if a value rounds to the printed number or, where the paper states an upper bound, lies below it.
        None if the paper states only an approximate number, or if the value is undefined."""
        if self.bound == "about" or isnan(value):
            return None
        printed = float(self._number()[0].replace(",", "").replace("−", "-"))
        if self.bound:
            return value < printed + (0.05 if self.bound == "at most" else 0)
        return self.shown(value) == self.shown(printed)

    def _number(self) -> re.Match[str]:
        match = _NUMBER.search(self.printed)
        assert match is not None, self.printed
        return match

    def computed(self, facts: Mapping[str, float]) -> float | None:
        """Compute the number from facts. Returns None if a fact is missing, and NaN if a fact is NaN."""
        if not self.of or any(name not in facts for name in self.of):
            return None
        first, *others = (facts[name] for name in self.of)
        if self.how == "percent":
            return 100 * first / others[0]
        if self.how == "largest drop":
            ends = [first, *others]
            return max(high - low for high, low in zip(ends[::2], ends[1::2], strict=True))
        for other in others:
            first = first / other if self.how == "quotient" else first - other
        return first


@cache
def paper_sections() -> dict[tuple[str, str], tuple[PaperItem, ...]]:
    """Return the items of every section of the paper that has a table, a figure or a number, by its number and its
    title."""
    sections = paper()["sections"]
    return {(s["section"], s["title"]): tuple(PaperItem(**item) for item in s["items"]) for s in sections}


def make_paper_report(ours: Mapping[str, float], day: date | None = None) -> Report:
    """Return the report that compares every item of the paper with the facts `ours`."""
    printed, tables = paper_facts(), {table.label: cells_of(table) for table in reference_tables()}
    sections = [Section("Where figures come from", [_sources(ours)])]
    for (number, title), items in paper_sections().items():
        title = title if title.startswith(number) else f"{number} {title}"
        rows = tuple(_row(item, printed, ours, tables.get(item.table)) for item in items)
        table = Table(f"paper-{number.lower()}", f"Printed in {title}", _texts(**_COLUMNS), rows)
        sections.append(Section(title, [table]))
    lead = f"{day or date.today():%d %B %Y}"
    return Report.of("The paper, item by item", lead, [Part("LLaDA-PRM", "", sections)])


def _texts(**titles: str) -> tuple[Column, ...]:
    return tuple(Column(key, title, CellKind.TEXT) for key, title in titles.items())


def _row(
    item: PaperItem, printed: Mapping[str, float], ours: Mapping[str, float], cells: Mapping[str, float] | None
) -> tuple[Cell, ...]:
    """Return the row of an item. `cells` are those of the table that the item is, or None for other items."""
    what, text, by_rows, here, verdict = item.what, item.printed, "", "", ""
    if item.printed:
        value, of_rows = item.computed(ours), item.computed(printed)
        by_rows = "" if of_rows is None else item.shown(of_rows)
        if value is not None:
            here = item.shown(value)
            verdict = {None: "", True: "yes", False: "no"}[item.agrees(value)]
    elif cells is None:
        what = f"Figure: {item.what}"
    else:
        what, text = f"Table: {item.what}", f"{len(cells)} figures"
        measured = [name for name in cells if not isnan(ours.get(name, float("nan")))]
        equal = sum(_is_same(cells[name], ours[name]) for name in measured)
        if measured:
            here = f"{len(measured)} of them"
            verdict = "yes" if equal == len(measured) else f"{equal} of {len(measured)}"
    if not here and paper()["sources"][item.source]["needs"]:
        here = f"needs {item.source}"
    return what, text, by_rows, here, verdict, item.source


def _is_same(printed: float, ours: float) -> bool:
    """True if a value, rounded to the same number of decimals, equals the printed one."""
    decimals = max(len(f"{printed:.2f}".rstrip("0").partition(".")[2]), 1)
    return round(ours, decimals) == round(printed, decimals)


def _sources(ours: Mapping[str, float]) -> Table:
    """Return the table of the sources, with a note on how many of the paper's items are here."""
    items = [item for section in paper_sections().values() for item in section]
    named = {item.source: paper()["sources"][item.source] for item in items}
    rows = tuple(
        (name, source["command"], source["needs"] or "nothing but a checkout") for name, source in named.items()
    )
    numbers = [item for item in items if item.printed]
    values = [(item, item.computed(ours)) for item in numbers]
    verdicts = [item.agrees(value) for item, value in values if value is not None and not isnan(value)]
    lead = (
        f"{len({item.table for item in items if item.table})} tables, "
        f"{len({item.figure for item in items if item.figure})} figures and {len(numbers)} numbers of the text. "
        f"Of the numbers {len(verdicts)} are here, {verdicts.count(True)} as the paper prints them and "
        f"{verdicts.count(False)} otherwise."
    )
    columns = _texts(name="By", command="Command", needs="Needs")
    return Table("paper-sources", "What is named in the last column of the others", columns, rows, (lead, *_NOTES))
