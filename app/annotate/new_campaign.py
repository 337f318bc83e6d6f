"""`/annotate/new`: creating a campaign from the traces that a Browse URL selects."""

from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlencode

from markupsafe import Markup
from pydantic import BaseModel, ConfigDict, model_validator

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
from stepsight.storage.labelling.plan import (
    MOST_OVERLAP,
    MOST_QUALIFICATION,
    AfterSubmission,
    CampaignPlan,
    CampaignView,
    Ordering,
    Shows,
)
from stepsight.storage.traces.queries import find_dataset, list_datasets

_TERMS = (
    ("view", "View", (("whole", "the whole trace"), ("stepwise", "step by step, the next one after each label"))),
    ("after_error", "Steps after the first error", (("yes", "labelled too"), ("no", "not labelled"))),
    (
        "shows",
        "Shown to annotators before they submit",
        (("nothing", "only the trace (blind)"), ("scores", "the scores of an evaluator, too")),
    ),
    (
        "equations",
        "Equations that fail",
        (("no", "not marked"), ("yes", "marked in the steps (not blind)")),
    ),
    (
        "suggests",
        "Labels at the beginning",
        (("no", "none"), ("yes", "those that the evaluator suggests")),
    ),
    ("answer", "Reference answer", (("yes", "below the problem, where there is one"), ("no", "not shown"))),
    (
        "after_submission",
        "After submission",
        (
            ("nothing", "nothing: the next trace"),
            ("gold", "gold"),
            ("everything", "gold, scores and others’ labels"),
        ),
    ),
    (
        "ordering",
        "Order",
        (
            ("random", "random"),
            ("file", "file order"),
            ("disagreement", "most disputed by the evaluators first"),
            ("change", "most changed by later steps first"),
        ),
    ),
)

_GUIDELINE = """Judge every step by itself, given the problem and the steps before it.

neg: the step is wrong: a wrong fact, a wrong calculation, or a conclusion that does not follow.
neu: the step is right, but the solution would lose nothing without it.
pos: the step is right and brings the solution forward.
unsure: you cannot tell. Say why in a comment.

A step that is right by itself but builds on an earlier mistake is not wrong for that."""


class NewCampaign(BaseModel):
    """The fields of the form. Numbers arrive as text, and an empty field takes its default value."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    traces: str = ""
    dataset: str = ""
    name: str = ""
    guideline: str = ""
    overlap: int = 1
    after_error: Literal["yes", "no"] = "yes"
    view: CampaignView = CampaignView.WHOLE
    shows: Shows = Shows.NOTHING
    evaluator: int | None = None
    ordering: Ordering = Ordering.RANDOM
    random_share: float = 20.0
    gold_rate: float = 0.0
    gold_dataset: str | None = None
    answer: Literal["yes", "no"] = "yes"
    after_submission: AfterSubmission = AfterSubmission.NOTHING
    error_kinds: str = ""
    sample: int | None = None
    seed: int = 0
    suggests: Literal["yes", "no"] = "no"
    equations: Literal["yes", "no"] = "no"
    qualification_items: int = 0

    @model_validator(mode="before")
    @classmethod
    def _leave_out_empty(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        return {name: value for name, value in values.items() if value not in ("", None)}


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
        most_qualification=MOST_QUALIFICATION,
        terms=_TERMS,
        evaluators=[("", "none"), *((str(row.id), row.name) for row in evaluators_of(store, dataset.id))],
        gold_datasets=[("", "the rest of the dataset, or the gallery"), *names],
        error_kinds="\n".join(ERROR_KINDS),
        longest_kind=LONGEST_KIND,
    )


def read_plan(store: Store, evaluators: Evaluators, form: NewCampaign) -> CampaignPlan:
    """Convert a completed form to a plan. Raises `UserError` if its dataset or traces cannot be found."""
    address = Address.exact(read_query(form.traces))
    dataset = find_dataset(store, form.dataset or address.dataset)
    return CampaignPlan(
        name=form.name.strip(),
        dataset=dataset.name,
        guideline=form.guideline.strip(),
        where=Selection.exact(store, evaluators, dataset.id, address).where.pruned(),
        overlap=form.overlap,
        after_error=form.after_error == "yes",
        view=form.view,
        shows=form.shows,
        evaluator=form.evaluator or None,
        ordering=form.ordering,
        random_share=form.random_share / 100,
        gold_rate=form.gold_rate / 100,
        gold_dataset=form.gold_dataset,
        shows_answer=form.answer == "yes",
        after_submission=form.after_submission,
        error_kinds=tuple(filter(None, map(str.strip, form.error_kinds.splitlines()))) or ERROR_KINDS,
        sample=form.sample,
        seed=form.seed,
        suggests=form.suggests == "yes",
        shows_equations=form.equations == "yes",
        qualification_items=form.qualification_items,
    )
