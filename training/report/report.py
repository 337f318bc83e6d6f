"""A report on evaluators and stored datasets, written as an HTML page and as files of its tables."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from stepsight.core.errors import UserError
from stepsight.core.files.label_patch import Patch
from stepsight.core.files.whole_files import write_text
from stepsight.core.metrics.bootstrap import DRAWS
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import StoredEvaluator, evaluators_of, with_distinct_names
from stepsight.storage.traces.queries import Dataset
from stepsight.training.evaluate.evaluation import Evaluation, GoldView, evaluate
from stepsight.training.evaluate.judging import with_thresholds
from stepsight.training.report.dataset import dataset_part, evaluators_part, patched_part, tables_of
from stepsight.training.report.differences import Patched
from stepsight.training.report.html import Part, page_html
from stepsight.training.report.tables import Table, slug, to_csv, to_latex, to_markdown

PAGE = "report.html"
_WRITERS = {".tex": to_latex, ".csv": to_csv, ".md": to_markdown}


@dataclass(frozen=True)
class Report:
    """A report: the page as HTML, and its tables."""

    page: str
    tables: tuple[Table, ...]

    @classmethod
    def of(cls, title: str, lead: str, parts: Sequence[Part]) -> "Report":
        return cls(page_html(title, lead, parts), tuple(tables_of(parts)))


def make_report(
    store: Store,
    datasets: Sequence[Dataset],
    names: Sequence[str] = (),
    draws: int = DRAWS,
    force: bool = False,
    group: str = "",
    day: date | None = None,
    patches: Sequence[Patch] = (),
    more: Sequence[Part] = (),
) -> Report:
    """Measure evaluators on each dataset and return the report.

    `names` are the evaluators to measure (default: all that have judged a dataset). With `group`, only the traces
    of that group are measured. If `patches` contains a patch for a dataset, the dataset is measured a second time
    on the patched gold labels. The parts `more` follow. Nothing is scored, and two reports on the same store differ
    only in the `day`.

    Raises `UserError` if a named evaluator has not judged any of the datasets, if the tables of two datasets would
    have the same name, or if a patch does not fit.
    """
    changed = _patches(datasets, patches)
    _check_slugs([*(dataset.name for dataset in datasets), *(f"{name}, patched" for name in changed)])
    judging = {dataset.id: evaluators_of(store, dataset.id) for dataset in datasets}
    every = {evaluator.id: evaluator for stored in judging.values() for evaluator in stored}
    evaluators = _choose_evaluators(every, names, datasets)
    evaluations: list[Evaluation | Patched] = []
    for dataset in datasets:
        chosen = [evaluators[evaluator.id] for evaluator in judging[dataset.id] if evaluator.id in evaluators]
        measured = [with_thresholds(store, dataset, evaluator, force) for evaluator in chosen]
        view = GoldView(dataset, group)
        evaluations.append(plain := evaluate(store, view, measured, draws=draws, force=force))
        if patch := changed.get(dataset.name):
            view = replace(view, patch=patch)
            evaluations.append(Patched(plain, evaluate(store, view, measured, draws=draws, force=force)))
    return write_up(evaluations, list(evaluators.values()), day, more)


def write_up(
    evaluations: Sequence[Evaluation | Patched],
    evaluators: Sequence[StoredEvaluator],
    day: date | None = None,
    more: Sequence[Part] = (),
) -> Report:
    """Return a report on existing evaluations, followed by the parts `more`."""
    parts, names = [], []
    for evaluation in evaluations:
        if isinstance(evaluation, Patched):
            name, patch = evaluation.before.dataset.name, evaluation.patch
            parts.append(patched_part(evaluation))
            names.append(f"{name} with {patch.name} (digest {patch.digest[:12]}…)")
        else:
            parts.append(dataset_part(evaluation))
            names.append(evaluation.dataset.name)
    plain = next(evaluation for evaluation in evaluations if isinstance(evaluation, Evaluation))
    parts += [*more, evaluators_part(evaluators, len(plain.weights))]
    lead = f"{', '.join(names)}; {day or date.today():%d %B %Y}"
    return Report.of("StepSight report", lead, parts)


def write_up_patched(before: Evaluation, after: Evaluation, evaluators: Sequence[StoredEvaluator]) -> Report:
    """Return a report on a dataset with the benchmark's labels, and on the same dataset with the labels of the
    patch of `after`."""
    return write_up([before, Patched(before, after)], evaluators)


def _patches(datasets: Sequence[Dataset], patches: Sequence[Patch]) -> dict[str, Patch]:
    """Return the patches, keyed by the name of their dataset. Raises `UserError` if the dataset of a patch is not
    in the report, or if a dataset has two patches."""
    by_dataset: dict[str, Patch] = {}
    for patch in patches:
        if patch.dataset not in {dataset.name for dataset in datasets}:
            raise UserError(f"{patch.name} is a patch of {patch.dataset}, which is not reported.", "Name it too.")
        if patch.dataset in by_dataset:
            raise UserError(f"{patch.dataset} has two patches.", "Report one at a time.")
        by_dataset[patch.dataset] = patch
    return by_dataset


def _check_slugs(names: Sequence[str]) -> None:
    first: dict[str, str] = {}
    for name in names:
        other = first.setdefault(slug(name).lower(), name)
        if other != name:
            raise UserError(
                f"the tables of {other!r} and {name!r} would have the same file names.",
                "Report them into different folders.",
            )


def _choose_evaluators(
    evaluators: dict[int, StoredEvaluator], names: Sequence[str], datasets: Sequence[Dataset]
) -> dict[int, StoredEvaluator]:
    """Return the evaluators called `names` (default: all), keyed by id and with distinct names. Raises `UserError`
    if a name is not among `evaluators`."""
    for name in names:
        if name not in {evaluator.name for evaluator in evaluators.values()}:
            raise UserError(
                f"{name!r} has no judgments of {', '.join(dataset.name for dataset in datasets)}.",
                "Score the dataset with it first: stepsight score --dataset DATASET --evaluator NAME.",
            )
    return {
        evaluator.id: evaluator
        for evaluator in with_distinct_names(
            evaluator for evaluator in evaluators.values() if not names or evaluator.name in names
        )
    }


def write_report(report: Report, folder: Path) -> Path:
    """Write a report to a folder and return the path of its HTML page.

    The folder gets `report.html` and `tables/`. Raises `UserError` if it cannot be written.
    """
    try:
        (folder / "tables").mkdir(parents=True, exist_ok=True)
        for table in report.tables:
            for suffix, text in _WRITERS.items():
                (folder / "tables" / f"{table.name}{suffix}").write_text(text(table), encoding="utf-8", newline="")
        write_text(folder / PAGE, report.page)
    except OSError as error:
        raise UserError(f"{folder}: cannot be written ({error.strerror}).", "Choose another --output.") from None
    return folder / PAGE
