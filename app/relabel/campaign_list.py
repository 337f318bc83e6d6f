"""`/relabel`: the campaigns, how far each is, and where to label."""

from html import escape

from stepsight.app.relabel.campaign_summary import (
    guideline_html,
    is_told_all,
    label_html,
    progress_html,
    terms_html,
)
from stepsight.app.web.rights import Right, may
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.campaigns import Campaign, guideline_text, list_campaigns
from stepsight.storage.labelling.progress import campaign_progress
from stepsight.storage.people.users import User

_NONE = """<p class="hint">There is no campaign yet. {how}</p>"""


def list_html(store: Store, user: User) -> str:
    """The page as this person sees it."""
    rights = {right for right in Right if may(user, right, store)}
    cards = [_card(store, campaign, user, rights) for campaign in list_campaigns(store)]
    how = (
        'Choose traces in <a href="/browse">Browse</a> and press “Label these traces”.'
        if Right.MANAGE in rights
        else "An admin of this server makes one."
    )
    new = '<a class="button" href="/relabel/new">New campaign</a>' if Right.MANAGE in rights else ""
    disputes = '<a class="button" href="/relabel/disputes">Disputes</a>' if Right.READ in rights else ""
    return f"""<div id="relabel" data-person="{user.id}"><h1>Relabel</h1>
<p class="lead">Labels from people. What you say of a step is stored at once; you can go away and come back.</p>
<div class="told"></div><p class="out">{new}{disputes}</p>
{f'<ol class="campaigns">{"".join(cards)}</ol>' if cards else _NONE.format(how=how)}</div>"""


def _card(store: Store, campaign: Campaign, user: User, rights: set[Right]) -> str:
    found = campaign_progress(store, campaign.id, user.id)
    labels = Right.LABEL in rights
    guideline = guideline_html(campaign.guideline, guideline_text(store, campaign.id))
    return f"""<li class="card"><div class="what"><h2>{escape(campaign.name)}</h2>
<span>{terms_html(campaign)}</span>
<span class="end">{_start(store, campaign, user) if labels else _state(campaign)}</span></div>
{progress_html(campaign, found, mine=labels, everybody=is_told_all(user))}
<details class="guideline">{guideline}</details>{_links(campaign, rights)}</li>"""


def _start(store: Store, campaign: Campaign, user: User) -> str:
    return _state(campaign) if campaign.closed else label_html(store, campaign, user)


def _state(campaign: Campaign) -> str:
    return "closed" if campaign.closed else "open"


def _links(campaign: Campaign, rights: set[Right]) -> str:
    pages = (
        ("Agreement", "/relabel/agreement", {Right.READ, Right.ADJUDICATE}),
        ("Adjudicate", "/relabel/adjudicate", {Right.ADJUDICATE}),
        ("Manage", "/relabel/campaign", {Right.MANAGE}),
    )
    links = "".join(
        f'<a href="{path}?campaign={campaign.id}" aria-label="{name}: {escape(campaign.name)}">{name}</a>'
        for name, path, needed in pages
        if needed & rights
    )
    return f'<p class="links">{links}</p>' if links else ""
