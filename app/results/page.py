"""The Results page: evaluators by datasets, and everything that is measured on one dataset.

What it shows follows from the address. What is not measured yet is asked for again by the page's script.
"""

from collections.abc import Iterable, Sequence
from html import escape
from urllib.parse import urlencode

import gradio as gr
from plotly import __version__ as plotly_version

from stepsight.app.browse.offered import offered_evaluators
from stepsight.app.results.computations import Pending
from stepsight.app.results.dataset_results import Links, file_links, sections_html
from stepsight.app.results.measured import Measured, Results
from stepsight.app.results.overview import Overview, gather, overview_html
from stepsight.app.results.results_address import ResultsAddress, read_address
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.gradio_page import DIRECT, QUERY, block, header
from stepsight.app.web.judged import notice_html
from stepsight.app.web.page_address import Query, read_query
from stepsight.core.errors import UserError
from stepsight.core.metrics.baselines import BASELINES
from stepsight.core.metrics.bootstrap import DRAWS
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import judges_of, list_evaluators
from stepsight.storage.traces.queries import Dataset, find_dataset, list_datasets
from stepsight.training.evaluate.evaluation import MODES
from stepsight.training.report.dataset import lead
from stepsight.training.report.results import PROTOCOL

PLOTLY = "/stepsight/plotly/plotly.min.js"

_LEAD = (
    "What evaluators reach on the datasets of this store, by ReasonEval's protocol, beside baselines that read"
    " nothing of the mathematics, and what the paper prints. A dataset's name leads to its tables and figures."
)

_KEY = (
    "Below a figure stand its interval; its difference to the chosen reference, paired trace by trace; what the"
    " paper prints of it; and a mark where it does not clear the best baseline by more than the interval of the"
    " difference."
)


def build(store: Store, evaluators: Evaluators, results: Results) -> None:
    """Lay the page out within an open `gr.Blocks`."""
    header("Results")
    with gr.Column(elem_classes="page"):
        content = block(elem_id="results", value='<p class="hint">Loading</p>')
        go = gr.Button("Show this address", elem_id="results-go", visible="hidden")

    def show(query: str) -> str:
        return results_html(store, evaluators, results, read_query(query))

    query = gr.Textbox(visible=False)
    gr.on(None, show, query, content, js=QUERY, **DIRECT, show_progress="hidden")
    go.click(show, query, content, js=QUERY, trigger_mode="always_last", **DIRECT, show_progress="hidden")


def results_html(store: Store, evaluators: Evaluators, results: Results, query: Query) -> str:
    """The page that a query string asks for; a mistake in it becomes a notice above what can be shown."""
    address, problems = read_address(query)
    notice = "".join(map(notice_html, problems))
    try:
        datasets = list_datasets(store)
        if not datasets:
            return f"<h1>Results</h1>{notice_html('The store is empty. Import a file: stepsight import KIND PATH')}"
        if address.dataset:
            body = _dataset(store, evaluators, results, datasets, address)
        else:
            body = _overview(store, results, datasets, address)
        return f'<div data-plotly="{PLOTLY}?v={plotly_version}">{notice}{body}</div>'
    except UserError as error:
        back = '<p><a href="/results">Back to all datasets</a></p>'
        return f"<h1>Results</h1>{notice}{notice_html(str(error))}{back}"


def _overview(store: Store, results: Results, datasets: Sequence[Dataset], address: ResultsAddress) -> str:
    figure, mode = address.chosen_figure, address.chosen_mode(MODES)
    names = dict.fromkeys([*(one.name for one in list_evaluators(store)), *BASELINES])
    form = _form(
        _select("Figure", "figure", PROTOCOL.items(), figure)
        + _select("Mode", "mode", _same(MODES), mode)
        + _select("Difference to", "against", [("", "none"), *_same(names)], address.against)
    )
    found = gather(results, datasets, mode, address.against)
    files = file_links("overview", address.query(figure=figure, mode=mode))
    table = overview_html(found.places, figure, mode, address.against, files) if found.places else ""
    table += f'<p class="hint">{_KEY}</p>' if found.places else ""
    told = _paragraphs([*found.warnings, *found.told])
    return f'<h1>Results</h1><p class="lead">{_LEAD}</p>{form}{_waiting(found)}{table}{told}'


def _waiting(found: Overview) -> str:
    if not found.waiting:
        return ""
    others = ", ".join(dataset.name for dataset in found.waiting[1:])
    return _measuring(f"Measuring {found.waiting[0].name}.{f' Still to come: {others}.' if others else ''}")


def _dataset(
    store: Store, evaluators: Evaluators, results: Results, datasets: Sequence[Dataset], address: ResultsAddress
) -> str:
    dataset = find_dataset(store, address.dataset)
    title = f"<h1>{escape(dataset.name)}</h1>"
    choice = _select("Dataset", "dataset", _same(one.name for one in datasets), dataset.name)
    found = results.measure(dataset, address.group)
    if isinstance(found, Pending):
        return title + _form(choice) + _measuring(_what(dataset, len(judges_of(store, dataset.id))))
    if not found.has_gold:
        raise UserError(
            f"{dataset.name} has no gold to measure against.", "Import a file with labels into a dataset."
        )
    mode, errors = address.chosen_mode(found.modes), address.chosen_errors(found)
    excerpt = results.excerpt(found, mode, errors)
    if isinstance(excerpt, Pending):
        body, classes = _measuring("Measured. Tables and figures are on their way."), [address.evaluator]
    else:
        classes = list(excerpt.classes)
        evaluator = address.evaluator if address.evaluator in classes else "".join(classes[:1])
        query = address.query(mode=mode, errors=errors, evaluator=evaluator)
        links = Links(dataset.name, address.group, mode, _keys(store, evaluators, found))
        body = sections_html(excerpt.shown(evaluator), links, query)
    choice += _select("Mode", "mode", _same(found.modes), mode)
    choice += _select("Errors", "errors", _same(found.kinds), errors)
    choice += _several("Group", "group", [("", "all"), *_same(found.groups)], address.group)
    choice += _several("Classes of", "evaluator", _same(classes), address.evaluator)
    told = f'<p class="lead">{escape(lead(found.evaluation))}</p>{_links(dataset, address)}'
    return title + told + _form(choice) + notice_html(found.evaluation.warning) + _unjudged(found) + body


def _keys(store: Store, evaluators: Evaluators, found: Measured) -> dict[str, str]:
    """By their names in the tables, the names that Browse knows evaluators by."""
    offers = offered_evaluators(store, evaluators, found.evaluation.dataset.id)
    by_id = {offer.id: offer.key for offer in offers if offer.judged}
    return {judge.name: by_id[judge.id] for judge in found.judges if judge.id in by_id}


def _what(dataset: Dataset, judges: int) -> str:
    return (
        f"Measuring {judges:,} {'evaluator' if judges == 1 else 'evaluators'} and {len(BASELINES)} baselines on"
        f" {dataset.traces:,} traces, each on {DRAWS:,} resamples. What they reach appears here."
    )


def _links(dataset: Dataset, address: ResultsAddress) -> str:
    asked = {"dataset": dataset.name} | ({"group": address.group} if address.group else {})
    browse, report = (escape(f"{path}?{urlencode(asked)}") for path in ("/browse", "/results/report"))
    return f"""<p class="out"><a data-go href="/results">All datasets</a><a href="{browse}">Browse its traces</a>
<a href="{report}" download>Download the whole report</a></p>"""


def _unjudged(found: Measured) -> str:
    if found.judges:
        return ""
    name = found.evaluation.dataset.name
    return notice_html(
        f"No evaluator has judged {name}: the baselines stand alone. Score it on the Jobs page, or with: stepsight"
        f" score {name} --evaluator mini-bidir --mode hindsight"
    )


def _form(choices: str) -> str:
    return f'<form class="choices" data-go="/results" action="/results">{choices}<button>Show</button></form>'


def _several(label: str, name: str, options: Sequence[tuple[str, str]], chosen: str) -> str:
    return _select(label, name, options, chosen) if len(options) > 1 else ""


def _select(label: str, name: str, options: Iterable[tuple[str, str]], chosen: str) -> str:
    made = "".join(
        f'<option value="{escape(value)}"{" selected" if value == chosen else ""}>{escape(text)}</option>'
        for value, text in options
    )
    return f'<label>{label} <select name="{name}">{made}</select></label>'


def _same(names: Iterable[str]) -> list[tuple[str, str]]:
    return [(str(name), str(name)) for name in names]


def _measuring(told: str) -> str:
    """What is told while something is computed: as long as it is there the page's script asks again."""
    return f'<p class="measuring" role="status" data-again>{escape(told)}</p>'


def _paragraphs(told: Iterable[str]) -> str:
    return "".join(f'<p class="hint">{escape(text)}</p>' for text in told)
