"""The page of stress tests: whether an evaluator's verdicts on a dataset move as they must.

`/results/stress?dataset=NAME&evaluator=NAME` shows a test, with `&trace=ID&transform=NAME` one of its variants
beside its original.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Request
from pydantic import Field

from stepsight.app.access.rights import Right, find_user_of, has_right, note_shown
from stepsight.app.results.stress_rows import StressBars, picture_groups
from stepsight.app.web.background_cache import BackgroundCache, Pending
from stepsight.app.web.html import EMPTY_STORE, render
from stepsight.app.web.page_query import Number, PageNumber, PageQuery, Query
from stepsight.app.web.page_route import PageContent, address_page
from stepsight.core.errors import UserError
from stepsight.core.stress.failures import outcome_sentence, worst_variants
from stepsight.storage.database.store import NotFoundError, Store, UnavailableError
from stepsight.storage.judgments.evaluators import (
    StoredEvaluator,
    find_thresholds,
    list_evaluators,
    with_distinct_names,
)
from stepsight.storage.judgments.stress_tests import (
    StoredStressTest,
    StressPlan,
    list_seeds,
    read_stress_test,
    read_stress_version,
    stress_tested,
)
from stepsight.storage.traces.queries import Dataset, find_dataset, list_datasets
from stepsight.training.report.html import table_html
from stepsight.training.report.stress import stress_tables

_PER_PAGE = 12
# Seconds that the page waits for the figures.
_PATIENCE = 0.4
_NOTHING: dict[str, Any] = dict.fromkeys(("datasets", "tested", "seeds", "startable", "transforms"), ()) | {
    "message": "",
    "waiting": False,
    "result": None,
    "variant": None,
}


class StressAddress(PageQuery):
    """The query of the page. `evaluator` is a name or a fingerprint, and `seed` a stored one. `validity` is a
    threshold in percent, or "" for the one in force. With `trace` (its id in the dataset) and `transform`, the page
    shows a variant; with `transform` alone, the worst examples are those of that transform."""

    PATH: ClassVar[str] = "/results/stress"

    dataset: str = ""
    evaluator: str = ""
    transform: str = ""
    trace: str = ""
    seed: str = ""
    validity: Annotated[Number, Field(ge=0, le=100)] | None = None
    page: PageNumber = 1


@dataclass(frozen=True, eq=False)
class _Shown:
    """A stress test with its figures at a threshold, and those of the baselines."""

    stored: StoredStressTest
    figures: Any
    baselines: Any


class _Page:
    """The page, with the tests that were measured last."""

    def __init__(self, store: Store, names: Callable[[], Sequence[str]], *, read_only: bool) -> None:
        self._store, self._names, self._read_only = store, names, read_only
        self._cache = BackgroundCache()

    def content(self, query: Query, request: Request) -> PageContent:
        """Render the page for a query."""
        address, problems = StressAddress.read(query)
        may_start = not self._read_only and has_right(request, Right.WRITE)
        values: dict[str, Any] = _NOTHING | {"problems": problems, "address": address}
        datasets = list_datasets(self._store)
        errors: list[UserError] = []
        if not datasets:
            values["message"] = EMPTY_STORE
            return PageContent.of(render("results/stress.html", **values), problems)
        try:
            values |= self._start(datasets, address, may_start=may_start)
            values |= self._values(datasets, address, request)
        except UnavailableError:
            raise
        except UserError as error:
            errors, values["message"] = [error], error
        return PageContent.of(render("results/stress.html", **values), problems, errors)

    def _start(self, datasets: list[Dataset], address: StressAddress, *, may_start: bool) -> dict[str, object]:
        """Return the template's variables of the choices, and of the form that starts a test."""
        names = self._names() if may_start else ()
        return {
            "datasets": [(one.name, one.name) for one in datasets],
            "startable": [(name, name) for name in names],
            "transforms": StressPlan().chosen,
        }

    def _values(self, datasets: list[Dataset], address: StressAddress, request: Request) -> dict[str, object]:
        tested = stress_tested(self._store)
        first = next((one.name for one in datasets if one.id in tested), datasets[0].name)
        dataset = find_dataset(self._store, address.dataset or first)
        address = address.changed(dataset=dataset.name)
        offered = [one for one in list_evaluators(self._store) if one.id in tested.get(dataset.id, {})]
        named = {one.name: one for one in with_distinct_names(offered)}
        choices = {"address": address, "tested": [(name, name) for name in named]}
        evaluator = _find(named, address.evaluator, dataset.name)
        if evaluator is None:
            return choices
        address = address.changed(evaluator=evaluator.name)
        seeds = [str(one) for one in list_seeds(self._store, dataset.id, evaluator.id)]
        in_force = find_thresholds(self._store, evaluator.id)
        limit = in_force.validity if address.validity is None else address.validity / 100
        choices |= {"address": address, "seeds": [(one, one) for one in seeds], "threshold": limit}
        made = self._made(dataset, evaluator, address.seed if address.seed in seeds else seeds[0], limit)
        if isinstance(made, Pending):
            return choices | {"waiting": True}
        bars = StressBars(evaluator.outputs, limit, in_force.redundancy)
        return choices | self._result(made.result, address, bars, limit, request)

    def _made(self, dataset: Dataset, evaluator: StoredEvaluator, seed: str, limit: float) -> Any:
        def make() -> _Shown:
            stored = read_stress_test(self._store, dataset.id, evaluator.id, seed=int(seed))
            if stored is None:
                raise NotFoundError("This stress test is gone.", "It may have been deleted meanwhile.")
            return _Shown(stored, stored.figures(limit), stored.test.baseline_figures(limit))

        version = read_stress_version(self._store, dataset.id, evaluator.id)
        key = dataset.id, evaluator.id, seed, limit
        return self._cache.newest(key, version, make, lambda made: made.stored.nbytes, _PATIENCE)

    def _result(
        self,
        made: _Shown,
        address: StressAddress,
        bars: StressBars,
        limit: float,
        request: Request,
    ) -> dict[str, object]:
        """Return the template's variables of a test, or of the variant that the address names."""
        stored, user = made.stored, find_user_of(request)
        if address.trace:
            one = _find_variant(stored, address)
            note_shown(self._store, user, {stored.rows[one.number]})
            original = stored.test.traces[one.number]
            return {
                "variant": one,
                "original": original,
                "row_id": stored.rows[one.number],
                "sentence": outcome_sentence(one, limit),
                "steps": list(bars.compare(one, original.substeps)),
            }
        bad = worst_variants(stored.stressed, limit, address.transform)
        start = (address.page - 1) * _PER_PAGE
        shown = bad[start : start + _PER_PAGE]
        note_shown(self._store, user, {stored.rows[one.number] for one in shown})
        figures = {address.evaluator: made.figures} | made.baselines
        return {
            "result": stored,
            "groups": picture_groups(made.figures, made.baselines),
            "examples": [bars.example(one) for one in shown],
            "total": len(bad),
            "first": start + 1,
            "more": start + _PER_PAGE < len(bad),
            "tables": [table_html(one) for one in stress_tables(figures, len(stored.test.traces))],
        }


def router(store: Store, names: Callable[[], Sequence[str]], *, read_only: bool = False) -> APIRouter:
    """Build the route of the page. `names` returns the names of the evaluators that can score here."""
    page = _Page(store, names, read_only=read_only)
    return address_page("Results", page.content, "stress", StressAddress.PATH, "Stress test")


def _find(named: dict[str, StoredEvaluator], key: str, dataset: str) -> StoredEvaluator | None:
    """Return the evaluator with this name or fingerprint, the first one without a key, or None if there is none."""
    if not key:
        return next(iter(named.values()), None)
    found = next((one for name, one in named.items() if key in (name, one.fingerprint)), None)
    if found is None:
        raise NotFoundError(f"{key:.80} has no stress test of {dataset}.", "Start one below.")
    return found


def _find_variant(stored: StoredStressTest, address: StressAddress) -> Any:
    for one in stored.stressed:
        if (one.variant.trace.id, one.transform.name) == (address.trace, address.transform):
            return one
    raise NotFoundError(
        f"There is no variant of {address.trace!r:.80} by {address.transform!r:.80}.", "Choose one of the test."
    )
