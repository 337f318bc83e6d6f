"""The address of the Browse page, which determines everything that the page shows."""

from typing import Annotated, ClassVar, Self

from markupsafe import Markup
from pydantic import AfterValidator, Field

from stepsight.app.web.page_query import Number, PageNumber, PageQuery
from stepsight.core.errors import UserError
from stepsight.core.validation import invalid
from stepsight.storage.browse.filters import NamedFilter, Sort

_BY_SCORES = ("validity", "redundancy", "change")


def _read_order(text: str) -> Sort:
    return Sort(text.removeprefix("-"), descending=text.startswith("-"))  # type: ignore[arg-type]  # it checks


def _check_order(text: str) -> str:
    try:
        _read_order(text)
    except UserError as error:
        raise invalid(error.message, error.hint) from None
    return text


class ListQuery(NamedFilter):
    """The filter and the sort order of a list of traces.

    `sort` is the name of an order, with a leading minus for descending.
    """

    sort: Annotated[str, AfterValidator(_check_order)] = Field(
        default="position",
        description="position, steps, error, validity, redundancy, change; -change: largest first.",
    )

    @property
    def order(self) -> Sort:
        return _read_order(self.sort)

    def without_verdicts(self) -> Self:
        """Return a copy without any condition on an evaluator's verdicts and without sorting by them."""
        plain = super().without_verdicts()
        return plain.without("sort") if self.order.by in _BY_SCORES else plain

    def without_redundancy(self) -> Self:
        """Return a copy without any condition on redundancy and without sorting by it."""
        plain = self.without("verdict") if self.verdict == "redundant" else self
        return plain.without("sort") if self.order.by == "redundancy" else plain


class _Place(PageQuery):
    """The position within Browse.

    `trace` is a database id, `page` counts from 1, and `field` is the metadata field whose values are listed.
    """

    dataset: str = ""
    trace: Number | None = None
    page: PageNumber = 1
    field: str = ""


class Address(ListQuery, _Place):
    """The query string of the Browse page.

    `evaluator` is the evaluator of the list, and `against` is another one whose verdict has to differ. `beside`
    lists the evaluators on the page of a trace. All are given by their keys (see `EvaluatorChoice`).
    """

    PATH: ClassVar[str] = "/browse"

    beside: tuple[str, ...] = ()

    @property
    def shown(self) -> tuple[str, ...]:
        """The keys of the evaluators on the page of a trace.

        If the first key is "", it stands for the default evaluator.
        """
        return self.beside or (self.evaluator, self.against or self.other)

    def narrowed(self, **changes: object) -> Markup:
        """Return the URL of the first page of the list with changed conditions."""
        return self.url(**({"page": 1, "trace": None} | changes))

    def loosened(self, name: str) -> "Address":
        """Return the address of the first page of the list without one of the conditions."""
        return self.without(name, "page", "trace")

    def without_meta(self, *conditions: str) -> "Address":
        """Return the address of the first page of the list without some of the conditions on metadata."""
        left = tuple(condition for condition in self.meta if condition not in conditions)
        return self.changed(meta=left, page=1, trace=None)

    @property
    def cleared(self) -> Markup:
        """The URL of the list without any conditions."""
        return self.without(*self.active).narrowed()
