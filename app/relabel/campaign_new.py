"""`/relabel/new`: making a campaign of the traces that a Browse address selects."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, TypeVar
from urllib.parse import urlencode

from stepsight.app.browse.address import Address
from stepsight.app.browse.facets import condition_words
from stepsight.app.browse.selection import Selection
from stepsight.app.relabel.adjudicate_step import INERT
from stepsight.app.relabel.campaign_summary import counted
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.page_address import Query, read_query
from stepsight.core.errors import UserError
from stepsight.storage.browse.browse import list_matching
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import judges_of
from stepsight.storage.labelling.plan import MOST_OVERLAP, CampaignPlan, CampaignView, Ordering, Shows
from stepsight.storage.traces.queries import Dataset, find_dataset, list_datasets

Number = TypeVar("Number", int, float)
Choices = Sequence[tuple[str, str]]

_CHOICES: tuple[tuple[str, str, Choices], ...] = (
    ("view", "View", (("whole", "the whole trace"), ("stepwise", "step by step, the next one after each label"))),
    ("after_error", "Steps after the first error", (("yes", "are labelled too"), ("no", "are not labelled"))),
    (
        "shows",
        "Beside the text, before submission",
        (("nothing", "nothing: blind"), ("scores", "an evaluator’s scores")),
    ),
    (
        "ordering",
        "Order",
        (
            ("random", "random"),
            ("file", "as in the file"),
            ("disagreement", "most disputed by the evaluators first"),
            ("change", "most changed by later steps first"),
        ),
    ),
)
_REST = ("", "the rest of the dataset, or the gallery")

_GUIDELINE = """Judge every step by itself, given the problem and the steps before it.

neg: the step is wrong: a wrong fact, a wrong calculation, or a conclusion that does not follow.
neu: the step is right, but the solution would lose nothing without it.
pos: the step is right and brings the solution forward.
unsure: you cannot tell. Say why in a comment.

A step that is right by itself but builds on an earlier mistake is not wrong for that."""


def form_html(store: Store, evaluators: Evaluators, query: Query) -> str:
    """The page: the traces that the query of a Browse page selects, and what is to be asked of them."""
    datasets = list_datasets(store)
    if not datasets:
        raise UserError("The store is empty.", "Import a file: stepsight import KIND PATH")
    address, _ = Address.read(query)
    dataset = find_dataset(store, address.dataset) if address.dataset else datasets[0]
    where = _where(store, evaluators, dataset, address)
    chosen = _traces(store, datasets, dataset, address, where)
    return f"""<div id="relabel"><p class="pager"><a href="/relabel">Campaigns</a></p><h1>New campaign</h1>
<div class="told"></div><form class="fields" {INERT} data-post="/relabel/campaigns">{chosen}
<label>Name <input name="name" required maxlength="200" autocomplete="off"></label>
<label class="wide">Guideline: what people are asked to do
<textarea name="guideline" rows="9" required>{_GUIDELINE}</textarea></label>
{_terms(store, dataset)}<p class="wide"><button class="button primary">Make the campaign</button></p>
<p class="hint wide">It is frozen then: traces that come into the dataset later do not come into the campaign.</p>
</form></div>"""


def read_plan(store: Store, evaluators: Evaluators, fields: Mapping[str, Any]) -> CampaignPlan:
    """The plan that a filled-in form describes. Raises `UserError` naming the field that makes no sense."""
    address, problems = Address.read(read_query(str(fields.get("traces", ""))))
    if problems:
        raise UserError(problems[0])
    name = str(fields.get("dataset", "")) or address.dataset
    dataset = find_dataset(store, name)
    return CampaignPlan(
        name=str(fields.get("name", "")).strip(),
        dataset=dataset.name,
        guideline=str(fields.get("guideline", "")).strip(),
        where=_where(store, evaluators, dataset, address),
        overlap=_number(int, fields, "overlap", 1),
        after_error=fields.get("after_error", "yes") == "yes",
        view=CampaignView(_word(fields, "view", tuple(CampaignView), CampaignView.WHOLE)),
        shows=Shows(_word(fields, "shows", tuple(Shows), Shows.NOTHING)),
        evaluator=_number(int, fields, "evaluator", 0) or None,
        ordering=Ordering(_word(fields, "ordering", tuple(Ordering), Ordering.RANDOM)),
        random_share=_number(float, fields, "random_share", 20.0) / 100,
        gold_rate=_number(float, fields, "gold_rate", 0.0) / 100,
        gold_dataset=str(fields.get("gold_dataset", "")) or None,
    )


def _where(store: Store, evaluators: Evaluators, dataset: Dataset, address: Address) -> TraceFilter:
    """The conditions of a Browse address. Raises `UserError` where it names an evaluator that is not there."""
    selection, problems = Selection.of(store, evaluators, dataset.id, address)
    if problems:
        raise UserError(problems[0], "Choose the traces in Browse again.")
    return selection.where.pruned()


def _traces(
    store: Store, datasets: Sequence[Dataset], dataset: Dataset, address: Address, where: TraceFilter
) -> str:
    """Which traces are meant: a dataset to choose, or the conditions that came with the address."""
    browse = address.narrowed(dataset=dataset.name)
    if not address.active:
        names = _options([(one.name, f"{one.name} ({one.traces:,})") for one in datasets], dataset.name)
        return f"""<label>Traces of <select name="dataset">{names}</select></label>
<p class="hint wide">All of them. To take some, <a href="{browse}">choose them in Browse</a> and press
“Label these traces” there.</p>"""
    words = " · ".join(condition_words(address, name) for name in address.active)
    traces = escape(urlencode(address.query(dataset=dataset.name, trace=None, page=1), doseq=True))
    count = counted(len(list_matching(store, dataset.id, where)), "trace")
    return f"""<input type="hidden" name="traces" value="{traces}"><p class="wide chosen"><strong>{count} of
{escape(dataset.name)}</strong> {escape(words)} <a href="{browse}">Choose others</a></p>"""


def _terms(store: Store, dataset: Dataset) -> str:
    """What is asked of whom, and in which order."""
    judges = [(str(row.id), row.name) for row in judges_of(store, dataset.id)]
    golds = [(one.name, one.name) for one in list_datasets(store)]
    return "".join(
        (
            _input("People per trace", "overlap", 2, least=1, most=MOST_OVERLAP),
            *(_select(label, name, choices) for name, label, choices in _CHOICES),
            _select("Evaluator, where scores or changes are meant", "evaluator", (("", "none"), *judges)),
            _input("Random places in an order by scores, in %", "random_share", 20, most=100),
            _input("Hidden gold items, in %", "gold_rate", 0, most=50),
            _select("Hidden gold items come from", "gold_dataset", (_REST, *golds)),
        )
    )


def _input(label: str, name: str, value: int, *, least: int = 0, most: int) -> str:
    return f"""<label>{label} <input name="{name}" type="number" min="{least}" max="{most}" step="any"
value="{value}"></label>"""


def _select(label: str, name: str, choices: Choices) -> str:
    return f'<label>{label} <select name="{name}">{_options(choices, choices[0][0])}</select></label>'


def _options(choices: Choices, chosen: str) -> str:
    return "".join(
        f'<option value="{escape(value)}"{" selected" if value == chosen else ""}>{escape(label)}</option>'
        for value, label in choices
    )


def _number(kind: type[Number], fields: Mapping[str, Any], name: str, otherwise: Number) -> Number:
    found = fields.get(name, "")
    if found in ("", None):
        return otherwise
    try:
        return kind(found)
    except (TypeError, ValueError, OverflowError):
        what = "a whole number" if kind is int else "a number"
        raise UserError(f"{name.replace('_', ' ')} is {found!r:.40}.", f"Expected {what}.") from None


def _word(fields: Mapping[str, Any], name: str, words: tuple[str, ...], otherwise: str) -> str:
    found = str(fields.get(name, otherwise))
    if found not in words:
        raise UserError(f"{name.replace('_', ' ')} is {found!r:.40}.", f"Expected {', '.join(words)}.")
    return found
