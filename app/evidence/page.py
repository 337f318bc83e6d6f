"""The Evidence page: how later steps changed the verdict on earlier ones, in one trace or in a gallery of them.

Everything it shows follows from the address; the page's script changes the address and asks for it again.
"""

from dataclasses import replace
from html import escape

import gradio as gr

from stepsight.app.browse.selection import Place
from stepsight.app.evidence.evidence import Evidence, open_evidence
from stepsight.app.evidence.evidence_address import EvidenceAddress, read_address
from stepsight.app.evidence.evidence_file import title
from stepsight.app.evidence.evidence_list import gallery_html, open_gallery, page_of, turn_of
from stepsight.app.evidence.evidence_routes import FILE, LEFT_OUT
from stepsight.app.evidence.evidence_view import evidence_html
from stepsight.app.score.permalink import ScoreForm
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.gradio_page import DIRECT, QUERY, block, header
from stepsight.app.web.judged import notice_html
from stepsight.app.web.page_address import Query, read_query
from stepsight.app.web.rights import find_user_of, note_shown
from stepsight.core.errors import UserError
from stepsight.storage.database.store import Store
from stepsight.storage.people.users import User
from stepsight.storage.traces.queries import Neighbours, StoredTrace

_NOWHERE = Place(Neighbours(None, None))


def build(store: Store, evaluators: Evaluators) -> None:
    """Lay the page out within an open `gr.Blocks`."""
    header("Evidence")
    with gr.Column(elem_classes="page"):
        content = block(elem_id="evidence", value='<p class="hint">Loading</p>')
        go = gr.Button("Show this address", elem_id="evidence-go", visible="hidden")

    def show(query: str, request: gr.Request) -> str:
        return page_html(store, evaluators, read_query(query), find_user_of(request))

    query = gr.Textbox(visible=False)
    gr.on(None, show, query, content, js=QUERY, **DIRECT, show_progress="hidden")
    go.click(show, query, content, js=QUERY, trigger_mode="always_last", **DIRECT, show_progress="hidden")


def page_html(store: Store, evaluators: Evaluators, query: Query, user: User | None = None) -> str:
    """The page that a query string asks for; a mistake in it becomes a notice above what can be shown. `user` is
    who sees it."""
    address, problems = read_address(query)
    notices = "".join(map(notice_html, problems))
    try:
        if address.opens:
            if address.trace is not None:
                note_shown(store, user, [address.trace])
            return notices + _opened(store, evaluators, address)
        gallery = open_gallery(store, evaluators, address.dataset, address.evaluator)
        return notices + gallery_html(store, gallery, address, user)
    except UserError as error:
        back = '<p><a data-go href="/evidence">The gallery of evidence</a> · <a href="/">Score a solution</a></p>'
        return f"<h1>Evidence</h1>{notices}{notice_html(str(error))}{back}"


def _opened(store: Store, evaluators: Evaluators, address: EvidenceAddress) -> str:
    evidence = open_evidence(store, evaluators, address)
    ask = _of_trace(evidence, address).url(LEFT_OUT) if evidence.scorer is not None else ""
    return f"""<h1 class="unseen">{escape(title(evidence))}</h1>
<div class="above">{_pager(evidence, address, _place(store, evaluators, evidence, address))}
{_choices(evidence, address)}</div>
{evidence_html(evidence, address, ask)}{_ways_out(evidence, address)}"""


def _of_trace(evidence: Evidence, address: EvidenceAddress) -> EvidenceAddress:
    """The address of the trace alone."""
    return EvidenceAddress(trace=address.trace, s=address.s, evaluator=evidence.evaluator)


def _place(store: Store, evaluators: Evaluators, evidence: Evidence, address: EvidenceAddress) -> Place:
    """Where it stands in the gallery that the address comes from."""
    if not address.kind or not isinstance(evidence.trace, StoredTrace):
        return _NOWHERE
    try:
        gallery = open_gallery(store, evaluators, evidence.trace.dataset, evidence.evaluator)
    except UserError:
        return _NOWHERE
    turn, trace_id = turn_of(address.kind), evidence.trace.trace_id
    ids = gallery.turns.of(turn).tolist()
    if trace_id not in ids:
        return _NOWHERE
    return Place(gallery.turns.neighbours(turn, trace_id), ids.index(trace_id) + 1, len(ids))


def _pager(evidence: Evidence, address: EvidenceAddress, place: Place) -> str:
    near = place.near
    here = EvidenceAddress(evaluator=evidence.evaluator, kind=address.kind)
    dataset = evidence.trace.dataset if isinstance(evidence.trace, StoredTrace) else ""
    links = [
        ("prev", "Previous", here.url(trace=near.previous) if near.previous is not None else ""),
        ("up", "The gallery", here.url(dataset=dataset, page=page_of(place.number)) if dataset else here.PATH),
        ("next", "Next", here.url(trace=near.next) if near.next is not None else ""),
    ]
    shown = "".join(f'<a data-go class="{kind}" href="{url}">{label}</a>' for kind, label, url in links if url)
    keys = '<span class="keys"><kbd>j</kbd> next <kbd>k</kbd> previous</span>' if near != _NOWHERE.near else ""
    where = f'<span class="place">{place.words}</span><span>{escape(title(evidence))}</span>'
    return f'<p class="pager" data-trace="{address.trace or ""}">{shown}{where}{keys}</p>'


def _choices(evidence: Evidence, address: EvidenceAddress) -> str:
    kept = {"trace": str(address.trace or ""), "s": address.s, "kind": address.kind}
    hidden = "".join(
        f'<input type="hidden" name="{name}" value="{escape(value)}">' for name, value in kept.items() if value
    )
    options = "".join(
        f'<option value="{escape(name)}"{" selected" if name == evidence.evaluator else ""}>{escape(name)}</option>'
        for name in evidence.choices
    )
    return f"""<form class="filters" data-go="/evidence">{hidden}
<label>Evaluator <select name="evaluator">{options}</select></label><button>Show</button></form>"""


def _ways_out(evidence: Evidence, address: EvidenceAddress) -> str:
    here = _of_trace(evidence, address)
    opened = replace(here, step=address.step, after=address.after, value=address.value)
    token = address.s or ScoreForm.of(evidence.trace, (evidence.evaluator,), evidence.thresholds).token()
    links = [f'<a class="file" download href="{opened.url(FILE)}">Download as a file</a>']
    if isinstance(evidence.trace, StoredTrace):
        links.append(f'<a href="{here.url("/browse")}">Open in Browse</a>')
    if token:
        links.append(f'<a href="/?s={escape(token)}">Open in Score</a>')
    return f'<p class="out">{"".join(links)}</p>'
