"""A page of a dataset's traces as a table: problem, gold, and what an evaluator says."""

from collections.abc import Mapping, Sequence
from html import escape

from stepsight.app.browse.address import Address
from stepsight.app.browse.facets import MISTAKES
from stepsight.app.browse.hits import excerpt, marked_html
from stepsight.app.web.judged import NOTABLE
from stepsight.app.web.text import text_html
from stepsight.core.scores import Outputs
from stepsight.storage.browse.browse import BrowseRow

_PREVIEW = 200
# Of a problem that is searched: what two lines show, so that the hit is among it.
_FOUND = 90
_EXCERPT = 140

_SCORES = ("validity", "redundancy", "change")
_ORDERS = (
    ("", "as in the file"),
    ("validity", "least valid first"),
    ("-validity", "most valid first"),
    ("-redundancy", "most redundant first"),
    ("redundancy", "least redundant first"),
    ("-change", "largest change first"),
    ("change", "smallest change first"),
    ("error", "earliest error first"),
    ("-error", "latest error first"),
    ("-steps", "longest first"),
    ("steps", "shortest first"),
    ("-position", "last of the file first"),
)
# Title, the order that a click on it asks for first, and a class. The second lot is about an evaluator.
_COLUMNS = (("Trace", "position", "what"), ("Steps", "-steps", "n"), ("Gold", "error", "gold"))
_SAID_COLUMNS = (("Validity", "validity", "v"), ("First error", "", "m"), ("Change", "-change", "d"))


def list_html(
    rows: Sequence[BrowseRow], address: Address, steps: Mapping[int, tuple[int, str]], outputs: Outputs | None
) -> str:
    """The rows under heads that sort. `steps` gives, by trace id, the number and text of a step that holds what is
    searched for, where the problem does not; `outputs`, what kind of thing the evaluator says, None where it has
    judged nothing."""
    # An evaluator that was asked in one mode alone has no changes.
    said = _SAID_COLUMNS if any(row.change is not None for row in rows) else _SAID_COLUMNS[:-1]
    heads = "".join(_head(address, *column) for column in _COLUMNS + (said if outputs else ()))
    body = "".join(_row(row, address, steps.get(row.trace_id), outputs, len(said)) for row in rows)
    return f"""<table class="traces"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"""


def _head(address: Address, title: str, first: str, kind: str) -> str:
    if not first:
        return f'<th scope="col" class="{kind}">{title}</th>'
    by = first.removeprefix("-")
    if address.sort.removeprefix("-") != by:
        return f'<th scope="col" class="{kind}">{_sort_link(address, first, title, "")}</th>'
    descends = address.sort.startswith("-")
    flipped = by if descends else f"-{by}"
    arrow = f'<span aria-hidden="true"> {"↓" if descends else "↑"}</span>'
    direction = "descending" if descends else "ascending"
    link = _sort_link(address, flipped, title, arrow)
    return f'<th scope="col" class="{kind}" aria-sort="{direction}">{link}</th>'


def _sort_link(address: Address, sort: str, title: str, arrow: str) -> str:
    href = address.narrowed(sort=sort)
    return f'<a data-go data-stay data-key="sort {sort.removeprefix("-")}" href="{href}">{title}{arrow}</a>'


def orders(outputs: Outputs | None) -> tuple[tuple[str, str], ...]:
    """The orders that there are, those by an evaluator's scores where it has such; `outputs` as in `list_html`."""
    passed = _SCORES if outputs is None else () if outputs.may_say_redundant else ("redundancy",)
    return tuple(order for order in _ORDERS if order[0].removeprefix("-") not in passed)


def _row(
    row: BrowseRow, address: Address, step: tuple[int, str] | None, outputs: Outputs | None, cells: int
) -> str:
    shown = excerpt(row.problem, _FOUND if address.text.strip() else _PREVIEW, address.text)
    problem = marked_html(text_html(shown), address.text)
    group = f" · {escape(row.group)}" if row.group else ""
    return f"""<tr><td class="what"><a class="open" data-go data-key="trace {row.trace_id}"
href="{address.url(trace=row.trace_id)}">{problem}</a>{_hit(step, address.text)}
<span class="id">{escape(row.id)}{group}</span></td>
<td class="n">{row.n_steps}<span class="only-narrow"> {"step" if row.n_steps == 1 else "steps"}</span></td>
<td class="gold">{_gold(row)}</td>{"".join(_said(row, outputs)[:cells]) if outputs else ""}</tr>"""


def _said(row: BrowseRow, outputs: Outputs) -> list[str]:
    """A cell for each of the columns about an evaluator."""
    change = "" if row.change is None else f"{row.change:.2f}"
    notable = " notable" if row.change is not None and row.change >= NOTABLE else ""
    return [
        f'<td class="v">{_validity(row, outputs)}</td>',
        f'<td class="m">{_mistake(row)}</td>',
        f'<td class="d{notable}">{change}</td>',
    ]


def _hit(step: tuple[int, str] | None, wanted: str) -> str:
    if step is None:
        return ""
    number, text = step
    shown = marked_html(text_html(excerpt(text, _EXCERPT, wanted)), wanted)
    return f'<span class="hit">step {number}: {shown}</span>'


def _gold(row: BrowseRow) -> str:
    if row.first_error is not None:
        return f'<span class="bad">✕ step {row.first_error + 1}</span>'
    return "✓ no error" if row.has_gold else '<span class="none">no gold</span>'


def _validity(row: BrowseRow, outputs: Outputs) -> str:
    """What is said of the solution: online over offline validity; a verdict or a number where that is all."""
    if row.validity is not None and outputs == Outputs.VERDICT:
        return "✓ valid" if row.validity else '<span class="bad">✕ not valid</span>'
    if row.validity is not None and outputs == Outputs.SOLUTION:
        return f'<span class="one">{row.validity:.3g}</span>'
    pairs = [("online", row.online_validity), ("offline", row.offline_validity)]
    bars = "".join(_bar(mode, value) for mode, value in pairs if value is not None)
    return bars or '<span class="none">–</span>'


def _bar(mode: str, value: float) -> str:
    label = f"{mode} validity {value:.2f}"
    return f"""<span class="mini" title="{label}"><span class="mode">{mode}</span>
<span class="bar" role="img" aria-label="{label}"><i class="neg" style="width:{100 - 100 * value:.0f}%"></i>
<i class="pos" style="width:{100 * value:.0f}%"></i></span><span class="num">{value:.2f}</span></span>"""


def _mistake(row: BrowseRow) -> str:
    if row.mistake not in MISTAKES:
        return '<span class="none">–</span>'
    place = "" if row.found_error is None else f" {row.found_error + 1}"
    if row.mistake == "wrong-step":
        return f'<span class="off-step">wrong step{place}</span>'
    return f'<span class="{row.mistake}">{MISTAKES[row.mistake]}</span>'
