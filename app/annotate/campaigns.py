"""Pages of campaigns: the list, the form for a new campaign of the traces that a Browse URL selects
(`/annotate/new`), a campaign's page for its manager, the download of its labels, and the texts and progress bars
that describe campaigns."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, cast
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from markupsafe import Markup
from pydantic import ConfigDict, model_validator
from pydantic.fields import FieldInfo
from sqlalchemy import select
from starlette.responses import Response

from stepsight.app.browse.address import Address
from stepsight.app.browse.facets import meta_words
from stepsight.app.browse.selection import Selection
from stepsight.app.markup.marking import excerpt
from stepsight.app.markup.text import text_html
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.access import Manager, Right, may
from stepsight.app.web.failures import whole_file
from stepsight.app.web.html import render
from stepsight.app.web.pages import Number, PageQuery, Query, read_query
from stepsight.core.errors import UserError, counted
from stepsight.core.validation import choice
from stepsight.storage.browse.browse import list_matching
from stepsight.storage.database.labelling_schema import ItemRow, SlotRow
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import evaluators_of
from stepsight.storage.labelling.campaigns import (
    Campaign,
    get_campaign,
    guideline_text,
    list_annotators,
    list_campaigns,
    may_label_in,
)
from stepsight.storage.labelling.files.label_formats import EVENTS, FORMAT_NAMES, LABEL_FORMATS, export_labels
from stepsight.storage.labelling.plan import (
    ERROR_KINDS,
    LONGEST_KIND,
    MOST_OVERLAP,
    AfterSubmission,
    CampaignPlan,
    CampaignSettings,
    Ordering,
    Shows,
)
from stepsight.storage.labelling.progress import CampaignProgress, annotator_progress, campaign_progress
from stepsight.storage.labelling.queue import list_turns, next_availability
from stepsight.storage.people.blindness import check_traces
from stepsight.storage.people.users import LOCAL, Role, User, has_users, list_users
from stepsight.storage.traces.queries import find_dataset, list_datasets
from stepsight.training.report.tables import slug

_ORDERS = {
    Ordering.FILE: "in the order of the file",
    Ordering.RANDOM: "in random order",
}
_AFTER = {
    AfterSubmission.NOTHING: "nothing shown after submission",
    AfterSubmission.GOLD: "gold shown after submission",
    AfterSubmission.EVERYTHING: "everything shown after submission",
}
TURNS = 50
"""The number of traces on a page of a user's own traces."""

# The number of characters shown of each problem in the list.
_EXCERPT = 90
_STATES = {"leased": "not submitted yet", "submitted": "submitted", "skipped": "skipped"}
_LINKS = (
    ("Agreement", "/annotate/agreement", {Right.READ, Right.ADJUDICATE}),
    ("Adjudicate", "/annotate/adjudicate", {Right.ADJUDICATE}),
    ("Manage", "/annotate/campaign", {Right.MANAGE}),
)


@dataclass(frozen=True)
class CampaignBar:
    """A named progress bar that shows the number of submitted annotations, out of a total."""

    name: str
    done: int
    whole: int
    note: str = ""

    @property
    def text(self) -> str:
        return f"{self.done:,} of {self.whole:,}"

    @property
    def percent(self) -> float:
        return 100 * self.done / self.whole if self.whole else 0.0


def links_of(store: Store, user: User) -> dict[str, str]:
    """Return the paths of a campaign's pages that a user may open, by name."""
    return {name: path for name, path, needed in _LINKS if any(may(user, right, store) for right in needed)}


def list_html(store: Store, user: User) -> Markup:
    """Render `/annotate` for a user: the campaigns, the progress of each, and links to start labelling."""
    rights = {right for right in Right if may(user, right, store)}
    labels = Right.LABEL in rights
    return render(
        "annotate/campaigns.html",
        person=user.id,
        manages=Right.MANAGE in rights,
        reads=Right.READ in rights,
        labels=labels,
        links=links_of(store, user),
        cards=[
            _card(store, campaign, user, labels)
            for campaign in list_campaigns(store)
            if sees_everybody(user) or may_label_in(store, campaign, user)
        ],
    )


def _card(store: Store, campaign: Campaign, user: User, labels: bool) -> dict[str, object]:
    progress = campaign_progress(store, campaign.id, user.id)
    begun = labels and bool(list_turns(store, campaign.id, user, limit=1))
    is_annotator = labels and may_label_in(store, campaign, user)
    return {
        "campaign": campaign,
        "terms": terms(campaign),
        "start": start_word(store, campaign, user) if labels else "",
        "begun": begun,
        "is_annotator": is_annotator,
        "bars": progress_bars(campaign, progress, own=begun or is_annotator, everybody=sees_everybody(user)),
        "guideline": guideline_text(store, campaign.id),
    }


def turns_html(store: Store, campaign_id: int, user: User, page: int) -> Markup:
    """Render a page of the list of a user's own traces in a campaign. `page` counts from 1. Raises `NotFoundError`
    if the campaign does not exist."""
    campaign = get_campaign(store, campaign_id)
    turns = list_turns(store, campaign.id, user, (page - 1) * TURNS, TURNS + 1)
    return render(
        "annotate/turns.html",
        campaign=campaign,
        start=start_word(store, campaign, user),
        turns=[(turn, text_html(excerpt(turn.problem, _EXCERPT))) for turn in turns[:TURNS]],
        states=_STATES,
        page=page,
        more=len(turns) > TURNS,
    )


def campaign_html(store: Store, campaign_id: int, user: User) -> Markup:
    """Render `/annotate/campaign`, the page of a campaign for its manager. The page shows everybody's progress and
    the guideline, and has a form to close the campaign. Raises `NotFoundError` if the campaign does not exist."""
    campaign = get_campaign(store, campaign_id)
    versions = range(1, campaign.guideline + 1)
    assigned = {annotator.id for annotator in list_annotators(store, campaign.id)}
    # Empty on a server on which nobody can log in.
    able = [one for one in list_users(store) if one.active and one.role is not Role.VIEWER and one.name != LOCAL]
    return render(
        "annotate/campaign.html",
        campaign=campaign,
        links=links_of(store, user),
        terms=terms(campaign),
        queue=queue_terms(campaign),
        start_word=start_word(store, campaign, user),
        bars=progress_bars(campaign, campaign_progress(store, campaign.id), own=False),
        people=annotator_progress(store, campaign.id),
        annotators=[(person, person.id in assigned) for person in able],
        formats=LABEL_FORMATS,
        guidelines={version: guideline_text(store, campaign.id, version) for version in versions},
    )


def choose_html(store: Store, title: str, path: str) -> Markup:
    """Render a list of campaigns that link to `path`, for a page whose URL names no campaign."""
    campaigns = [(campaign, terms(campaign)) for campaign in list_campaigns(store)]
    return render("annotate/choose_campaign.html", title=title, path=path, campaigns=campaigns)


def terms(campaign: Campaign) -> str:
    """Describe a campaign's task and annotators in one line."""
    parts = [
        f"{counted(campaign.items, 'trace')} of {campaign.dataset}",
        f"labelled by {counted(campaign.overlap, 'person', 'people')} each",
        *(("by chosen annotators",) if campaign.restricted else ()),
        "step by step" if campaign.stepwise else "the whole trace in view",
    ]
    if not campaign.after_error:
        parts.append("up to the first error")
    if campaign.blind:
        parts.append("blind")
    if campaign.shows is Shows.SCORES:
        parts.append("scores in view")
    if campaign.shows_equations:
        parts.append("equations that fail marked")
    if campaign.suggests:
        parts.append("labels suggested by the evaluator")
    parts.append(_AFTER[campaign.after_submission])
    return " · ".join(parts)


def queue_terms(campaign: Campaign) -> str:
    """Describe for the campaign's manager how its queue was built."""
    parts = [_ORDERS[campaign.ordering]]
    if campaign.sample is not None:
        parts.insert(0, f"{campaign.sample:,} of {campaign.population or 0:,} by chance, seed {campaign.seed}")
    if campaign.qualification_items:
        parts.append(f"{counted(campaign.qualification_items, 'gold item')} first")
    if campaign.gold_rate:
        parts.append(f"{campaign.gold_rate:.0%} hidden gold items")
    conditions = campaign.conditions.stored()
    parts += map(meta_words, conditions.pop("meta", ()))
    parts += [f"{name.replace('_', ' ')}: {value}" for name, value in conditions.items()]
    return " · ".join(parts)


def start_word(store: Store, campaign: Campaign, user: User) -> str:
    """Return the text of a user's link to the labelling page: Start, Continue, or "" if nothing is left to
    label."""
    availability = next_availability(store, campaign, user)
    if availability == "nothing":
        return ""
    begun = availability == "held" or campaign_progress(store, campaign.id, user.id).mine
    return "Continue" if begun else "Start"


def sees_everybody(user: User) -> bool:
    """True if the user may see everybody's progress. Annotators may not. Their own total includes hidden gold items
    and the campaign's total does not, so the difference would reveal that hidden gold items exist."""
    return user.role is not Role.ANNOTATOR


def progress_bars(
    campaign: Campaign, progress: CampaignProgress, *, own: bool = True, everybody: bool = True
) -> list[CampaignBar]:
    """Build a progress bar for the user's own annotations if `own` is True, and one for the whole campaign if
    `everybody` is True."""
    bars = []
    if own:
        # Hidden gold items are added to the queue, and annotators must not notice them.
        bars.append(CampaignBar("You", min(progress.mine, campaign.items), campaign.items))
    if everybody:
        complete = f"{progress.items_done:,} of {progress.items:,} traces complete"
        bars.append(CampaignBar("All", progress.submitted, progress.slots, complete))
    return bars


# This is true of both views.
_GUIDELINE = """Judge every step, given the problem and all steps in view: a later step may expose an earlier one.

neg: the step is wrong: a wrong fact, a wrong calculation, or a conclusion that does not follow.
neu: the step is right, but the solution would lose nothing without it.
pos: the step is right and brings the solution forward.
unsure: you cannot tell. Say why in a comment.

A step that is right by itself but builds on an earlier mistake is not wrong for that."""


class NewCampaign(CampaignPlan):
    """The fields of the form. `traces` is the query of a Browse URL. Numbers arrive as text, and an empty field
    takes its default value. The rate of gold items is in percent, and each line of `error_kinds` is one."""

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
        with suppress(KeyError, TypeError, ValueError, OverflowError):
            read["gold_rate"] = float(read["gold_rate"]) / 100
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
    if name == "gold_rate":
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
    selection = Selection.exact(store, evaluators, dataset, address)
    names = [(row.name, row.name) for row in datasets]
    return render(
        "annotate/new_campaign.html",
        dataset=dataset,
        datasets=[(row.name, f"{row.name} ({row.traces:,})") for row in datasets],
        conditions=" · ".join(link.text for link in selection.conditions.links),
        traces=urlencode(address.query(dataset=dataset.name, trace=None, page=1), doseq=True),
        count=len(list_matching(store, dataset.id, selection.where.pruned())) if address.active else 0,
        browse=address.narrowed(dataset=dataset.name),
        guideline=_GUIDELINE,
        # If nobody logs in, everybody counts as the same person, who cannot label a trace twice.
        overlap=2 if has_users(store) else 1,
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
    where = Selection.exact(store, evaluators, dataset, address).where.pruned()
    values = {name: getattr(form, name) for name in CampaignPlan.model_fields}
    return CampaignPlan(**values | {"dataset": dataset.name, "conditions": where})


_ENDINGS = {"csv": "csv", "label-studio": "json", "argilla": "json"}


class LabelsAddress(PageQuery):
    """The query of the download: the id of a campaign and the format of the file. With `each`, the file has a row
    for each person."""

    PATH: ClassVar[str] = "/annotate/export"

    campaign: Number = 0
    format: Annotated[str, choice(FORMAT_NAMES)] = "jsonl"
    each: Annotated[str, choice(("1",))] = ""


def router(store: Store) -> APIRouter:
    """Build the route of the download. The application turns any `UserError` that it raises into a response."""
    routes = APIRouter(include_in_schema=False)

    @routes.get(LabelsAddress.PATH)
    def export(request: Request, user: Manager) -> Response:
        address = LabelsAddress.exact(read_query(request.url.query))
        campaign = get_campaign(store, address.campaign)
        others = (SlotRow.campaign_id == campaign.id, SlotRow.state == "submitted", SlotRow.user_id != user.id)
        with store.read() as session:
            labelled = select(ItemRow.trace_id).join(SlotRow, SlotRow.item_id == ItemRow.id).where(*others)
            trace_ids = session.scalars(labelled).all()
        check_traces(store, user, *trace_ids)
        each = "-by-person" if address.each and address.format != EVENTS else ""
        ending = _ENDINGS.get(address.format, "jsonl")
        # A format that cannot express the labels fails only at the end of the export.
        return whole_file(
            lambda path: export_labels(
                store, campaign.name, path, address.format, per_annotator=bool(address.each)
            ),
            f"{slug(campaign.name)}-labels-{address.format}{each}.{ending}",
        )

    return routes
