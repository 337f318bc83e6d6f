"""The list of campaigns, the page of a campaign for its manager, and the texts and progress bars that describe
campaigns."""

from dataclasses import dataclass

from markupsafe import Markup

from stepsight.app.access.rights import Right, may
from stepsight.app.browse.facets import meta_words
from stepsight.app.browse.hits import excerpt
from stepsight.app.markup.text import counted, text_html
from stepsight.app.web.html import render
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.annotators import list_annotators, may_label_in
from stepsight.storage.labelling.campaigns import Campaign, get_campaign, guideline_text, list_campaigns
from stepsight.storage.labelling.files.export_labels import LABEL_FORMATS
from stepsight.storage.labelling.plan import AfterSubmission, Ordering, Shows
from stepsight.storage.labelling.progress import CampaignProgress, annotator_progress, campaign_progress
from stepsight.storage.labelling.queue import list_turns, next_availability
from stepsight.storage.people.users import LOCAL, Role, User, list_users

_ORDERS = {
    Ordering.FILE: "in the order of the file",
    Ordering.RANDOM: "in random order",
    Ordering.DISAGREEMENT: "most disputed by the evaluators first",
}
_AFTER = {
    AfterSubmission.NOTHING: "nothing shown after submission",
    AfterSubmission.GOLD: "gold shown after submission",
    AfterSubmission.EVERYTHING: "everything shown after submission",
}
TURNS = 50
"""The number of traces on a page of a user's own traces."""

# Characters of a problem in that list.
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
        links=[(name, path) for name, path, needed in _LINKS if needed & rights],
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
    return render(
        "annotate/campaign.html",
        campaign=campaign,
        terms=terms(campaign),
        queue=queue_terms(campaign),
        start_word=start_word(store, campaign, user),
        bars=progress_bars(campaign, campaign_progress(store, campaign.id), own=False),
        people=annotator_progress(store, campaign.id),
        annotators=_annotators(store, campaign),
        formats=LABEL_FORMATS,
        guidelines={version: guideline_text(store, campaign.id, version) for version in versions},
    )


def _annotators(store: Store, campaign: Campaign) -> list[tuple[User, bool]]:
    """Return all users who may label, each with a flag that is True if the user is assigned to the campaign. The
    result is empty on a server on which nobody can log in."""
    assigned = {user.id for user in list_annotators(store, campaign.id)}
    able = [user for user in list_users(store) if user.active and user.role is not Role.VIEWER]
    return [(user, user.id in assigned) for user in able if user.name != LOCAL]


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
    if campaign.ordering is Ordering.DISAGREEMENT:
        parts.append(f"{campaign.random_share:.0%} of the places filled at random")
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
        # Hidden gold items come on top of the queue, and must not be noticed.
        bars.append(CampaignBar("You", min(progress.mine, campaign.items), campaign.items))
    if everybody:
        complete = f"{progress.items_done:,} of {progress.items:,} traces complete"
        bars.append(CampaignBar("All", progress.submitted, progress.slots, complete))
    return bars
