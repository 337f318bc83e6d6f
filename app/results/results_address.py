"""The address of the Results page: everything that it shows follows from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

from app.results.measured import Measured
from app.results.overview import FIGURES, Figure
from core.errors import UserError
from core.judgment import Mode
from core.metrics.reasoneval import Errors
from storage.queries import find_dataset
from storage.store import Store
from training.evaluation import MODES

_KNOWN: Mapping[str, Sequence[str]] = {"mode": MODES, "errors": list(Errors), "figure": FIGURES}


@dataclass(frozen=True)
class ResultsAddress:
    """What the query string asks for; "" stands for the default. With `dataset` it is of that one, or of a `group`
    of it; `figure` and `against`, the reference of the differences, are of the overview."""

    dataset: str = ""
    group: str = ""
    mode: str = ""
    errors: str = ""
    evaluator: str = ""
    figure: str = ""
    against: str = ""

    @classmethod
    def read(cls, query: Mapping[str, str]) -> "ResultsAddress":
        """Raises `UserError` on a value that makes no sense."""
        found = cls(**{field.name: query.get(field.name, "") for field in fields(cls)})
        for name, known in _KNOWN.items():
            value = getattr(found, name)
            if value and value not in known:
                raise UserError(f"{name} is {value!r:.40}, expected {' or '.join(known)}.", "Check the address.")
        return found

    def query(self, **changes: str) -> dict[str, str]:
        """The query string's parts, with some changed; defaults are left out."""
        return {key: value for key, value in vars(replace(self, **changes)).items() if value}

    @property
    def chosen_figure(self) -> Figure:
        return next((one for one in FIGURES if one == self.figure), FIGURES[0])

    def chosen_mode(self, known: Sequence[Mode]) -> Mode:
        """The mode asked for, or the first of those there are."""
        return next((mode for mode in known if mode == self.mode), known[0])

    def chosen_errors(self, measured: Measured) -> Errors:
        """The kind of error asked for, or the first of those that the gold tells of."""
        return next((errors for errors in measured.kinds if errors == self.errors), measured.kinds[0])


def check_results(store: Store, query: Mapping[str, str]) -> None:
    """Raises `UserError` where the page cannot show what the query asks for."""
    store.check()
    address = ResultsAddress.read(query)
    if address.dataset:
        find_dataset(store, address.dataset)
