"""The address of the Results page: everything that it shows follows from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from stepsight.app.results.measurements import MeasuredDataset
from stepsight.app.results.overview import FIGURES, Figure
from stepsight.app.web.page_address import PageAddress, Query, choice_reader
from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.core.metrics.reasoneval import Errors
from stepsight.storage.database.store import Store
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.evaluate.evaluation import MODES

_CHOICES = {"mode": MODES, "errors": list(Errors), "figure": list(FIGURES)}
_READERS = {name: choice_reader(name, choices) for name, choices in _CHOICES.items()}


@dataclass(frozen=True)
class ResultsAddress(PageAddress):
    """What the query string asks for; "" stands for the default. With `dataset` it is of that one, or of a `group`
    of it; `figure` and `against`, the reference of the differences, are of the overview."""

    PATH: ClassVar[str] = "/results"

    dataset: str = ""
    group: str = ""
    mode: str = ""
    errors: str = ""
    evaluator: str = ""
    figure: str = ""
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


def read_address(query: Query) -> tuple[ResultsAddress, tuple[str, ...]]:
    """The address that a query spells, and a message for each part of it that makes no sense and is passed over."""
    return ResultsAddress.spelled(query, _READERS)


def checked_address(query: Query) -> ResultsAddress:
    """The same; raises `UserError` where a part makes no sense."""
    address, problems = read_address(query)
    if problems:
        raise UserError(problems[0])
    return address


def check_results(store: Store, query: Query) -> None:
    """Raises `UserError` where the page cannot show what the query asks for."""
    store.check()
    address = checked_address(query)
    if address.dataset:
        find_dataset(store, address.dataset)
