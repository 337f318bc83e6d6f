"""`/relabel/agreement`: how far the people of a campaign agree, for those who may see others' labels."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from typing import ClassVar

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from stepsight.app.relabel.adjudicate import AdjudicationAddress
from stepsight.app.relabel.agreement_heatmap import Heatmap, Order, heatmap_html
from stepsight.app.relabel.agreement_measure import measure_agreement
from stepsight.app.relabel.agreement_tables import FIGURES
from stepsight.app.relabel.campaigns import choose_html, terms
from stepsight.app.web.frame import plain_page
from stepsight.app.web.page_address import PageAddress, Query, choice_reader, number_reader, read_query
from stepsight.app.web.rights import Right, find_user_of, has_right
from stepsight.app.web.text import counted
from stepsight.core.errors import UserError
from stepsight.core.metrics.value import Value
from stepsight.storage.database.store import ForbiddenError, Store
from stepsight.storage.labelling.campaigns import get_campaign, list_campaigns
from stepsight.storage.labelling.results.ratings import RatedTrace
from stepsight.storage.people.exposures import GOLD, LABELS, note_exposure
from stepsight.training.report.html import table_html
from stepsight.training.report.tables import CellKind, Table, show, to_csv

# Krippendorff, Content Analysis (2nd edition, 2004), page 241.
RELIABLE, TENTATIVE = 0.8, 0.667
# Of more people than that, pairs are told in the table alone.
_MOST_PEOPLE = 24

_MEANING = dict(
    zip(
        FIGURES,
        (
            "neg against pos counts as further apart than either against neu",
            "any two different labels count as equally far apart",
            "neg against neu and pos together",
            "which step is the first that is neg, or that none is",
        ),
        strict=True,
    )
)


def figures_html(table: Table) -> str:
    """The rows of `agreement_tables.overall_table`, each with what it means."""
    return f'<div class="figures">{"".join(_figure(row) for row in table.rows)}</div>'


def _figure(row: tuple[object, ...]) -> str:
    name, alpha, agreeing, units, unit, _ = row
    assert isinstance(alpha, Value)
    assert isinstance(agreeing, Value)
    shown = show(alpha, CellKind.NUMBER)
    interval = f"<small>95 %: {escape(shown.interval)}</small>" if shown.interval else ""
    pairs = ""
    if agreeing.exists:
        pairs = f"<p>{show(agreeing, CellKind.PERCENT).text} % of pairs agree, on {units:,} {unit}.</p>"
    return f"""<section class="card"><h3>{escape(str(name))}</h3><p class="hint">{_MEANING[str(name)]}</p>
<p class="big">{shown.text}{interval}</p><p class="says">{escape(meaning(alpha))}</p>{pairs}</section>"""


def meaning(alpha: Value) -> str:
    """What an alpha allows, by Krippendorff's rule, or why there is none."""
    if not alpha.exists:
        return f"No alpha: {alpha.reason}."
    if alpha.number < TENTATIVE:
        return f"Too low to draw conclusions from (below {TENTATIVE:.3f})."
    bar = RELIABLE if alpha.number >= RELIABLE else TENTATIVE
    doubt = f" The interval reaches below {bar:.3f}." if alpha.low < bar else ""
    if alpha.number >= RELIABLE:
        return f"Reliable ({RELIABLE:.3f} or more).{doubt}"
    return f"Good for tentative conclusions ({TENTATIVE:.3f} to {RELIABLE:.3f}).{doubt}"


def matrix_html(table: Table) -> str:
    """Cohen's kappa of every two people, from `people_tables.pair_table`; "" where they are too many or too few."""
    places = {column.key: place for place, column in enumerate(table.columns)}
    pairs = {(str(row[0]), str(row[1])): row for row in table.rows}
    people = sorted({name for pair in pairs for name in pair})
    if not 2 < len(people) <= _MOST_PEOPLE:
        return ""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in people)
    rows = ""
    for one in people:
        cells = "".join(_pair(pairs, places, one, other) for other in people)
        rows += f'<tr><th scope="row">{escape(one)}</th>{cells}</tr>'
    return f"""<p class="caption">Cohen's kappa of every two people, and the steps that both labelled</p>
<div class="heat pairs scroll" role="region" aria-label="Cohen's kappa by pairs" tabindex="0"><table>
<thead><tr><td></td>{head}</tr></thead><tbody>{rows}</tbody></table></div>"""


def _pair(
    pairs: Mapping[tuple[str, str], tuple[object, ...]], places: Mapping[str, int], one: str, other: str
) -> str:
    row = pairs.get((one, other)) or pairs.get((other, one))
    if row is None:
        return "<td></td>"
    kappa, steps = row[places["kappa"]], row[places["steps"]]
    assert isinstance(kappa, Value)
    if not kappa.exists:
        return f'<td class="alone" title="{escape(kappa.reason)}">–<small>{steps:,}</small></td>'
    return f'<td style="--x:{max(0.0, kappa.number):.2f}">{kappa.number:.2f}<small>{steps:,}</small></td>'


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
            return HTMLResponse(
                plain_page("Agreement", choose_html(store, "Agreement", AgreementAddress.PATH), "Relabel")
            )
        user = find_user_of(request)
        if user is None:
            _check_closed(store, address)
        adjudicates = has_right(request, Right.ADJUDICATE)
        # On a server that lets anybody look, the names of people are not for anybody.
        shown = _AgreementView(store, address, adjudicates=adjudicates, named=user is not None)
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


class _AgreementView:
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
<h1>Agreement: {name}</h1><p class="lead">{escape(terms(self.campaign))}. {_LEAD}</p>
{self._form()}{self._told()}{self._figures()}{self._heat()}{self._sections()}</div>"""
        return plain_page(f"Agreement: {name}", body, "Relabel")

    def _form(self) -> str:
        address = self.address
        options = [("", "no other")] + [(str(one.id), one.name) for one in self.others]
        against = _select("Compare with", "against", options, str(address.against or ""))
        annotations = _select("Answers", "exposed", [("", "given blind"), ("1", "all")], address.exposed)
        return f"""<form class="choices" action="{address.PATH}"><input type="hidden" name="campaign"
value="{address.campaign}">{against if self.others else ""}{annotations}<button>Show</button></form>"""

    def _told(self) -> str:
        """How many answers there are, and which are left out."""
        found = self.measured.found
        people, traces = found.queue.last.people, len(found.queue.traces)
        counts = f"{counted(found.annotations, 'answer')} of {counted(len(people), 'person', 'people')}"
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
