"""The Browse page: a dataset's traces, filtered and sorted, and the page of a single trace.

The URL determines everything on the page. The page's script changes the URL and requests the content again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from markupsafe import Markup

from stepsight.app.browse import export
from stepsight.app.browse.address import Address
from stepsight.app.browse.evaluator_choice import (
    MOST_BESIDE,
    EvaluatorChoice,
    judge_trace,
    list_choices,
    shown_choices,
)
from stepsight.app.browse.facets import ActiveFilters, distribution_html, metadata_html
from stepsight.app.browse.selection import Selection
from stepsight.app.browse.trace_list import comparison_html, list_html, list_orders
from stepsight.app.browse.trace_view import PeopleLabels, dispute_links, trace_html
from stepsight.app.score.entered import LONGEST_ENTRY, Entered
from stepsight.app.score.files import judgment_files, late_error
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.access import Right, find_user_of, may
from stepsight.app.web.background_cache import BackgroundCache, Pending
from stepsight.app.web.baseline_check import BaselineChecks
from stepsight.app.web.html import EMPTY_STORE, macro, render
from stepsight.app.web.pages import DOWNLOAD_PATIENCE, PageContent, Query, address_page, answer_query
from stepsight.app.web.step_bars import notice_html
from stepsight.core.errors import UserError, counted
from stepsight.core.judgment_record import ByMode
from stepsight.storage.browse.browse import list_fields
from stepsight.storage.browse.filters import LONGEST_TEXT
from stepsight.storage.database.store import NotFoundError, Store
from stepsight.storage.people.blindness import check_traces, hidden_traces
from stepsight.storage.people.users import User
from stepsight.storage.traces.queries import (
    Dataset,
    StoredTrace,
    count_siblings,
    find_dataset,
    get_trace,
    list_datasets,
)
from stepsight.training.evaluate.doubtful import UNRANKED, rank_traces, version_of_doubts
from stepsight.training.evaluate.strength import concluded_record

# The query parameters that determine what is shown of a trace.
_OF_TRACE = ("trace", "evaluator", "against", "other", "beside")
JSON_PATH = "/browse/trace.json"
CSV_PATH = "/browse/trace.csv"
_PER_PAGE = 25
# The title of a page that shows nothing with its own name.
_TITLE = Markup("<h1>Browse</h1>")
# The kinds of error to choose from, for a dataset whose gold has both.
_KINDS = (("", "invalid"), ("redundant", "redundant"))
# The number of datasets listed in the error for an unknown one.
_MOST_NAMES = 10
_LONGEST_VALUE = 160
# Seconds that a trace's page waits for its scores; the page's script requests them if they take longer.
_PATIENCE = 0.4


@dataclass(frozen=True)
class BrowsePages:
    """The Browse page. With `checks`, it names the evaluators that do not beat the trivial baselines."""

    store: Store
    evaluators: Evaluators
    checks: BaselineChecks | None = None
    # One at a time, so that pages stay fast.
    _rankings: BackgroundCache = field(default_factory=lambda: BackgroundCache(at_once=1), init=False)

    def routes(self) -> APIRouter:
        """Build the routes of the page, and its downloads."""
        routes = address_page("Browse", lambda query, request: self.content(query, find_user_of(request)))
        routes.include_router(trace_files(self.store, self.evaluators))
        routes.include_router(export.router(self.store, self.evaluators))
        return routes

    def content(self, query: Query, user: User | None = None) -> PageContent:
        """Render the page for a query.

        Mistakes in the query are reported above whatever can still be shown. `user` is the viewer, or None if
        nobody is logged in.
        """
        return answer_query(Address, query, partial(self._body, user), _failure_html)

    def _body(
        self, user: User | None, address: Address, problems: Sequence[str], errors: list[UserError]
    ) -> Markup:
        trace = _open(self.store, address, errors)
        if trace is not None:
            address = address.changed(dataset=trace.dataset)
            check_traces(self.store, user, trace.trace_id)
            selection = self._select(find_dataset(self.store, trace.dataset), address, errors)
            html = self._trace_html(selection, trace, user)
        else:
            datasets = list_datasets(self.store)
            if not datasets:
                return _TITLE + notice_html(EMPTY_STORE)
            dataset = _find_dataset(datasets, address.dataset)
            address = address.changed(dataset=dataset.name)
            html = self._list_html(self._select(dataset, address, errors), datasets, user)
        return _notices(problems, errors) + html

    def _select(self, dataset: Dataset, address: Address, errors: list[UserError]) -> Selection:
        """Return what an address selects of a dataset, and append the errors found in the address to `errors`.
        Traces that are still being ranked by doubt are in file order."""
        selection, problems = Selection.of(self.store, self.evaluators, dataset, address)
        errors += problems
        if selection.address.order.by != "doubt":
            return selection
        try:
            newest = self._rankings.newest(
                dataset.id,
                version_of_doubts(self.store, dataset),
                lambda: rank_traces(self.store, dataset),
                patience=_PATIENCE,
            )
        except UserError as error:
            errors.append(error)
            return replace(selection, address=selection.address.without("sort"))
        return replace(selection, ranking=UNRANKED if isinstance(newest, Pending) else newest.result)

    def _list_html(self, selection: Selection, datasets: Sequence[Dataset], user: User | None) -> Markup:
        address, about, dataset = selection.address, selection.about, selection.dataset
        outputs = about.outputs if about.judged else None
        page = selection.page(_PER_PAGE)
        conditions = ActiveFilters(address, selection.words, page.on_redundancy)
        hidden = hidden_traces(self.store, user, [row.trace_id for row in page.rows])
        page = replace(page, rows=[row for row in page.rows if row.trace_id not in hidden])
        # Scores in the other mode only would be shown beside verdicts in this mode, which do not exist.
        scored = [row for row in page.rows if (row.online_validity, row.offline_validity) != (None, None)]
        lacks_mode = bool(scored) and all(row.validity is None for row in scored)
        if hidden and not page.rows:
            traces = Markup()
        elif page.rows:
            given = None if lacks_mode else outputs
            other = next((choice for choice in selection.choices if choice.key == address.other), None)
            hits = selection.hits_in_steps(page.rows)
            reasons = selection.ranking.reasons({row.trace_id for row in page.rows}) if selection.ranking else {}
            traces = list_html(page.rows, address, hits, given, page.on_redundancy, other, reasons)
        elif page.total:
            traces = macro("browse/parts.html", "no_page", address)
        else:
            traces = conditions.loosen_html(page.loosened)
        if hidden:
            message = (
                f"You may still have to label {counted(len(hidden), 'trace')} of this page in a blind campaign."
            )
            traces = notice_html(message) + traces
        manages = user is not None and may(user, Right.MANAGE, self.store)
        in_view = [about, *(choice for choice in selection.choices if choice.key == address.other != about.key)]
        metadata = list_fields(selection.store, dataset.id)
        has_field = any(field.name == address.field for field in metadata)
        distribution = distribution_html(selection.distribution, address, selection.words)
        return render(
            "browse/list.html",
            dataset=dataset,
            address=address,
            about=about,
            lacks_mode=lacks_mode,
            baseline_check=self._baseline_check(dataset, in_view, address),
            datasets=[(row.name, f"{row.name} ({row.traces:,})") for row in datasets],
            evaluators=[
                (choice.key, choice.key if choice.judged else f"{choice.key} (not judged)")
                for choice in selection.choices
            ],
            errors="redundant" if page.on_redundancy else "",
            kinds=_KINDS if dataset.errors and dataset.redundant else (),
            orders=list_orders(outputs, labelled=bool(dataset.labelled)),
            ranking=selection.ranking,
            conditions={name: getattr(address, name) for name in ("field", *address.active) if name != "text"}
            | ({} if dataset.errors and dataset.redundant else {"errors": address.errors}),
            label_url=address.url("/annotate/new", trace=None, page=1, beside=()) if manages and page.total else "",
            download=_download(selection, dataset, manages),
            facets=conditions.sidebar_html(
                page.counts,
                selection.choices,
                about,
                metadata_html(address, metadata, selection.values if has_field else None),
                distribution,
            ),
            chips=conditions.chips_html(),
            others=[(choice.key, choice.key) for choice in selection.choices if choice.judged and choice != about],
            comparison=comparison_html(selection.pairs, address, about.key, address.other),
            traces=traces,
            total=page.total,
            shown=len(page.rows),
            first=(address.page - 1) * _PER_PAGE + 1,
            per_page=_PER_PAGE,
        )

    def _trace_html(self, selection: Selection, trace: StoredTrace, user: User | None) -> Markup:
        store, address = self.store, selection.address
        people = PeopleLabels(store, trace.trace_id, user)
        chosen = shown_choices(selection.choices, address.shown)
        judgments = judge_trace(store, self.evaluators, chosen, trace, _PATIENCE)
        place = selection.place(trace.trace_id)
        is_short = sum(map(len, trace.substeps)) <= LONGEST_ENTRY
        token = (
            Entered.of(trace, [judgment.name for judgment in judgments if judgment.runs]).token()
            if is_short
            else None
        )
        return render(
            "browse/opened.html",
            trace=trace,
            address=address,
            place=place,
            # The link back leads to the list's page with this trace, however far the visitor has moved on.
            page=address.page if place.number is None else (place.number - 1) // _PER_PAGE + 1,
            conditions=[link.text for link in selection.conditions.links],
            reason=selection.ranking.reasons([trace.trace_id]).get(trace.trace_id) if selection.ranking else "",
            choices=selection.choices,
            baseline_check=self._baseline_check(selection.dataset, chosen, address),
            chosen={choice.key for choice in chosen},
            full=len(chosen) >= MOST_BESIDE,
            query={name: value for name, value in address.query().items() if name != "beside"},
            score_url=f"/?{urlencode({'s': token})}" if token else "",
            json_url=file_address(JSON_PATH, address.changed(trace=trace.trace_id)),
            csv_url=file_address(CSV_PATH, address.changed(trace=trace.trace_id)),
            judged=trace_html(
                trace,
                judgments,
                address.text,
                people.labels,
                dispute_links(store, trace, user),
            ),
            people=people,
            siblings=count_siblings(store, trace),
            siblings_url=Address(dataset=trace.dataset, text=trace.problem[:LONGEST_TEXT]).url(),
            notes=[
                (key.replace("_", " "), value)
                for key, value in trace.meta.items()
                if isinstance(value, str) and 0 < len(value) <= _LONGEST_VALUE
            ],
        )

    def _baseline_check(self, dataset: Dataset, shown: Sequence[EvaluatorChoice], address: Address) -> Markup:
        """Render a line naming the shown evaluators that do not beat the trivial baselines on the dataset."""
        rows = [choice.row for choice in shown if choice.judged and choice.row is not None]
        return self.checks.line(dataset, rows, address.mode) if self.checks is not None and rows else Markup()


def _failure_html(error: UserError, problems: Sequence[str]) -> Markup:
    # The traces of a deleted dataset are deleted too.
    return _TITLE + _notices(problems, [error]) + Markup('<p><a href="/browse">Back to all traces</a></p>')


def _notices(problems: Sequence[str], errors: Sequence[UserError]) -> Markup:
    return Markup().join(map(notice_html, [*problems, *(str(error.without_options()) for error in errors)]))


def _open(store: Store, address: Address, errors: list[UserError]) -> StoredTrace | None:
    """Return the trace that an address names, or None if it names none. If the trace does not exist, append an
    error to `errors` and return None."""
    try:
        return None if address.trace is None else get_trace(store, address.trace)
    except NotFoundError as error:
        errors.append(error)
        return None


def _find_dataset(datasets: Sequence[Dataset], name: str) -> Dataset:
    """Return the dataset with this name, or the first dataset if the name is "". Raises `NotFoundError` if no
    dataset has this name."""
    matches = [dataset for dataset in datasets if not name or dataset.name == name]
    if not matches:
        held = ", ".join(dataset.name for dataset in datasets[:_MOST_NAMES])
        raise NotFoundError(f"There is no dataset {name!r:.80}.", f"The store holds {held}.")
    return matches[0]


def _download(selection: Selection, dataset: Dataset, manages: bool) -> dict[str, object]:
    """Return the template's variables for the form that downloads the list."""
    query = selection.address.query(trace=None, page=1, beside=())
    judged = [(choice.key, choice.key) for choice in selection.choices if choice.judged]
    return {
        "query": query,
        "contents": export.contents_of(manages=manages),
        "evaluators": [("", "all evaluators"), *judged],
    }


def trace_files(store: Store, evaluators: Evaluators) -> APIRouter:
    """Build the routes that return a trace with its judgments as JSON and CSV. They take the same query as the page
    of a single trace."""

    def read(request: Request) -> tuple[str, StoredTrace, list[ByMode]]:
        query = request.query_params
        address = Address.exact({key: query.getlist(key) for key in query})
        if address.trace is None:
            raise UserError("The address names no trace.", "Follow the link on a trace's page.")
        trace = get_trace(store, address.trace)
        check_traces(store, find_user_of(request), trace.trace_id)
        shown = shown_choices(list_choices(store, evaluators, trace.dataset_id), address.shown)
        judgments: list[ByMode] = []
        for choice, answer in zip(
            shown, judge_trace(store, evaluators, shown, trace, DOWNLOAD_PATIENCE), strict=True
        ):
            if answer.waits:
                raise late_error()
            evaluator = choice.row or evaluators.about(choice.key)
            records = {
                judgment: concluded_record(judgment, evaluator, answer.thresholds, answer.name)
                for judgment in answer.judgments
            }
            judgments.append({mode: records[judgment] for mode, judgment in answer.by_mode.items()})
        return f"trace-{trace.trace_id}", trace, judgments

    return judgment_files(JSON_PATH, CSV_PATH, Right.READ, read)


def file_address(path: str, address: Address) -> str:
    """Return the URL of a download of the trace that an address names, for use in an HTML attribute."""
    return Address(**{name: getattr(address, name) for name in _OF_TRACE}).url(path)
