"""`/relabel/campaign`: one campaign for those who run it: who has done how much, its guideline, its end."""

from html import escape

from stepsight.app.relabel.adjudicate_step import INERT
from stepsight.app.relabel.campaign_summary import (
    counted,
    guideline_html,
    label_html,
    progress_html,
    queue_html,
    terms_html,
)
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.campaigns import Campaign, get_campaign, guideline_text
from stepsight.storage.labelling.progress import AnnotatorProgress, annotator_progress, campaign_progress
from stepsight.storage.people.users import User


def campaign_html(store: Store, campaign_id: int, user: User) -> str:
    """The page. Raises `NotFoundError`."""
    campaign = get_campaign(store, campaign_id)
    found = campaign_progress(store, campaign.id)
    made = f"made on {campaign.created:%Y-%m-%d}"
    state = f"closed on {campaign.closed:%Y-%m-%d}" if campaign.closed else "open"
    return f"""<div id="relabel"><p class="pager"><a href="/relabel">Campaigns</a></p>
<h1>{escape(campaign.name)}</h1><p class="lead">{terms_html(campaign)}</p>
<p class="hint">{queue_html(campaign)} · {made} · {state}</p><div class="told"></div>
{"" if campaign.closed else f'<p class="out">{label_html(store, campaign, user)}</p>'}
{progress_html(campaign, found, mine=False)}{_people(store, campaign)}
{_guidelines(store, campaign)}{"" if campaign.closed else _end(campaign)}</div>"""


def _people(store: Store, campaign: Campaign) -> str:
    """Who has done how much; everybody who got a trace."""
    rows = "".join(_person(found) for found in annotator_progress(store, campaign.id))
    if not rows:
        return '<h2>People</h2><p class="hint">Nobody has begun yet.</p>'
    titles = "".join(
        f'<th scope="col" class="number">{title}</th>' for title in ("Submitted", "In progress", "Skipped")
    )
    return f"""<h2>People</h2><div class="card"><table class="table"><thead>
<tr><th scope="col">Name</th>{titles}</tr></thead><tbody>{rows}</tbody></table></div>"""


def _person(found: AnnotatorProgress) -> str:
    counts = (found.submitted, found.leased, found.skipped)
    cells = "".join(f'<td class="number">{count:,}</td>' for count in counts)
    return f'<tr><th scope="row">{escape(found.user)}</th>{cells}</tr>'


def _guidelines(store: Store, campaign: Campaign) -> str:
    text = guideline_text(store, campaign.id)
    earlier = "".join(
        f'<details class="guideline">{guideline_html(number, guideline_text(store, campaign.id, number))}</details>'
        for number in range(campaign.guideline - 1, 0, -1)
    )
    if campaign.closed:
        shown = f'<details class="guideline" open>{guideline_html(campaign.guideline, text)}</details>'
        return f"<h2>Guideline</h2>{shown}{earlier}"
    return f"""<h2>Guideline</h2><form class="fields" {INERT}
data-post="/relabel/campaigns/{campaign.id}/guideline">
<label class="wide">Version {campaign.guideline}, in force
<textarea name="text" rows="10" required>{escape(text)}</textarea></label>
<p class="wide"><button class="button">Put into force as version {campaign.guideline + 1}</button></p>
<p class="hint wide">Whoever is labelling is shown the new text first. What was labelled keeps the version that it
was labelled under.</p></form>{earlier}"""


def _end(campaign: Campaign) -> str:
    left = counted(campaign.items, "trace")
    return f"""<h2>End</h2><details class="ending"><summary>Close this campaign</summary>
<p>Nobody can label any of its {left} after that, nor change an answer. What was submitted stays.</p>
<p><button type="button" class="button"
data-post="/relabel/campaigns/{campaign.id}/close">Close it for good</button></p></details>"""
