"""A campaign as HTML: what it asks for, how far it is, its guideline."""

from html import escape

from stepsight.app.web.text import text_html
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.campaigns import Campaign, CampaignView, Ordering
from stepsight.storage.labelling.progress import CampaignProgress, campaign_progress
from stepsight.storage.labelling.queue import next_availability
from stepsight.storage.people.users import Role, User

_ORDERS = {
    Ordering.FILE: "in the order of the file",
    Ordering.RANDOM: "in random order",
    Ordering.DISAGREEMENT: "most disputed by the evaluators first",
    Ordering.CHANGE: "most changed by later steps first",
}


def terms_html(campaign: Campaign) -> str:
    """What a campaign asks of whom, in a line."""
    parts = [
        f"{counted(campaign.items, 'trace')} of {escape(campaign.dataset)}",
        f"labelled by {counted(campaign.overlap, 'person', 'people')} each",
        "step by step" if campaign.view is CampaignView.STEPWISE else "the whole trace in view",
    ]
    if not campaign.after_error:
        parts.append("up to the first error")
    parts.append("blind" if campaign.blind else "scores in view")
    return " · ".join(parts)


def queue_html(campaign: Campaign) -> str:
    """How the queue of a campaign was made, for those who run it."""
    parts = [_ORDERS[campaign.ordering]]
    if campaign.ordering in (Ordering.DISAGREEMENT, Ordering.CHANGE):
        parts.append(f"{campaign.random_share:.0%} of the places by chance")
    if campaign.gold_rate:
        parts.append(f"{campaign.gold_rate:.0%} hidden gold items")
    parts += [f"{name.replace('_', ' ')}: {value}" for name, value in campaign.conditions.items()]
    return " · ".join(escape(part) for part in parts)


def label_html(store: Store, campaign: Campaign, user: User) -> str:
    """The way to label for a person who may, or that nothing is left for them."""
    turn, mine = next_availability(store, campaign, user), campaign_progress(store, campaign.id, user.id).mine
    if turn == "nothing":
        return "nothing left for you"
    word = "Continue" if mine or turn == "held" else "Start"
    return f"""<a class="button primary" href="/relabel/label?campaign={campaign.id}"
aria-label="{word} labelling {escape(campaign.name)}">{word}</a>"""


def is_told_all(user: User) -> bool:
    """Whether a person is told how far everybody is. Hidden gold items count for a person and not for the campaign:
    who only labels could tell them by the number that stays behind."""
    return user.role is not Role.ANNOTATOR


def progress_html(campaign: Campaign, found: CampaignProgress, *, mine: bool = True, everybody: bool = True) -> str:
    """Bars for the person's own share and for the whole campaign."""
    done = f"{found.items_done:,} of {found.items:,} traces complete"
    lines = [("All", found.submitted, found.slots, done)] if everybody else []
    if mine:
        # Hidden gold items come on top of the queue, and must not be noticed.
        lines.insert(0, ("You", min(found.mine, campaign.items), campaign.items, ""))
    return f'<div class="progress">{"".join(_bar(*line) for line in lines)}</div>'


def _bar(name: str, done: int, whole: int, note: str) -> str:
    share = 100 * done / whole if whole else 0.0
    said = f"{done:,} of {whole:,}"
    return f"""<span>{name}</span><div class="meter" role="img" aria-label="{name}: {said} answers"><i
 style="width:{share:.1f}%"></i></div><span class="n">{said}{f" · {note}" if note else ""}</span>"""


def guideline_html(version: int, text: str) -> str:
    """The inside of a `details` with the guideline."""
    return f'<summary>Guideline, version {version}</summary><div class="t">{text_html(text)}</div>'


def counted(number: int, noun: str, several: str = "") -> str:
    """`1 trace`, `2 traces`."""
    return f"{number:,} {noun if number == 1 else several or f'{noun}s'}"
