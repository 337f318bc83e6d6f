"""The page of doubtful labels: the gold labels of a dataset, ranked by the evidence against them.

`/results/doubtful?dataset=NAME` shows a page of the ranking, and `/results/doubtful/file` gives all of it.
"""

import json
from collections.abc import Callable
from typing import Any, ClassVar

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from stepsight.app.access.rights import RequiresRight, Right, find_user_of, has_right, note_shown
from stepsight.app.results.doubtful_rows import label_rows
from stepsight.app.web.background_cache import LARGEST, BackgroundCache, Pending, Snapshot
from stepsight.app.web.html import EMPTY_STORE, render
from stepsight.app.web.page_query import PageNumber, PageQuery, Query
from stepsight.app.web.page_route import PageContent, address_page
from stepsight.core.errors import UserError
from stepsight.storage.database.store import Store, UnavailableError
from stepsight.storage.traces.queries import Dataset, find_dataset, list_datasets
from stepsight.training.evaluate.doubtful import LabelRanking, find_jurors, rank_labels, ranking_version

_PER_PAGE = 20
# Bytes of a label in memory.
_LABEL = 1_500
# Seconds that the page waits for a ranking, and that the file does, which the page has shown already.
_PATIENCE, _FILE_PATIENCE = 0.4, 60.0
# The template's variables of a page without a ranking.
_NOTHING: dict[str, Any] = {
    "message": "",
    "waiting": False,
    "datasets": (),
    "evaluators": (),
    "ranking": None,
    "mode": "",
}


class DoubtfulAddress(PageQuery):
    """The query of the page. `evaluator` names the evaluator whose judgments are read, or is "" for all; `mode` is
    "" for the usual one."""

    PATH: ClassVar[str] = "/results/doubtful"

    dataset: str = ""
    evaluator: str = ""
    mode: str = ""
    page: PageNumber = 1


class Rankings:
    """The rankings of the labels of datasets, computed on request and cached until the data changes."""

    def __init__(self, store: Store, cache: BackgroundCache | None = None) -> None:
        self._store = store
        self._cache = cache or BackgroundCache()

    def rank(
        self, dataset: Dataset, address: DoubtfulAddress, patience: float = _PATIENCE
    ) -> Snapshot[LabelRanking] | Pending:
        """Rank the labels of a dataset as an address asks. Raises `UserError` if the dataset is too large, and in
        the same cases as `rank_labels`."""
        if dataset.traces > LARGEST:
            raise UserError(
                f"{dataset.name} has {dataset.traces:,} traces; this page ranks the labels of at most {LARGEST:,}.",
                "The labels of this one are ranked on the command line.",
            )
        names = (address.evaluator,) if address.evaluator else ()
        version = ranking_version(self._store, dataset)
        make = lambda: rank_labels(self._store, dataset, names, address.mode)  # noqa: E731
        size: Callable[[LabelRanking], int] = lambda ranking: _LABEL * len(ranking.labels)  # noqa: E731
        return self._cache.newest(("doubtful", dataset.id, names, address.mode), version, make, size, patience)


def router(store: Store) -> APIRouter:
    """Build the routes of the page and of its file."""
    rankings = Rankings(store)

    def content(query: Query, request: Request) -> PageContent:
        return _page(store, rankings, query, request)

    routes = address_page("Results", content, "doubtful", DoubtfulAddress.PATH, "Doubtful labels")

    @routes.get(f"{DoubtfulAddress.PATH}/file", dependencies=[Depends(RequiresRight(Right.READ))])
    def file(request: Request) -> Response:
        address = DoubtfulAddress.exact(dict(request.query_params))
        dataset = find_dataset(store, address.dataset)
        ranking = rankings.rank(dataset, address, _FILE_PATIENCE)
        if isinstance(ranking, Pending):
            raise UserError("The labels are still being ranked.", "Try again in a minute.")
        labels = ranking.result.labels
        note_shown(store, find_user_of(request), {one.trace_id for one in labels})
        # People's labels may have to be hidden from some, so that they are on the page alone.
        lines = (json.dumps(one.as_json(people=False), ensure_ascii=False) + "\n" for one in labels)
        headers = {"content-disposition": 'attachment; filename="doubtful-labels.jsonl"'}
        return Response("".join(lines), media_type="application/jsonl", headers=headers)

    return routes


def _page(store: Store, rankings: Rankings, query: Query, request: Request) -> PageContent:
    """Render the page for a query."""
    address, problems = DoubtfulAddress.read(query)

    def page(*errors: UserError, **values: object) -> PageContent:
        values = _NOTHING | {"problems": problems, "address": address} | values
        return PageContent.of(render("results/doubtful.html", **values), problems, errors)

    datasets = list_datasets(store)
    if not datasets:
        return page(message=EMPTY_STORE)
    choices: dict[str, Any] = {"datasets": [(one.name, one.name) for one in datasets]}
    try:
        dataset = find_dataset(store, address.dataset or datasets[0].name)
        address = address.changed(dataset=dataset.name)
        offered = [(one.name, one.name) for one in find_jurors(store, dataset)]
        choices |= {"address": address, "evaluators": [("", "all"), *offered]}
        ranking = rankings.rank(dataset, address)
        if isinstance(ranking, Pending):
            return page(waiting=True, **choices)
        return page(**choices, **_ranked(store, ranking, address, request))
    except UnavailableError:
        raise
    except UserError as error:
        return page(error, message=error, **choices)


def _ranked(
    store: Store, ranking: Snapshot[LabelRanking], address: DoubtfulAddress, request: Request
) -> dict[str, object]:
    """Return the template's variables for a page of a ranking."""
    labels = ranking.result.labels
    start = (address.page - 1) * _PER_PAGE
    shown = labels[start : start + _PER_PAGE]
    user = find_user_of(request)
    note_shown(store, user, {one.trace_id for one in shown})
    return {
        "ranking": ranking.result,
        "outdated": {} if ranking.is_current else {address.dataset: ranking},
        "mode": ranking.result.mode or "",
        "rows": label_rows(store, shown, user, may_dispute=has_right(request, Right.LABEL)),
        "first": start + 1,
        "total": len(labels),
        "more": start + _PER_PAGE < len(labels),
        "file": address.url(f"{DoubtfulAddress.PATH}/file", page=1),
    }
