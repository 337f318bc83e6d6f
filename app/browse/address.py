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
    """The filter and the order of a list of traces. `sort` is the name of an order, with a minus for descending."""

    sort: Annotated[str, AfterValidator(_check_order)] = Field(
        default="position",
        description="position, steps, error, validity, redundancy, change; -change: largest first.",
    )

    @property
    def order(self) -> Sort:
        return _read_order(self.sort)

    def without_verdicts(self) -> Self:
        """A copy without conditions on an evaluator's verdicts, and without an order by them."""
        plain = super().without_verdicts()
        return plain.without("sort") if self.order.by in _BY_SCORES else plain

    def without_redundancy(self) -> Self:
        """A copy without a condition on redundancy, and without an order by it."""
        plain = self.without("verdict") if self.verdict == "redundant" else self
        return plain.without("sort") if self.order.by == "redundancy" else plain


class _Place(PageQuery):
    """`trace` is a database id, `page` counts from 1, and `field` is the metadata field whose values are listed."""

    dataset: str = ""
    trace: Number | None = None
    page: PageNumber = 1
    field: str = ""


class Address(ListQuery, _Place):
    """The query string.

    `evaluator` is the evaluator of the list, `against` another one whose verdict differs, and `beside` are those on
    the page of a trace, each by its key (see `EvaluatorChoice`).
    """

    PATH: ClassVar[str] = "/browse"

    beside: tuple[str, ...] = ()

    @property
    def shown(self) -> tuple[str, ...]:
        """The keys of the evaluators on the page of a trace; a first key "" stands for the default one."""
        return self.beside or (self.evaluator, self.against or self.other)

    def narrowed(self, **changes: object) -> Markup:
        """The URL of the list's first page with other conditions."""
        return self.url(**({"page": 1, "trace": None} | changes))

    def loosened(self, name: str) -> "Address":
        """The address of the list's first page without one condition."""
        return self.without(name, "page", "trace")

    def without_meta(self, *conditions: str) -> "Address":
        """The address of the list's first page without some conditions on metadata."""
        left = tuple(condition for condition in self.meta if condition not in conditions)
        return self.changed(meta=left, page=1, trace=None)

    @property
    def cleared(self) -> Markup:
        """The URL of the list without any condition."""
        return self.without(*self.active).narrowed()
