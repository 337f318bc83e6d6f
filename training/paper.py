"""A page that goes through the paper item by item, as `assets/reference/paper.json` lists them.

Each printed item is shown beside the value computed from the paper's own tables and the value measured by
StepSight.

Items are compared with facts: named numbers, from the paper or measured by StepSight.

A fact is NaN if its figure is undefined. For example, the AUC of the last third is undefined if the last thirds
contain only errors.

    TABLE/SECTION/ROW/COLUMN             a cell of a table, in the table's unit
    grid/…                               the results of a grid's runs, in percent and percentage points
    recipe/FILE/KEY, study/…             a setting of a configuration
    grid-design/KEY, …/SIZE/DATA/KEY     a setting of the grid, or of its runs of a size and an amount of data
    dataset/NAME/traces, …/errors        counts of a benchmark's file
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from functools import cache
from math import isnan
from pathlib import Path
from typing import Any

from stepsight.core.files.whole_files import read_json
from stepsight.core.metrics.published import PublishedRow, PublishedTable, reference_tables
from stepsight.core.metrics.reasoneval import Errors
from stepsight.core.paths import asset
from stepsight.core.scores import Thresholds
from stepsight.core.trace import Label
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.columns import read_gold
from stepsight.storage.judgments.evaluators import evaluators_of
from stepsight.storage.traces.queries import list_datasets
from stepsight.training.evaluate.evaluation import GoldView, evaluate
from stepsight.training.evaluate.judging import with_thresholds
from stepsight.training.experiments.finetuning.recipe import read_recipe
from stepsight.training.experiments.finetuning.study import read_study
from stepsight.training.experiments.grid.design import read_design
from stepsight.training.experiments.grid.results import (
    ACCURACY,
    MACRO_AUC,
    MACRO_F1,
    METRICS,
    GridResults,
    by_size_and_data,
    contrast,
    gains,
    pair_values,
)
from stepsight.training.experiments.grid.results import read_results as read_grid
from stepsight.training.report.html import Part, Section
from stepsight.training.report.report import Report
from stepsight.training.report.tables import Cell, CellKind, Column, Table
from stepsight.training.train.config import read_config
from stepsight.training.train.init import llama_config

Facts = dict[str, float]

CONFIGS = Path(__file__).parent / "configs"
_RECIPES = ("llada-prm-8b", "llada-prm-8b-bs64", "wizardmath-control")
# Columns that only identify a row.
_PLACES = ("Params", "Size", "Data", "Seed")
_MASKS = {"bidirectional": "bidir", "causal": "causal"}
_IN_RUNS = METRICS | {ACCURACY: "Acc"}
_IN_MEANS = {ACCURACY: "Acc", MACRO_F1: "F1", MACRO_AUC: "AUC"}


def cells_of(table: PublishedTable, every: bool = False) -> dict[str, float]:
    """Return the cells of a table by the names of their facts, or only those that do not identify a row. If rows
    share a name and the table has no sections, the first cell of a row becomes part of the name."""
    return {
        _cell(table, row, column.name): value
        for row in table.rows
        for column, value in zip(table.columns, row.values, strict=True)
        if every or column.name not in _PLACES
    }


def _cell(table: PublishedTable, row: PublishedRow, column: str) -> str:
    is_shared = sum(other.name == row.name for other in table.rows) > 1
    return f"{table.label}/{row.section or (f'{row.values[0]:g}' if is_shared else '')}/{row.name}/{column}"


def paper_facts() -> Facts:
    """Return the facts that the paper itself provides: its grid's results, its tables' cells, and `facts` of
    paper.json."""
    facts = grid_facts(read_grid(asset("reference", "full-grid-results.json")))
    for table in reference_tables():
        facts |= cells_of(table, every=True)
    facts |= paper()["facts"]
    return facts


@cache
def paper() -> dict[str, Any]:
    """Return the content of `assets/reference/paper.json`: the items of the paper by section, and the sources of
    StepSight's own figures."""
    return read_json(asset("reference", "paper.json"))


def recipe_facts() -> Facts:
    """Return the settings of the paper's recipes in `training/configs`, and the default thresholds."""
    recipes: dict[str, Any] = {name: asdict(read_config(CONFIGS / f"{name}.yaml")) for name in _RECIPES}
    recipes["mistral-7b-sft"] = asdict(read_recipe(CONFIGS / "mistral-7b-sft.yaml"))
    design = read_design(CONFIGS / "grid.yaml")
    runs: dict[str, Any] = {}
    for run in design.runs():
        config = design.config(run)
        assert config.backbone is not None
        llama = llama_config(config.backbone, config.vocabulary, config.attention)
        runs.setdefault(run.size, {})[run.data] = asdict(config) | {"llama": llama.to_dict()}
    settings = {
        "threshold": asdict(Thresholds()),
        "labels": [int(label) for label in Label],
        "recipe": recipes,
        "study/filter": asdict(read_study(CONFIGS / "filter.yaml")),
        "grid-design": asdict(design) | runs,
    }
    facts = _numbers("", settings)
    names = paper()["dimensions"]
    for row, path in names["rows"].items():
        for column, key in names["columns"].items():
            facts[f"tab:scratch-configs//{row}/{column}"] = facts[f"{path}/{key}"]
    return facts


def _numbers(path: str, values: object) -> Facts:
    """Return all numbers in nested lists and mappings by their paths, and the length of each list as `count`."""
    if isinstance(values, int | float) and not isinstance(values, bool):
        return {path: float(values)}
    items: Iterable[tuple[object, object]] = ()
    if isinstance(values, Mapping):
        items = values.items()
    elif isinstance(values, Sequence) and not isinstance(values, str):
        items = [*enumerate(values), ("count", len(values))]
    facts: Facts = {}
    for key, value in items:
        facts |= _numbers(f"{path}/{key}" if path else str(key), value)
    return facts


def grid_facts(results: GridResults) -> Facts:
    """Return the facts on the offline results of a grid on its first test set, as in section 4.2 and appendix B of
    the paper."""
    key = results.keys[0]
    facts: Facts = {"grid/runs": len(results.runs)}
    for run, of_run in results.figures(key):
        where = f"{run.size}, {run.data} traces, seed {run.seed}"
        for name, column in _IN_RUNS.items():
            value = of_run[name]
            cell = f"tab:full-grid-results/{where}/{_MASKS[run.mask].title()}/{column}"
            facts[cell] = float("nan") if value is None else 100 * value
    for name, title in METRICS.items():
        pairs = pair_values(results, key, name)
        of_pairs = contrast(gains(pairs))
        facts |= {f"grid/{name}/{mask}": 100 * float(pairs[mask].mean()) for mask in _MASKS}
        facts[f"grid/wins/{name}"] = of_pairs.wins if of_pairs.pairs else float("nan")
        facts[f"grid/mean/{name}"] = 100 * of_pairs.mean.number
        row = f"tab:paired-stats//{title}"
        facts |= {f"{row}/Wins": facts[f"grid/wins/{name}"], f"{row}/Mean Δ": facts[f"grid/mean/{name}"]}
        facts[f"{row}/Pairs"] = of_pairs.pairs or float("nan")
        cells = list(by_size_and_data(pairs))
        for data, size, part in cells if name in _IN_MEANS else ():
            if data == cells[-1][0]:
                for mask, short in _MASKS.items():
                    cell = f"tab:main-3k-results//LLaDA-{short}/{size} {_IN_MEANS[name]}"
                    facts[cell] = round(100 * float(part[mask].mean()), 1)
        if name == MACRO_AUC:
            facts["grid/pairs"] = facts[f"{row}/Pairs"]
            facts["grid/cells"] = len(cells)
            facts["grid/cells_ahead"] = sum(gains(part).mean() > -1e-9 for *_, part in cells)
    return with_differences(facts)


def with_differences(facts: Facts) -> Facts:
    """Return the facts with the rows of tables that are the difference of two others, as paper.json has them."""
    rows = paper()["differences"]
    added: Facts = {}
    for table in reference_tables():
        for row in table.rows if table.label in rows else ():
            for column in table.columns if row.name.startswith("Δ") else ():
                ends = [f"{table.label}/{row.section}/{name}/{column.name}" for name in rows[table.label]]
                if all(end in facts for end in ends):
                    added[_cell(table, row, column.name)] = facts[ends[0]] - facts[ends[1]]
    return facts | added


def store_facts(store: Store) -> Facts:
    """Return facts about the paper's benchmarks in the store, and about how well evaluators do on them."""
    facts: Facts = {}
    measured: dict[tuple[str, str, str], dict[str, float]] = {}
    benchmarks = read_json(asset("reference", "names.json"))["datasets"]
    for name, about in benchmarks.items():
        for dataset in list_datasets(store):
            if dataset.kind != about["kind"]:
                continue
            gold = read_gold(store, dataset)
            wrong = set(gold.trace[gold.valid == 0].tolist())
            inside = [place for place, group in enumerate(gold.groups) if about["group"] in ("", group)]
            if len(inside) != about["traces"]:
                continue
            facts[f"dataset/{name}/traces"] = len(inside)
            if about["errors"] == Errors.INVALID.value:
                facts[f"dataset/{name}/errors"] = len(wrong.intersection(inside))
            evaluators = [with_thresholds(store, dataset, other) for other in evaluators_of(store, dataset.id)]
            for row in evaluate(store, GoldView(dataset, about["group"]), evaluators, draws=1).rows:
                if row.published is not None and row.errors.value == about["errors"]:
                    values = {key: value for key, value in row.measured.items() if value.exists}
                    of_row = {key: round(100 * value.number, 1) for key, value in values.items()}
                    measured[name, row.published.evaluator, row.mode.value] = of_row
    for table in reference_tables():
        for printed in table.rows:
            values_here = measured.get((printed.dataset, printed.evaluator, printed.mode), {})
            for column in table.columns:
                if column.metric in values_here:
                    facts[_cell(table, printed, column.name)] = values_here[column.metric]
    return with_differences(facts)


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

    `of` names the facts from which a number is computed. If `of` names one fact, the
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
