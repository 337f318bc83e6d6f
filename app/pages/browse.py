"""The Browse page: a dataset's traces, one opened at an address of its own.

Everything it shows follows from the address; the page's script changes the address and asks for it again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape
from urllib.parse import parse_qsl, urlencode

import gradio as gr

from app.evaluators import Evaluators
from app.pages import DIRECT, QUERY, block, header
from app.text import text_html
from app.view import judged_html, notice_html, plain_html
from core.errors import UserError
from core.judgment import Judgment, Mode
from storage.filters import Gold, TraceFilter
from storage.judgments import find_judgment
from storage.queries import (
    Dataset,
    StoredTrace,
    TraceSummary,
    find_dataset,
    get_trace,
    list_datasets,
    neighbours,
    page_traces,
)
from storage.store import Store

_PER_PAGE = 25
_PREVIEW = 160
_GOLD = (
    ("any", "any gold"),
    ("error", "gold names an error"),
    ("clean", "gold names no error"),
    ("missing", "no gold"),
)


@dataclass(frozen=True)
class Address:
    """What the query string asks for. `trace` is a database id; `page` counts from 1."""

    dataset: str = ""
    trace: int | None = None
    gold: Gold = "any"
    q: str = ""
    page: int = 1
    evaluator: str = ""

    @classmethod
    def read(cls, query: Mapping[str, str]) -> "Address":
        """Raises `UserError` on a number that is none."""
        return cls(
            dataset=query.get("dataset", ""),
            trace=_number(query["trace"], "trace") if query.get("trace") else None,
            gold=query.get("gold") or "any",  # type: ignore[arg-type]  # the filter checks it
            q=query.get("q", ""),
            page=max(1, _number(query.get("page") or "1", "page")),
            evaluator=query.get("evaluator", ""),
        )

    def url(self, **changes: object) -> str:
        """The address with some parts changed, as an attribute's value; defaults are left out."""
        changed = replace(self, **changes)  # type: ignore[arg-type]
        default = Address()
        query = {
            key: value
            for key in self.__dataclass_fields__
            if (value := getattr(changed, key)) != getattr(default, key)
        }
        return escape("/browse" + (f"?{urlencode(query)}" if query else ""))


def build(store: Store, evaluators: Evaluators) -> None:
    """Lay the page out within an open `gr.Blocks`."""
    header("Browse")
    with gr.Column(elem_classes="page"):
        content = block(elem_id="browse", value='<p class="hint">Loading</p>')
        go = gr.Button("Show this address", elem_id="browse-go", visible="hidden")

    def show(query: str) -> str:
        return browse_html(store, evaluators, dict(parse_qsl(query.removeprefix("?"))))

    query = gr.Textbox(visible=False)
    gr.on(None, show, query, content, js=QUERY, **DIRECT, show_progress="hidden")
    go.click(show, query, content, js=QUERY, trigger_mode="always_last", **DIRECT, show_progress="hidden")


def browse_html(store: Store, evaluators: Evaluators, query: Mapping[str, str]) -> str:
    """The page that a query string asks for; a mistake in it becomes a notice above what can be shown."""
    notice = ""
    try:
        address = Address.read(query)
        opened = get_trace(store, address.trace) if address.trace is not None else None
        where = TraceFilter(address.gold, address.q)
    except UserError as error:
        notice, address, opened, where = notice_html(str(error)), Address(), None, TraceFilter()
    try:
        datasets = list_datasets(store)
        if not datasets:
            return notice_html("The store is empty. Import a file: stepsight import KIND PATH")
        dataset = _dataset(store, datasets, opened.dataset if opened else address.dataset)
        address = replace(address, dataset=dataset.name)
        evaluator = address.evaluator if address.evaluator in evaluators.names else evaluators.names[0]
        body = (
            _trace(store, evaluators, opened, evaluator, address, where)
            if opened
            else _list(store, dataset, address, where)
        )
        return notice + _filters(datasets, evaluators, replace(address, evaluator=evaluator)) + body
    except UserError as error:
        return notice + notice_html(str(error)) + '<p><a href="/browse">Back to all traces</a></p>'


def _dataset(store: Store, datasets: list[Dataset], name: str) -> Dataset:
    return find_dataset(store, name) if name else datasets[0]


def _filters(datasets: list[Dataset], evaluators: Evaluators, address: Address) -> str:
    names = _options([(row.name, f"{row.name} ({row.traces:,})") for row in datasets], address.dataset)
    return f"""<form class="filters" role="search" data-go="/browse" data-dataset="{escape(address.dataset)}"
 data-gold="{escape(address.gold)}" data-q="{escape(address.q)}">
<label>Dataset <select name="dataset">{names}</select></label>
<label>Gold <select name="gold">{_options(_GOLD, address.gold)}</select></label>
<label>Evaluator <select name="evaluator">{_options([(n, n) for n in evaluators.names], address.evaluator)}</select>
</label><label class="grow">Search <input name="q" type="search" value="{escape(address.q)}"
 placeholder="text of problem or steps"></label><button>Show</button></form>"""


def _options(choices: list[tuple[str, str]] | tuple[tuple[str, str], ...], chosen: str) -> str:
    return "".join(
        f'<option value="{escape(value)}"{" selected" if value == chosen else ""}>{escape(label)}</option>'
        for value, label in choices
    )


def _list(store: Store, dataset: Dataset, address: Address, where: TraceFilter) -> str:
    page = page_traces(store, dataset.id, where, _PER_PAGE, (address.page - 1) * _PER_PAGE)
    rows = "".join(_list_row(row, address) for row in page.rows)
    first = (address.page - 1) * _PER_PAGE + 1
    shown = f"{first:,}–{first + len(page.rows) - 1:,} of {page.total:,}" if page.rows else f"0 of {page.total:,}"
    counts = (
        f"{_count(dataset.traces, 'trace')}, {dataset.errors:,} with a gold error, "
        f"{_count(dataset.steps, 'step')}, {_count(dataset.substeps, 'sub-step')}"
    )
    empty = '<p class="hint">No trace meets these conditions.</p>' if not page.rows else ""
    previous = _go(address.url(page=address.page - 1), "Previous", "prev") if address.page > 1 else ""
    following = _go(address.url(page=address.page + 1), "Next", "next") if first + _PER_PAGE <= page.total else ""
    return f"""<h1>{escape(dataset.name)}</h1><p class="lead">{counts}</p>{empty}
<ol class="traces">{rows}</ol><p class="pager" data-trace="" data-page="{address.page}">
{previous}<span>{shown}</span>{following}</p>"""


def _list_row(row: TraceSummary, address: Address) -> str:
    problem = row.problem if len(row.problem) <= _PREVIEW else row.problem[:_PREVIEW].rsplit(" ", 1)[0] + " …"
    gold = "no gold"
    if row.first_error is not None:
        gold = f'<span class="bad">✕ error at step {row.first_error + 1}</span>'
    elif row.has_gold:
        gold = "✓ no error"
    return f"""<li><a data-go href="{address.url(trace=row.trace_id)}"><b>{escape(row.id)}</b>
<span class="t">{text_html(problem)}</span><span class="n">{_count(row.n_steps, "step")}</span>
<span class="n wide">{gold}</span></a></li>"""


def _trace(
    store: Store, evaluators: Evaluators, trace: StoredTrace, evaluator: str, address: Address, where: TraceFilter
) -> str:
    near = neighbours(store, trace.trace_id, where)
    links = [
        _go(address.url(trace=near.previous), "Previous", "prev") if near.previous is not None else "",
        _go(address.url(trace=None), "All traces", "up"),
        _go(address.url(trace=near.next), "Next", "next") if near.next is not None else "",
    ]
    try:
        judgment, stored = _judgment(store, evaluators, trace, evaluator)
        body = judged_html(judgment, evaluator, evaluators.scorer(evaluator).evaluator.thresholds)
        source = "stored judgment" if stored else "scored for this page, not stored"
    except UserError as error:
        body, source = plain_html(trace, str(error)), "not scored"
    meta = "".join(
        f"<span>{escape(key.replace('_', ' '))} <strong>{text_html(value)}</strong></span>"
        for key, value in trace.meta.items()
        if isinstance(value, str) and 0 < len(value) <= _PREVIEW
    )
    return f"""<h1 class="unseen">{escape(trace.dataset)} · {escape(trace.id)}</h1>
<p class="pager" data-trace="{trace.trace_id}">{"".join(links)}
<span>{escape(trace.dataset)} · {escape(trace.id)}</span>
<span class="keys"><kbd>j</kbd> next <kbd>k</kbd> previous</span></p>{body}
<p class="meta"><span>{source}</span>{meta}</p>"""


def _judgment(store: Store, evaluators: Evaluators, trace: StoredTrace, evaluator: str) -> tuple[Judgment, bool]:
    """The stored judgment where there is a fresh one, else one made now; and which of them it is."""
    row = evaluators.register(store, evaluator)
    found = find_judgment(store, trace, row.id, Mode.HINDSIGHT)
    if found is not None and not found.stale:
        return found, True
    return evaluators.judge(evaluator, trace), False


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _go(url: str, label: str, kind: str) -> str:
    return f'<a data-go class="{kind}" href="{url}">{label}</a>'


def _number(text: str, what: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        raise UserError(f"{what} is {text!r:.40}, expected a number.", "Check the address.")
    return int(text)
