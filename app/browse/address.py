"""The query string of the Browse page, which determines everything that the page shows."""

from typing import Annotated, ClassVar, Self

from markupsafe import Markup
from pydantic import Field

from stepsight.app.web.pages import Number, PageNumber, PageQuery
from stepsight.core.validation import checked
from stepsight.storage.browse.filters import OF_DATASET, NamedFilter, Sort

_BY_SCORES = ("validity", "redundancy", "change")


def _read_order(text: str) -> Sort:
    return Sort(text.removeprefix("-"), descending=text.startswith("-"))  # type: ignore[arg-type]  # it checks


class ListQuery(NamedFilter):
    """The filters and the sort order of a list of traces. `sort` is the name of a sort order, with a leading minus
    for descending order."""

    sort: Annotated[str, checked(_read_order)] = Field(
        default="position",
        description="position, steps, error, validity, redundancy, change; -change: largest first.",
    )

    @property
    def order(self) -> Sort:
        return _read_order(self.sort)

    def without_verdicts(self) -> Self:
        """Return a copy that neither filters nor sorts by an evaluator's verdicts."""
        plain = super().without_verdicts()
        return plain.without("sort") if self.order.by in _BY_SCORES else plain

    def without_redundancy(self) -> Self:
        """Return a copy that neither filters nor sorts by redundancy."""
        plain = self.without("verdict") if self.verdict == "redundant" else self
        return plain.without("sort") if self.order.by == "redundancy" else plain


class _Place(PageQuery):
    """The part of the query that says what the Browse page shows: a dataset's list or one trace.

    `trace` is a database id. `page` counts from 1, and `field` is the metadata field whose values are listed.
    """

    dataset: str = ""
    trace: Number | None = None
    page: PageNumber = 1
    field: str = ""


class Address(ListQuery, _Place):
    """The query string of the Browse page.

    `evaluator` is the evaluator that the list shows, and `against` is a second evaluator, whose verdict has to
    differ. `beside` lists the evaluators shown with a single trace. All evaluators are given by their keys (see
    `EvaluatorChoice`).
    """

    PATH: ClassVar[str] = "/browse"

    beside: tuple[str, ...] = ()

    OF_DATASET: ClassVar[str] = " ".join((*OF_DATASET, "field"))
    """The names of the parameters that are dropped when a different dataset is chosen."""

    @property
    def shown(self) -> tuple[str, ...]:
        """The keys of the evaluators shown with a single trace. If the first key is "", it stands for the default
        evaluator."""
        return self.beside or (self.evaluator, self.against or self.other)

    def narrowed(self, **changes: object) -> Markup:
        """Return the URL of the list with `changes` applied to its filters, starting from the first page."""
        return self.url(**({"page": 1, "trace": None} | changes))

    def loosened(self, name: str) -> "Address":
        """Return the address of the list without the filter `name`, starting from the first page."""
        return self.without(name, "page", "trace")

    def without_meta(self, *conditions: str) -> "Address":
        """Return the address of the list without the given filters on metadata, starting from the first page."""
        left = tuple(condition for condition in self.meta if condition not in conditions)
        return self.changed(meta=left, page=1, trace=None)

    @property
    def cleared(self) -> Markup:
        """The URL of the list without any filters."""
        return self.without(*self.active).narrowed()
