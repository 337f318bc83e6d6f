"""A page of a dataset's traces as a table, with problems, gold labels, and an evaluator's verdicts."""

from collections.abc import Mapping, Sequence
from functools import partial

from markupsafe import Markup

from stepsight.app.browse.address import Address
from stepsight.app.browse.facets import FILTERS
from stepsight.app.browse.hits import excerpt, marked_html
from stepsight.app.markup.text import text_html
from stepsight.app.web.html import render
from stepsight.app.web.step_bars import NOTABLE
from stepsight.core.scores import Outputs
from stepsight.storage.browse.browse import BrowseRow

_PREVIEW = 200
# With a search, an excerpt of two lines, so that the hit is visible.
_SEARCHED = 90
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
    ("-position", "reverse file order"),
)
# The title, the order after a first click, and the CSS class. The second group is about an evaluator, the third
# takes its place if outcomes are of redundant errors.
_COLUMNS = (("Trace", "position", "what"), ("Steps", "-steps", "n"), ("Gold", "error", "gold"))
_EVALUATOR_COLUMNS = (("Validity", "validity", "v"), ("First error", "", "m"), ("Change", "-change", "d"))
_REDUNDANCY_COLUMNS = (("Redundancy", "-redundancy", "v"), ("Redundant", "", "m"), _EVALUATOR_COLUMNS[2])


def list_html(
    rows: Sequence[BrowseRow],
    address: Address,
    hits: Mapping[int, tuple[int, str]],
    outputs: Outputs | None,
    on_redundancy: bool = False,
) -> Markup:
    """Render the rows of the list below sortable column headings.

    `hits` maps the ids of traces that have a search hit in a step, but not in the problem, to the number and text
    of that step. `outputs` is the kind of scores that the evaluator gives, or None if the evaluator has not judged
    anything. With `on_redundancy`, outcomes concern redundant errors.
    """
    # An evaluator without redundancy is measured by its validity.
    redundant = on_redundancy and outputs is not None and outputs.has_redundancy
    of_evaluator = _REDUNDANCY_COLUMNS if redundant else _EVALUATOR_COLUMNS
    # An evaluator with judgments of only one mode has no changes.
    changes = any(row.change is not None for row in rows)
    columns = _COLUMNS + (of_evaluator[: None if changes else -1] if outputs else ())
    return render(
        "browse/traces.html",
        columns=[_head(address, *column) for column in columns],
        rows=rows,
        address=address,
        hits=hits,
        outputs=outputs,
        changes=changes,
        notable=NOTABLE,
        redundant=redundant,
        mistakes=FILTERS[on_redundancy]["mistake"].values,
        found="found" if on_redundancy else "",
        problem=partial(_problem, address.text),
        hit=partial(_hit, address.text),
    )


def list_orders(outputs: Outputs | None) -> tuple[tuple[str, str], ...]:
    """Return the available sort orders as (name, title) pairs. Orders by scores that the evaluator does not give
    are left out. `outputs` means the same as for `list_html`."""
    absent = _SCORES if outputs is None else () if outputs.has_redundancy else ("redundancy",)
    return tuple(order for order in _ORDERS if order[0].removeprefix("-") not in absent)


def _head(address: Address, title: str, first: str, kind: str) -> dict[str, str]:
    """Return the template's variables for the heading of a column. `url` sorts the list by the column, and is "" if
    that is impossible. `direction` is the current sort direction."""
    by, direction = first.removeprefix("-"), ""
    url = address.narrowed(sort=first) if by else ""
    if by and address.sort.removeprefix("-") == by:
        descends = address.sort.startswith("-")
        direction = "descending" if descends else "ascending"
        url = address.narrowed(sort=by if descends else f"-{by}")
    return {"title": title, "kind": kind, "by": by, "url": url, "direction": direction}


def _problem(wanted: str, row: BrowseRow) -> Markup:
    return marked_html(text_html(excerpt(row.problem, _SEARCHED if wanted.strip() else _PREVIEW, wanted)), wanted)


def _hit(wanted: str, text: str) -> Markup:
    return marked_html(text_html(excerpt(text, _EXCERPT, wanted)), wanted)
