"""The card of an evaluator on a dataset."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stepsight.core.errors import UserError
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import StoredEvaluator
from stepsight.storage.traces.queries import Dataset
from stepsight.training.evaluate.evaluation import Evaluation, evaluate, with_thresholds
from stepsight.training.report.card.context import context_sections
from stepsight.training.report.card.figures import figure_sections
from stepsight.training.report.dataset import lead
from stepsight.training.report.html import Section
from stepsight.training.report.tables import Table, slug


@dataclass(frozen=True)
class EvaluatorCard:
    """The card of an evaluator on a dataset: a lead sentence, a warning (or "") and sections.

    `evaluation` holds the rows of the evaluator and of the baselines.
    """

    evaluator: StoredEvaluator
    evaluation: Evaluation
    lead: str
    warning: str
    sections: Sequence[Section]

    @property
    def title(self) -> str:
        return f"{self.evaluator.name} on {self.evaluation.dataset.name}"

    @property
    def file_name(self) -> str:
        """The name of its files, without a suffix."""
        return f"{slug(self.title)}-card"

    @property
    def written(self) -> list[tuple[str, list[str | Table]]]:
        """The title of each section, and its contents without pictures."""
        return [
            (one.title, [part for part in one.contents if isinstance(part, str | Table)]) for one in self.sections
        ]


def measure_card(store: Store, dataset: Dataset, evaluator: StoredEvaluator, draws: int) -> EvaluatorCard:
    """Measure an evaluator on a dataset by this many bootstrap draws, and return its card. Thresholds that were
    chosen on the dataset are marked. Raises `UserError` in the same cases as `make_card`."""
    measured = with_thresholds(store, dataset, evaluator, force=True)
    return make_card(store, evaluate(store, dataset, [measured], draws=draws), evaluator)


def make_card(store: Store, evaluation: Evaluation, evaluator: StoredEvaluator) -> EvaluatorCard:
    """Return the card of an evaluator, named as in `evaluation`. Raises `UserError` if it has no row there."""
    rows = [row for row in evaluation.rows if row.evaluator == evaluator.name]
    if not rows:
        raise UserError(
            f"{evaluator.name} has not judged {evaluation.dataset.name}"
            f"{' online, and offline figures say nothing there' if evaluation.warning else ''}.",
            "Score the dataset with it first.",
        )
    own = replace(
        evaluation,
        rows=[row for row in evaluation.rows if row.is_baseline or row in rows],
        published=tuple(one for one in evaluation.published if one.names(evaluator.name)),
    )
    sections = [*figure_sections(own), *context_sections(store, own, evaluator)]
    return EvaluatorCard(evaluator, own, lead(own), own.warning, sections)
