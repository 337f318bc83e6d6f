"""The Browse page: a dataset's traces under conditions and in an order, and one opened at an address of its own.

Everything it shows follows from the address; the page's script changes the address and asks for it again.
"""

from collections.abc import Sequence
from html import escape

import gradio as gr

from stepsight.app.browse.address import Address
from stepsight.app.browse.answers import find_answers
from stepsight.app.browse.dispute_links import dispute_links
from stepsight.app.browse.facets import chips_html, condition_words, facets_html, loosen_html
from stepsight.app.browse.offered import MOST_BESIDE, chosen_offers
from stepsight.app.browse.people_view import PeopleSaid
from stepsight.app.browse.selection import Selection
from stepsight.app.browse.trace_file import CSV_PATH, JSON_PATH, file_address
from stepsight.app.browse.trace_list import list_html, orders
from stepsight.app.browse.trace_view import trace_html
from stepsight.app.score.permalink import ScoreForm
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.gradio_page import DIRECT, QUERY, block, header
from stepsight.app.web.judged import notice_html
from stepsight.app.web.page_address import Query, read_query
from stepsight.app.web.rights import Right, find_user_of, may, note_shown
from stepsight.app.web.text import text_html
from stepsight.core.errors import UserError
from stepsight.storage.database.store import NotFoundError, Store
from stepsight.storage.people.users import User
from stepsight.storage.traces.queries import Dataset, StoredTrace, find_dataset, get_trace, list_datasets

_PER_PAGE = 25
_LONGEST_VALUE = 160
# Seconds for which a trace's text waits for its scores; those that take longer come by themselves.
_PATIENCE = 0.4
_EMPTY = "The store is empty. Import a file: stepsight import KIND PATH"
_KEYS = '<span class="keys"><kbd>j</kbd> next <kbd>k</kbd> previous <kbd>?</kbd> all keys</span>'


def build(store: Store, evaluators: Evaluators) -> None:
    """Lay the page out within an open `gr.Blocks`."""
    header("Browse")
    with gr.Column(elem_classes="page"):
        content = block(elem_id="browse", value='<p class="hint">Loading</p>')
        go = gr.Button("Show this address", elem_id="browse-go", visible="hidden")

    def show(query: str, request: gr.Request) -> str:
        return browse_html(store, evaluators, read_query(query), find_user_of(request))

    query = gr.Textbox(visible=False)
    gr.on(None, show, query, content, js=QUERY, **DIRECT, show_progress="hidden")
    go.click(show, query, content, js=QUERY, trigger_mode="always_last", **DIRECT, show_progress="hidden")


def browse_html(store: Store, evaluators: Evaluators, query: Query, user: User | None = None) -> str:
    """The page that a query asks for; what makes no sense in it becomes a notice above what can be shown. `user` is
    who sees it."""
    address, problems = Address.read(query)
    notices = list(problems)
    try:
        opened, missing = _open(store, address)
        notices += missing
        if opened is not None:
            address = address.changed(dataset=opened.dataset)
            selection, unknown = Selection.of(store, evaluators, opened.dataset_id, address)
            note_shown(store, user, [opened.trace_id])
            disputes = dispute_links(store, opened, user)
            body = _trace(selection, evaluators, opened, PeopleSaid(store, opened.trace_id, user), disputes)
        else:
            datasets = list_datasets(store)
            if not datasets:
                return notice_html(_EMPTY)
            dataset = _named(store, datasets, address.dataset)
            address = address.changed(dataset=dataset.name)
            selection, unknown = Selection.of(store, evaluators, dataset.id, address)
            body = _list(selection, dataset, datasets, user)
        notices += unknown
    except UserError as error:
        notices.append(str(error))
        body = '<p><a href="/browse">Back to all traces</a></p>'
    return "".join(map(notice_html, notices)) + body


def _open(store: Store, address: Address) -> tuple[StoredTrace | None, list[str]]:
    """The trace that an address names, or a message where there is no such trace."""
    if address.trace is None:
        return None, []
    try:
        return get_trace(store, address.trace), []
    except NotFoundError as error:
        return None, [str(error)]


def _named(store: Store, datasets: Sequence[Dataset], name: str) -> Dataset:
    """The dataset of that name, the first where none is named. Raises `NotFoundError`."""
    found = (dataset for dataset in datasets if not name or dataset.name == name)
    return next(found, None) or find_dataset(store, name)


def _list(selection: Selection, dataset: Dataset, datasets: Sequence[Dataset], user: User | None) -> str:
    address, about = selection.address, selection.about
    page = selection.page(_PER_PAGE)
    note_shown(selection.store, user, [row.trace_id for row in page.rows])
    if page.rows:
        outputs = about.outputs if about.judged else None
        shown = list_html(page.rows, address, selection.hits_in_steps(page.rows), outputs)
    elif page.total:
        first = _go(address.url(page=1), "The first page", "first")
        shown = f'<p class="hint empty">There is no page {address.page:,}. {first}</p>'
    else:
        shown = loosen_html(address, page.loosened)
    facets = facets_html(address, page.counts, selection.offers, about)
    label = _label_link(selection, page.total, user)
    return f"""<h1>{escape(dataset.name)}</h1><p class="lead">{_counts(dataset)}{label}</p>
{_form(selection, datasets)}<div class="shelf">{facets}
<div class="found">{chips_html(address)}{_unjudged(selection)}{shown}
{_pager(address, page.total, len(page.rows))}</div></div>"""


def _label_link(selection: Selection, total: int, user: User | None) -> str:
    """The way to a campaign over the traces that are listed, for those who may make one."""
    if user is None or not total or not may(user, Right.MANAGE, selection.store):
        return ""
    url = selection.address.url("/relabel/new", trace=None, page=1, beside=())
    return f' · <a href="{url}">Label these traces</a>'


def _counts(dataset: Dataset) -> str:
    return (
        f"{_count(dataset.traces, 'trace')}, {dataset.errors:,} with a gold error, "
        f"{_count(dataset.steps, 'step')}, {_count(dataset.substeps, 'sub-step')}"
    )


def _form(selection: Selection, datasets: Sequence[Dataset]) -> str:
    """What has many values, or a text; the other conditions go along hidden."""
    address = selection.address
    names = _options([(row.name, f"{row.name} ({row.traces:,})") for row in datasets], address.dataset)
    offers = _options([(o.key, o.key if o.judged else f"{o.key} (not judged)") for o in selection.offers],
                      selection.about.key)  # fmt: skip
    modes = _options([("", "offline"), ("online", "online")], "" if address.mode == "offline" else address.mode)
    said = selection.about.outputs if selection.about.judged else None
    sorts = _options(orders(said), "" if address.sort == "position" else address.sort)
    kept = "".join(
        f'<input type="hidden" name="{name}" value="{escape(str(getattr(address, name)))}">'
        for name in address.active
        if name != "text"
    )
    return f"""<form class="filters" role="search" data-go="/browse" data-dataset="{escape(address.dataset)}">
<label>Dataset <select name="dataset" data-key="dataset">{names}</select></label>
<label>Evaluator <select name="evaluator" data-key="evaluator">{offers}</select></label>
<label>Mode <select name="mode" data-key="mode">{modes}</select></label>
<label>Order <select name="sort" data-key="order">{sorts}</select></label>
<label class="grow">Search <input name="q" type="search" data-key="search" value="{escape(address.text)}"
 placeholder="text of problem or steps"></label>{kept}<button data-key="show">Show</button></form>"""


def _unjudged(selection: Selection) -> str:
    """Who has judged nothing here has nothing to filter by."""
    if selection.about.judged:
        return ""
    name = escape(selection.about.key)
    return f"""<p class="hint">{name} has judged no trace of this dataset. Each is scored when it is opened;
to filter and sort by its scores, start a job: <a href="/jobs">Jobs</a>.</p>"""


def _pager(address: Address, total: int, shown: int) -> str:
    first = (address.page - 1) * _PER_PAGE + 1
    place = f"{first:,}–{first + shown - 1:,} of {total:,}" if shown else f"0 of {total:,}"
    previous = _go(address.url(page=address.page - 1), "Previous", "prev") if shown and address.page > 1 else ""
    following = _go(address.url(page=address.page + 1), "Next", "next") if first + _PER_PAGE <= total else ""
    if not total:
        return f'<p class="pager" data-trace="" data-page="{address.page}"></p>'
    return f"""<p class="pager" data-trace="" data-page="{address.page}">{previous}<span>{place}</span>{following}
{_KEYS if shown else ""}</p>"""


def _trace(
    selection: Selection,
    evaluators: Evaluators,
    trace: StoredTrace,
    people: PeopleSaid,
    disputes: Sequence[str],
) -> str:
    address = selection.address
    chosen = chosen_offers(selection.offers, address)
    answers = find_answers(selection.store, evaluators, chosen, trace, _PATIENCE)
    place = selection.place(trace.trace_id)
    near = place.near
    # Back to where the trace stands, however far one went from it.
    page = address.page if place.number is None else (place.number - 1) // _PER_PAGE + 1
    links = [
        _go(address.url(trace=near.previous), "Previous", "prev") if near.previous is not None else "",
        _go(address.url(trace=None, page=page), "All traces", "up"),
        _go(address.url(trace=near.next), "Next", "next") if near.next is not None else "",
    ]
    title = f"{escape(trace.dataset)} · {escape(trace.id)}"
    tools = _tools(selection, trace, [one.name for one in answers if one.runs])
    return f"""<h1 class="unseen">{title}</h1><p class="pager" data-trace="{trace.trace_id}">{"".join(links)}
<span class="place">{place.words}</span><span class="title">{title}</span>{tools}{_KEYS}</p>
{_among(address)}{_chooser(selection, [offer.key for offer in chosen])}
{trace_html(trace, answers, address.text, people.labels, disputes)}{_meta(trace, people)}{people.html()}"""


def _among(address: Address) -> str:
    """Which list the trace stands in."""
    words = " · ".join(condition_words(address, name) for name in address.active)
    return f'<p class="hint among">Among: {escape(words)}</p>' if words else ""


def _chooser(selection: Selection, chosen: Sequence[str]) -> str:
    """Which evaluators stand side by side."""
    address = selection.address
    boxes = "".join(
        f"""<label><input type="checkbox" name="beside" value="{escape(offer.key)}"
data-key="{escape(f"beside {offer.key}")}"{" checked" if offer.key in chosen else ""}
{" disabled" if len(chosen) >= MOST_BESIDE and offer.key not in chosen else ""}>{escape(offer.key)}</label>"""
        for offer in selection.offers
    )
    kept = "".join(
        f'<input type="hidden" name="{name}" value="{escape(str(value))}">'
        for name, value in address.query().items()
        if name != "beside"
    )
    return f"""<form class="beside" data-go="/browse"><fieldset><legend>Evaluators</legend>{boxes}</fieldset>
{kept}</form>"""


def _tools(selection: Selection, trace: StoredTrace, runs: Sequence[str]) -> str:
    """Where else this trace can be looked at, and its files."""
    address = selection.address.changed(trace=trace.trace_id)
    token = ScoreForm.of(trace, runs or ()).token()
    score = f'<a href="/?s={escape(token)}">Open in Score</a>' if token else ""
    return f"""<span class="out">{score}<a href="{file_address(JSON_PATH, address)}" download>JSON</a>
<a href="{file_address(CSV_PATH, address)}" download>CSV</a></span>"""


def _meta(trace: StoredTrace, people: PeopleSaid) -> str:
    said = "".join(
        f"<span>{escape(key.replace('_', ' '))} <strong>{text_html(value)}</strong></span>"
        for key, value in trace.meta.items()
        if isinstance(value, str) and 0 < len(value) <= _LONGEST_VALUE
    )
    return f'<p class="meta"><span>people’s labels <strong>{escape(people.words)}</strong></span>{said}</p>'


def _options(choices: Sequence[tuple[str, str]], chosen: str) -> str:
    return "".join(
        f'<option value="{escape(value)}"{" selected" if value == chosen else ""}>{escape(label)}</option>'
        for value, label in choices
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _go(url: str, label: str, kind: str) -> str:
    return f'<a data-go class="{kind}" href="{url}">{label}</a>'
