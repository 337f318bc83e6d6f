"""`/relabel/agreement`: how far the people of a campaign agree, for those who may see others' labels."""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import ClassVar

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from app.relabel.adjudication import AdjudicationAddress
from app.relabel.agreement_view import figures_html, matrix_html
from app.relabel.campaign_view import counted, terms_html
from app.relabel.heatmap import Heatmap, Order, heatmap_html
from app.relabel.measured_agreement import measure_agreement
from app.web.frame import plain_page
from app.web.identity import find_user_of
from app.web.page_address import PageAddress, Query, choice_reader, number_reader, read_query
from app.web.rights import Right, has_right
from core.errors import UserError
from storage.labelling.campaigns import get_campaign, list_campaigns
from storage.labelling.ratings import RatedTrace
from storage.people.exposures import GOLD, LABELS, note_exposure
from storage.store import ForbiddenError, Store
from training.blocks import table_html
from training.tables import to_csv

_LEAD = """What two people say of the same step is compared; unsure and unlabelled count as nothing said. Hidden
gold items stand apart."""
_RULE = """Alpha is 1 where all agree, and 0 where chance would do as well. The limits are Krippendorff's. Small
numbers are 95 % intervals over traces."""


@dataclass(frozen=True)
class AgreementAddress(PageAddress):
    """What the query asks for.

    A `campaign`, and one to compare `against`, by their ids; with `exposed` also the answers of people who had seen
    what the campaign hides; the heatmap's `order` and `page`; or a `table` as CSV.
    """

    PATH: ClassVar[str] = "/relabel/agreement"

    campaign: int = 0
    against: int = 0
    exposed: str = ""
    order: str = Order.DISAGREEMENT.value
    page: int = 1
    table: str = ""


_READERS = {
    "campaign": number_reader("campaign"),
    "against": number_reader("against"),
    "exposed": choice_reader("exposed", ["1"]),
    "order": choice_reader("order", list(Order)),
    "page": number_reader("page", least=1),
}


def read_address(query: Query) -> AgreementAddress:
    """The address that a query spells. Raises `UserError` where a part makes no sense."""
    address, problems = AgreementAddress.spelled(query, _READERS)
    if problems:
        raise UserError(problems[0])
    return address


def router(store: Store) -> APIRouter:
    """The page and its files. They raise `UserError`, which the application answers."""
    routes = APIRouter(include_in_schema=False)

    @routes.get(AgreementAddress.PATH)
    def agreement(request: Request) -> Response:
        if not (has_right(request, Right.READ) or has_right(request, Right.ADJUDICATE)):
            raise ForbiddenError("Others' labels are not for you now.", "Label first, or log in as somebody else.")
        address = read_address(read_query(request.url.query))
        if not address.campaign:
            return HTMLResponse(plain_page("Agreement", _choose(store), "Relabel"))
        user = find_user_of(request)
        if user is None:
            _check_closed(store, address)
        adjudicates = has_right(request, Right.ADJUDICATE)
        # On a server that lets anybody look, the names of people are not for anybody.
        shown = _Shown(store, address, adjudicates=adjudicates, named=user is not None)
        if user is not None:
            note_exposure(store, user.id, shown.seen, LABELS, GOLD)
        return shown.file() if address.table else HTMLResponse(shown.page())

    return routes


def _check_closed(store: Store, address: AgreementAddress) -> None:
    """Raises `ForbiddenError` where somebody who is not logged in asks for an open campaign: an annotator who
    logged out could, and nobody would know."""
    for number in (address.campaign, address.against):
        if number and get_campaign(store, number).closed is None:
            raise ForbiddenError(
                "Labels of an open campaign are not for everybody.", "Log in, or wait for its end."
            )


def _choose(store: Store) -> str:
    rows = "".join(
        f'<li><a href="{AgreementAddress(one.id).url()}">{escape(one.name)}</a>, {terms_html(one)}</li>'
        for one in list_campaigns(store)
    )
    return "<h1>Agreement</h1>" + (f"<ul>{rows}</ul>" if rows else '<p class="hint">There is no campaign yet.</p>')


class _Shown:
    """A campaign's agreement as an address asks for it."""

    def __init__(self, store: Store, address: AgreementAddress, *, adjudicates: bool, named: bool) -> None:
        self.address = address
        self.adjudicates = adjudicates
        self.campaign = get_campaign(store, address.campaign)
        against = get_campaign(store, address.against) if address.against else None
        self.others = [one for one in list_campaigns(store) if one.id != self.campaign.id]
        exposed = bool(address.exposed)
        self.measured = measure_agreement(store, self.campaign, against, exposed=exposed, named=named)
        self.heatmap = Heatmap.of(self.measured.found.queue, Order(address.order))

    @property
    def seen(self) -> list[int]:
        """The traces of which the answer shows what was said of them."""
        traces = self.measured.found.queue.traces
        if self.address.table:
            return [trace.trace_id for trace in traces] if self.address.table == "steps" else []
        return [traces[place].trace_id for place in self.heatmap.on_page(self.address.page)]

    def file(self) -> Response:
        """The table asked for. Raises `NotFoundError`."""
        found = self.measured.find_table(self.address.table)
        name = f'attachment; filename="agreement-{self.campaign.id}-{found.name}.csv"'
        return Response(to_csv(found), media_type="text/csv", headers={"content-disposition": name})

    def page(self) -> str:
        name = escape(self.campaign.name)
        body = f"""<div id="agreement"><p class="pager"><a href="/relabel">Campaigns</a></p>
<h1>Agreement: {name}</h1><p class="lead">{terms_html(self.campaign)}. {_LEAD}</p>
{self._form()}{self._told()}{self._figures()}{self._heat()}{self._sections()}</div>"""
        return plain_page(f"Agreement: {name}", body, "Relabel")

    def _form(self) -> str:
        address = self.address
        options = [("", "no other")] + [(str(one.id), one.name) for one in self.others]
        against = _select("Compare with", "against", options, str(address.against or ""))
        answers = _select("Answers", "exposed", [("", "given blind"), ("1", "all")], address.exposed)
        return f"""<form class="choices" action="{address.PATH}"><input type="hidden" name="campaign"
value="{address.campaign}">{against if self.others else ""}{answers}<button>Show</button></form>"""

    def _told(self) -> str:
        """How many answers there are, and which are left out."""
        found = self.measured.found
        people, traces = found.queue.last.people, len(found.queue.traces)
        counts = f"{counted(found.answers, 'answer')} of {counted(len(people), 'person', 'people')}"
        told = [f"{counts} on {counted(traces, 'trace')}." if traces else "No answer that counts here yet."]
        if found.exposed:
            how = "are included" if found.with_exposed else "are left out"
            told.append(f"{counted(found.exposed, 'answer')} by people who had seen scores, gold or labels {how}.")
        if found.changed:
            told.append(f"{counted(found.changed, 'trace')} changed since: their gold is left out.")
        return f'<p class="hint">{escape(" ".join(told))}</p>'

    def _figures(self) -> str:
        overall = self.measured.find_table("agreement")
        files = self._link("agreement")
        return f'<h2>How far people agree</h2>{figures_html(overall)}<p class="hint">{_RULE} {files}</p>'

    def _heat(self) -> str:
        if not self.measured.found.queue.traces:
            return ""
        address = self.address
        current = ' aria-current="true"'
        orders = ((Order.DISAGREEMENT, "most disagreement first"), (Order.QUEUE, "in the order of the queue"))
        links = ""
        for order, text in orders:
            here = current if order == address.order else ""
            links += f'<a href="{address.url(order=order.value, page=1)}"{here}>{text}</a>'
        heat = heatmap_html(self.heatmap, address.page, self._target)
        return f"""<h2>Step by step</h2><nav class="kinds" aria-label="Order">{links}</nav>{self._pages()}{heat}
<p class="hint">Arrow keys move from cell to cell. {self._link("steps")}</p>"""

    def _pages(self) -> str:
        last, page = self.heatmap.pages, min(self.address.page, self.heatmap.pages)
        if last == 1:
            return ""
        before = f'<a href="{self.address.url(page=page - 1)}">Previous</a>' if page > 1 else ""
        after = f'<a href="{self.address.url(page=page + 1)}">Next</a>' if page < last else ""
        return f'<p class="pager">{before}<span>page {page:,} of {last:,}</span>{after}</p>'

    def _target(self, trace: RatedTrace, disputed: bool) -> str:
        """Where a cell leads: to the decision, for who decides and where there is something to decide, else to the
        trace."""
        if disputed and self.adjudicates:
            return AdjudicationAddress(self.campaign.id, trace.item_id).url()
        return f"/browse?trace={trace.trace_id}"

    def _sections(self) -> str:
        people = self._tables("annotators", "pairs")
        pairs = self.measured.table("pairs")
        matrix = matrix_html(pairs) if pairs is not None else ""
        parts = (
            ("People", matrix + people),
            ("Gold", self._tables("gold", "gold-items")),
            ("Step numbers", self._tables("positions")),
            ("Views", self._tables("views", "majorities", "minds", "later")),
        )
        return "".join(f"<section><h2>{title}</h2>{body}</section>" for title, body in parts if body)

    def _tables(self, *names: str) -> str:
        found = (self.measured.table(name) for name in names)
        return "".join(table_html(one, files=self._link(one.name)) for one in found if one is not None)

    def _link(self, table: str) -> str:
        return f'<a href="{self.address.url(table=table, page=1)}" download>CSV</a>'


def _select(label: str, name: str, options: Iterable[tuple[str, str]], chosen: str) -> str:
    made = "".join(
        f'<option value="{escape(value)}"{" selected" if value == chosen else ""}>{escape(text)}</option>'
        for value, text in options
    )
    return f'<label>{label} <select name="{name}">{made}</select></label>'
