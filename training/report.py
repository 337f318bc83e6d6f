"""A report: what evaluators reach on datasets of the store, as one page and as files of its tables."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from core.errors import UserError
from core.metrics.bootstrap import DRAWS
from storage.evaluators import StoredEvaluator, judges_of
from storage.queries import Dataset
from storage.store import Store
from training.chapters import dataset_chapter, evaluators_chapter, tables_of
from training.evaluation import MODES, Evaluation, evaluate
from training.findings import slug
from training.page import render
from training.tables import Table, to_csv, to_latex, to_markdown

PAGE = "report.html"
_WRITERS = {".tex": to_latex, ".csv": to_csv, ".md": to_markdown}


@dataclass(frozen=True)
class Report:
    """The page as HTML, and its tables."""

    page: str
    tables: tuple[Table, ...]


def make_report(
    store: Store,
    datasets: Sequence[Dataset],
    names: Sequence[str] = (),
    draws: int = DRAWS,
    force: bool = False,
    group: str = "",
    day: date | None = None,
) -> Report:
    """Measure on each dataset the evaluators of those names that have judged it; without names, all that have.
    With `group`, on that group of each dataset's traces.

    Nothing is scored, and for the same store only the `day` differs. Raises `UserError` where a name has judged
    none of the datasets, or where two datasets would have tables of the same names.
    """
    _check_slugs(datasets)
    judged = {dataset.id: judges_of(store, dataset.id) for dataset in datasets}
    kept = _chosen({one.id: one for found in judged.values() for one in found}, names, datasets)
    found = []
    for dataset in datasets:
        chosen = [kept[one.id] for one in judged[dataset.id] if one.id in kept]
        found.append(evaluate(store, dataset, chosen, MODES, draws, force, group))
    return write_up(found, list(kept.values()), day)


def write_up(found: Sequence[Evaluation], evaluators: Sequence[StoredEvaluator], day: date | None = None) -> Report:
    """The report of evaluations, one or more, of those evaluators."""
    chapters = [dataset_chapter(one) for one in found]
    chapters.append(evaluators_chapter(evaluators, len(found[0].weights)))
    lead = f"{', '.join(one.dataset.name for one in found)}; {day or date.today():%d %B %Y}"
    return Report(render("StepSight report", lead, chapters), tuple(tables_of(chapters)))


def _check_slugs(datasets: Sequence[Dataset]) -> None:
    first: dict[str, str] = {}
    for dataset in datasets:
        other = first.setdefault(slug(dataset.name).lower(), dataset.name)
        if other != dataset.name:
            raise UserError(
                f"the tables of {other!r} and {dataset.name!r} would have the same file names.",
                "Report them into different folders.",
            )


def _chosen(
    judges: dict[int, StoredEvaluator], names: Sequence[str], datasets: Sequence[Dataset]
) -> dict[int, StoredEvaluator]:
    """The evaluators wanted, by id, told apart."""
    for name in names:
        if name not in {one.name for one in judges.values()}:
            raise UserError(
                f"{name!r} has no judgments of {', '.join(dataset.name for dataset in datasets)}.",
                "Score the dataset with it first: stepsight score DATASET --evaluator NAME.",
            )
    return {one.id: one for one in told_apart(one for one in judges.values() if not names or one.name in names)}


def told_apart(evaluators: Iterable[StoredEvaluator]) -> list[StoredEvaluator]:
    """The evaluators by name; where several have a name in common each is followed by its fingerprint."""
    chosen = sorted(evaluators, key=lambda one: (one.name, one.id))
    often = Counter(one.name for one in chosen)
    return [
        one if often[one.name] == 1 else replace(one, name=f"{one.name} ({one.fingerprint[:8]})") for one in chosen
    ]


def write_report(report: Report, folder: Path) -> Path:
    """Write `report.html` and `tables/`; returns the path of the page, which is written last and whole.

    Raises `UserError` where the folder cannot be written.
    """
    try:
        (folder / "tables").mkdir(parents=True, exist_ok=True)
        for table in report.tables:
            for suffix, text in _WRITERS.items():
                (folder / "tables" / f"{table.name}{suffix}").write_text(text(table), encoding="utf-8", newline="")
        partial = folder / f"{PAGE}.partial"
        partial.write_text(report.page, encoding="utf-8")
        partial.replace(folder / PAGE)
    except OSError as error:
        raise UserError(f"{folder}: cannot be written ({error.strerror}).", "Choose another --output.") from None
    return folder / PAGE
