"""The address of the Browse page: everything that the page shows follows from it."""

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
    """Which traces of a dataset are listed, and in which order: its name, after a minus where it descends."""

    sort: Annotated[str, AfterValidator(_check_order)] = Field(
        default="position",
        description="position, steps, error, validity, redundancy, change; -change: largest first.",
    )

    @property
    def order(self) -> Sort:
        return _read_order(self.sort)

    def without_verdicts(self) -> Self:
        """The same without the conditions and the order that are about an evaluator's verdicts."""
        plain = super().without_verdicts()
        return plain.without("sort") if self.order.by in _BY_SCORES else plain

    def without_redundancy(self) -> Self:
        """The same without the condition and the order that are about redundancy."""
        plain = self.without("verdict") if self.verdict == "redundant" else self
        return plain.without("sort") if self.order.by == "redundancy" else plain


class _Place(PageQuery):
    """`trace` is a database id, `page` counts from 1; `field` is that of the metadata whose values are shown."""

    dataset: str = ""
    trace: Number | None = None
    page: PageNumber = 1
    field: str = ""


class Address(ListQuery, _Place):
    """What the query string asks for.

    `evaluator` is whom the list is about, `against` another one whose verdict differs, `beside` those shown on the
    page of a trace: all by the key that they are offered under.
    """

    PATH: ClassVar[str] = "/browse"

    beside: tuple[str, ...] = ()

    @property
    def shown(self) -> tuple[str, ...]:
        """The keys of the evaluators on the page of a trace; first "" stands for the default one."""
        return self.beside or (self.evaluator, self.against or self.other)

    def narrowed(self, **changes: object) -> Markup:
        """The address of the first page of a list with other conditions."""
        return self.url(**({"page": 1, "trace": None} | changes))

    def loosened(self, name: str) -> "Address":
        """The first page of the list without one condition."""
        return self.without(name, "page", "trace")

    def without_meta(self, *conditions: str) -> "Address":
        """The first page of the list without some conditions on metadata."""
        left = tuple(condition for condition in self.meta if condition not in conditions)
        return self.changed(meta=left, page=1, trace=None)

    @property
    def cleared(self) -> Markup:
        """The address without any condition."""
        return self.without(*self.active).narrowed()
