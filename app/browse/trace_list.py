"""A page of a dataset's traces as a table, with problems, gold labels, and an evaluator's verdicts, and the table
above it that holds two evaluators' outcomes against each other."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from stepsight.app.browse.address import Address
from stepsight.app.browse.evaluator_choice import EvaluatorChoice
from stepsight.app.browse.facets import FILTERS, FilterLink
from stepsight.app.markup.marking import excerpt, marked_html
from stepsight.app.markup.text import text_html
from stepsight.app.web.html import render
from stepsight.app.web.step_bars import NOTABLE
from stepsight.core.metrics.first_error import Outcome
from stepsight.core.scores import Outputs
from stepsight.storage.browse.browse import BrowseRow
from stepsight.storage.browse.outcomes import OutcomePairs

_PREVIEW = 200
# In search results, an excerpt of two lines, so that the match is visible.
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
    ("doubt", "most doubtful gold first"),
    ("error", "earliest error first"),
    ("-error", "latest error first"),
    ("-steps", "longest first"),
    ("steps", "shortest first"),
    ("-position", "reverse file order"),
)
# The title, the sort order after the first click, and the CSS class. The second group is about an evaluator; the
# third replaces it if outcomes concern redundant errors.
_COLUMNS = (("Trace", "position", "what"), ("Steps", "-steps", "n"), ("Gold", "error", "gold"))
_EVALUATOR_COLUMNS = (("Validity", "validity", "v"), ("First error", "", "m"), ("Change", "-change", "d"))
_REDUNDANCY_COLUMNS = (("Redundancy", "-redundancy", "v"), ("Redundant", "", "m"), _EVALUATOR_COLUMNS[2])


def list_html(
    rows: Sequence[BrowseRow],
    address: Address,
    hits: Mapping[int, tuple[int, str]],
    outputs: Outputs | None,
    on_redundancy: bool = False,
    other: EvaluatorChoice | None = None,
    reasons: Mapping[int, str] | None = None,
) -> Markup:
    """Render the rows of the list below sortable column headings.

    `hits` maps the ids of traces that have a search hit in a step, but not in the problem, to the number and text
    of that step. `outputs` is the kind of scores that the evaluator gives, or None if the evaluator has not judged
    anything. With `on_redundancy`, outcomes concern redundant errors. `other` is the evaluator that it is compared
    with. `reasons` maps the ids of traces to the reasons against their gold.
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
        reasons=reasons or {},
        outputs=outputs,
        other=other,
        changes=changes,
        notable=NOTABLE,
        redundant=redundant,
        mistakes=FILTERS[on_redundancy]["mistake"].values,
        found="found" if on_redundancy else "",
        problem=lambda row: _excerpt_html(row.problem, _SEARCHED if address.text else _PREVIEW, address),
        hit=lambda text: _excerpt_html(text, _EXCERPT, address),
    )


def list_orders(outputs: Outputs | None, *, labelled: bool) -> tuple[tuple[str, str], ...]:
    """Return the available sort orders as (name, title) pairs. Orders by scores that the evaluator does not give
    are left out, and so is the order by doubt unless the dataset is `labelled`. `outputs` means the same as for
    `list_html`."""
    absent = _SCORES if outputs is None else () if outputs.has_redundancy else ("redundancy",)
    absent = absent if labelled else (*absent, "doubt")
    return tuple(order for order in _ORDERS if order[0].removeprefix("-") not in absent)


def _head(address: Address, title: str, first: str, kind: str) -> dict[str, str]:
    """Return the template's variables for the heading of a column. `url` sorts the list by the column, and is "" if
    that is impossible. `direction` is the current sort direction."""
    column, direction = first.removeprefix("-"), ""
    url = address.narrowed(sort=first) if column else ""
    if column and address.sort.removeprefix("-") == column:
        descends = address.sort.startswith("-")
        direction = "descending" if descends else "ascending"
        url = address.narrowed(sort=column if descends else f"-{column}")
    return {"title": title, "kind": kind, "by": column, "url": url, "direction": direction}


def _excerpt_html(text: str, length: int, address: Address) -> Markup:
    return marked_html(text_html(excerpt(text, length, address.text)), address.text)


# The possible outcomes in words, for first errors and for redundancy, with and without an error in the gold labels.
_CLEAN = ((Outcome.RIGHT, "right"), (Outcome.FALSE_ALARM, "false alarm"))
_OUTCOMES: Mapping[bool, Mapping[bool, tuple[tuple[Outcome, str], ...]]] = {
    False: {
        True: ((Outcome.RIGHT, "right step"), (Outcome.WRONG_STEP, "another step"), (Outcome.MISSED, "missed")),
        False: _CLEAN,
    },
    True: {True: ((Outcome.RIGHT, "found"), (Outcome.MISSED, "missed")), False: _CLEAN},
}
# The condition on gold and its title.
_TITLES = {
    False: {True: ("error", "Gold has an error"), False: ("clean", "Gold has no error")},
    True: {
        True: ("redundant", "Gold has a redundant step"),
        False: ("not-redundant", "Gold has no redundant step"),
    },
}
_SUBJECTS = {False: "First errors", True: "Redundant solutions"}
_UNKNOWN = {
    False: "the first error is unknown to gold or to one of the two",
    True: "whether a step is redundant is unknown to gold or to one of the two",
}


def comparison_html(pairs: OutcomePairs | None, address: Address, first: str, second: str) -> Markup:
    """Render a table that compares the outcomes of the evaluators `first` and `second`. If the address names no
    second evaluator, `pairs` is None and the result is empty markup."""
    if pairs is None:
        return Markup()
    words = {True: "right", False: "wrong"}
    both = ((True, False), (False, True), (True, True), (False, False))
    return render(
        "browse/comparison.html",
        subject=_SUBJECTS[pairs.on_redundancy],
        first=first,
        second=second,
        sums=[
            (one, other, _cell(pairs.count(one, other), address, "any", words[one], words[other]))
            for one, other in both
        ],
        tables=[_table(pairs, address, error) for error in (True, False)],
        unknown=pairs.unknown,
        why_unknown=_UNKNOWN[pairs.on_redundancy],
        forgotten=address.without("other", "other_mistake", "page").narrowed(),
    )


def _table(pairs: OutcomePairs, address: Address, error: bool) -> dict[str, object]:
    gold, title = _TITLES[pairs.on_redundancy][error]
    outcomes = _OUTCOMES[pairs.on_redundancy][error]
    rows = [
        (
            words,
            [
                _cell(pairs.count(outcome, other, (error,)), address, gold, outcome.value, other.value)
                for other, _ in outcomes
            ],
        )
        for outcome, words in outcomes
    ]
    return {"title": title, "columns": [words for _, words in outcomes], "rows": rows}


def _cell(count: int, address: Address, gold: str, first: str, second: str) -> FilterLink:
    conditions = {"gold": gold, "mistake": first, "other_mistake": second}
    chosen = all(getattr(address, name) == value for name, value in conditions.items())
    return FilterLink("", address.narrowed(**conditions), count, chosen)
