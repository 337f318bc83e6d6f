"""The address of the Results page: everything that it shows follows from it."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from stepsight.app.results.measurements import MeasuredDataset
from stepsight.app.results.overview import FIGURES, Figure
from stepsight.app.web.page_address import PageQuery, Query
from stepsight.core.judgment import Mode
from stepsight.core.metrics.reasoneval import Errors
from stepsight.core.validation import choice
from stepsight.storage.database.store import Store
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.evaluate.evaluation import MODES


class ResultsAddress(PageQuery):
    """What the query string asks for; "" stands for the default. With `dataset` it is of that one, or of a `group`
    of it; `figure` and `against`, the reference of the differences, are of the overview."""

    PATH: ClassVar[str] = "/results"

    dataset: str = ""
    group: str = ""
    mode: Annotated[str, choice(MODES)] = ""
    errors: Annotated[str, choice(tuple(Errors))] = ""
    evaluator: str = ""
    figure: Annotated[str, choice(FIGURES)] = ""
    against: str = ""

    @property
    def chosen_figure(self) -> Figure:
        return next((one for one in FIGURES if one == self.figure), FIGURES[0])

    def chosen_mode(self, modes: Sequence[Mode]) -> Mode:
        """The mode asked for, or the first of those there are."""
        return next((mode for mode in modes if mode == self.mode), modes[0])

    def chosen_errors(self, measured: MeasuredDataset) -> Errors:
        """The kind of error asked for, or the first of those that the gold has."""
        return next((errors for errors in measured.kinds if errors == self.errors), measured.kinds[0])


def check_results(store: Store, query: Query) -> None:
    """Raises `UserError` where the page cannot show what the query asks for."""
    store.check()
    address = ResultsAddress.exact(query)
    if address.dataset:
        find_dataset(store, address.dataset)
