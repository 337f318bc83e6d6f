"""Filters on metadata: the section of Browse's sidebar that lists a dataset's fields and the values of one
field."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from stepsight.app.browse.address import Address
from stepsight.app.browse.facets import EMPTY, Choice
from stepsight.app.web.html import render
from stepsight.storage.browse.browse import FieldCounts
from stepsight.storage.browse.metadata import MetaCondition, MetaField, quoted

_SHOWN = 8
_LONGEST = 80


@dataclass(frozen=True)
class _FieldEntry:
    """A metadata field in the sidebar, with the URL that opens or closes it."""

    field: MetaField
    url: str
    is_open: bool
    is_set: bool


def metadata_html(address: Address, fields: Sequence[MetaField], opened: FieldCounts | None) -> Markup:
    """Render the metadata fields, each with the number of traces that have it.

    For the open field, the values are shown too, with inputs for searching them and for numeric bounds. Returns
    empty markup if the dataset has no fields.
    """
    if not fields:
        return Markup()
    conditions = list(map(MetaCondition.read, address.meta))
    entries = [_entry(address, field, conditions) for field in fields]
    # The open field, and those with a condition, stay in view.
    first = [one for place, one in enumerate(entries) if place < _SHOWN or one.is_open or one.is_set]
    values: dict[str, object] = {"opened": opened}
    if opened is not None:
        own = [one for one in conditions if one.field == opened.field]
        values |= {
            "choices": [_choice(address, opened.field, value, count, own) for value, count in opened.values],
            "query": address.without_meta(*(str(one) for one in own if one.operator != "=")).query(),
            "name": quoted(opened.field),
            **{name: _given(own, sign) for name, sign in (("part", "~"), ("least", ">="), ("most", "<="))},
        }
    return render(
        "browse/metadata.html",
        entries=first,
        more=[one for one in entries if one not in first],
        shown=_SHOWN,
        **values,
    )


def _entry(address: Address, field: MetaField, conditions: Sequence[MetaCondition]) -> _FieldEntry:
    is_open = address.field == field.name
    url = address.url(field="" if is_open else field.name, trace=None)
    return _FieldEntry(field, url, is_open, any(one.field == field.name for one in conditions))


def _choice(address: Address, field: str, value: str, count: int, own: Sequence[MetaCondition]) -> Choice:
    condition = str(MetaCondition(field, "=", value))
    chosen = condition in address.meta
    label = (value if len(value) <= _LONGEST else f"{value[: _LONGEST - 1]}…").strip() or EMPTY
    if chosen:
        return Choice(f"meta {condition}", label, count, True, address.without_meta(condition).url())
    if not count:
        return Choice("", label, count, False, "")
    others = address.without_meta(*(str(one) for one in own if one.operator == "="))
    return Choice(f"meta {condition}", label, count, False, others.url(meta=(*others.meta, condition)))


def _given(own: Sequence[MetaCondition], operator: str) -> str:
    return next((one.value for one in own if one.operator == operator), "")
