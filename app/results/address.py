"""The address of the Results page, which determines everything that it shows."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from stepsight.app.results.measurements import MeasuredDataset
from stepsight.app.results.overview import FIGURES, Figure
from stepsight.app.web.page_address import PageQuery
from stepsight.core.judgment import Mode
from stepsight.core.metrics.reasoneval import Errors
from stepsight.core.validation import choice
from stepsight.training.evaluate.evaluation import MODES


class ResultsAddress(PageQuery):
    """The query string; "" stands for the default. With `dataset`, the page is on that one, or a `group` of it;
    `figure` and `against`, the reference of the differences, belong to the overview."""

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
        """The requested mode, else the first available one."""
        return next((mode for mode in modes if mode == self.mode), modes[0])

    def chosen_errors(self, measured: MeasuredDataset) -> Errors:
        """The requested kind of error, else the first in the gold."""
        return next((errors for errors in measured.kinds if errors == self.errors), measured.kinds[0])
