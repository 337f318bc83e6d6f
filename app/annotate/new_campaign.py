"""`/annotate/new`: creating a campaign from the traces that a Browse URL selects."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlencode

from markupsafe import Markup
from pydantic import ConfigDict, model_validator
from pydantic.fields import FieldInfo

from stepsight.app.browse.address import Address
from stepsight.app.browse.selection import Selection
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.html import render
from stepsight.app.web.page_query import Query, read_query
from stepsight.core.errors import UserError
from stepsight.storage.browse.browse import list_matching
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import evaluators_of
from stepsight.storage.labelling.error_kinds import ERROR_KINDS, LONGEST_KIND
from stepsight.storage.labelling.plan import MOST_OVERLAP, CampaignPlan, CampaignSettings
from stepsight.storage.traces.queries import find_dataset, list_datasets

_GUIDELINE = """Judge every step by itself, given the problem and the steps before it.

neg: the step is wrong: a wrong fact, a wrong calculation, or a conclusion that does not follow.
neu: the step is right, but the solution would lose nothing without it.
pos: the step is right and brings the solution forward.
unsure: you cannot tell. Say why in a comment.

A step that is right by itself but builds on an earlier mistake is not wrong for that."""


_PERCENT = ("random_share", "gold_rate")


class NewCampaign(CampaignPlan):
    """The fields of the form. `traces` is the query of a Browse URL. Numbers arrive as text, and an empty field
    takes its default value. Shares are in percent, and each line of `error_kinds` is one."""

    model_config = ConfigDict(strict=False, extra="ignore", str_strip_whitespace=True)

    traces: str = ""
    dataset: str = ""

    @model_validator(mode="before")
    @classmethod
    def _read_texts(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        read: dict[str, Any] = {"name": "", "guideline": ""}
        read |= {name: value for name, value in values.items() if value not in ("", None)}
        for name in _PERCENT:
            with suppress(KeyError, TypeError, ValueError):
                read[name] = float(read[name]) / 100
        kinds = read.pop("error_kinds", "")
        lines = list(filter(None, map(str.strip, kinds.splitlines()))) if isinstance(kinds, str) else kinds
        return read | ({"error_kinds": lines} if lines else {})


@dataclass(frozen=True)
class FormField:
    """A setting on the form. `choices` are (value, words); without any, the setting is a number, and `value` is
    None if it may be left out."""

    name: str
    title: str
    value: Any
    choices: tuple[tuple[str, str], ...]
    least: float | None
    most: float | None


def form_fields() -> list[FormField]:
    """Return the settings with a title, in the order of `CampaignSettings`."""
    return [_form_field(name, info) for name, info in CampaignSettings.model_fields.items() if info.title]


def _form_field(name: str, info: FieldInfo) -> FormField:
    words = cast(dict[str, Any], info.json_schema_extra)["words"] or {}
    value = info.default
    if isinstance(value, bool):
        value = "yes" if value else "no"
    least, most = (
        next((getattr(bound, side) for bound in info.metadata if hasattr(bound, side)), None)
        for side in ("ge", "le")
    )
    if name in _PERCENT:
        value, least, most = (f"{100 * cast(float, number):g}" for number in (value, least, most))
    return FormField(name, str(info.title), value, tuple(words.items()), least, most)


def form_html(store: Store, evaluators: Evaluators, query: Query) -> Markup:
    """Render the form for a new campaign of the traces that the query of a Browse URL selects. Raises `UserError`
    if the store has no datasets."""
    datasets = list_datasets(store)
    if not datasets:
        raise UserError("The store is empty.", "Add data on the Data page.")
    address, _ = Address.read(query)
    dataset = find_dataset(store, address.dataset) if address.dataset else datasets[0]
    selection = Selection.exact(store, evaluators, dataset.id, address)
    names = [(one.name, one.name) for one in datasets]
    return render(
        "annotate/new_campaign.html",
        dataset=dataset,
        datasets=[(one.name, f"{one.name} ({one.traces:,})") for one in datasets],
        conditions=" · ".join(one.text for one in selection.conditions.links),
        traces=urlencode(address.query(dataset=dataset.name, trace=None, page=1), doseq=True),
        count=len(list_matching(store, dataset.id, selection.where.pruned())) if address.active else 0,
        browse=address.narrowed(dataset=dataset.name),
        guideline=_GUIDELINE,
        most_overlap=MOST_OVERLAP,
        fields=form_fields(),
        evaluators=[("", "none"), *((str(row.id), row.name) for row in evaluators_of(store, dataset.id))],
        gold_datasets=[("", "the rest of the dataset, or the gallery"), *names],
        error_kinds="\n".join(ERROR_KINDS),
        longest_kind=LONGEST_KIND,
    )


def read_plan(store: Store, evaluators: Evaluators, form: NewCampaign) -> CampaignPlan:
    """Convert a completed form to a plan. Raises `UserError` if its dataset or traces cannot be found."""
    address = Address.exact(read_query(form.traces))
    dataset = find_dataset(store, form.dataset or address.dataset)
    where = Selection.exact(store, evaluators, dataset.id, address).where.pruned()
    values = {name: getattr(form, name) for name in CampaignPlan.model_fields}
    return CampaignPlan(**values | {"dataset": dataset.name, "conditions": where})
