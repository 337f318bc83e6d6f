"""The stress test of one trace: its variants are created, judged and shown when a reader asks for them."""

from functools import partial
from typing import Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from stepsight.app.access.rights import RequiresRight, Right, find_user_of, note_scored, note_shown
from stepsight.app.evidence.address import EvidenceAddress
from stepsight.app.evidence.on_demand import MOST_TOKENS, OnDemand
from stepsight.app.results.stress_rows import StressBars
from stepsight.app.score.entered import Entered
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.html import render
from stepsight.app.web.page_route import client_disconnected
from stepsight.core.errors import Check, UserError
from stepsight.core.scores import Thresholds
from stepsight.core.stress.failures import is_as_demanded, outcome_sentence
from stepsight.core.stress.measure import StressedTrace
from stepsight.core.stress.stress import StressTest
from stepsight.core.stress.variant import Demand
from stepsight.core.trace import Trace
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.stress_tests import check_judges_steps
from stepsight.storage.traces.queries import get_trace
from stepsight.training.evaluate.stress import stress_trace

STRESS = "/evidence/stress"

# The largest number of steps that are shown of a variant.
_MOST_ROWS = 6

_Tested = tuple[StressTest, list[StressedTrace]]


def stress_routes(store: Store, evaluators: Evaluators) -> APIRouter:
    """Build the route that returns the stress test of a trace as HTML. It takes the `trace` or `s`, and the
    `evaluator`, of the Evidence page's query. The application turns any `UserError` that it raises into a
    response."""
    routes = APIRouter(include_in_schema=False, dependencies=[Depends(RequiresRight(Right.READ))])
    # Texts of variants weigh more than scores.
    tests: OnDemand[_Tested] = OnDemand(lambda made: sum(map(_nbytes, made[1])))

    @routes.get(STRESS)
    def stress(request: Request) -> HTMLResponse:
        address = EvidenceAddress.exact(dict(request.query_params))
        name = address.evaluator or evaluators.default
        about = evaluators.about(name)
        check_judges_steps(name, about.outputs)
        trace, thresholds = _asked(store, evaluators, address, name, request)

        def make(check: Check) -> _Tested:
            return stress_trace(evaluators.scorer(name), trace, MOST_TOKENS, check)

        key = about.fingerprint, trace.digest
        test, stressed = tests.get(key, name, make, partial(client_disconnected, request))
        bars = StressBars(about.outputs, thresholds.validity, thresholds.redundancy)
        return HTMLResponse(stress_html(name, test, stressed, bars, thresholds.validity))

    return routes


def _asked(
    store: Store, evaluators: Evaluators, address: EvidenceAddress, name: str, request: Request
) -> tuple[Trace, Thresholds]:
    """Return the trace that the address names, and the thresholds of its verdicts."""
    user = find_user_of(request)
    if address.trace is not None:
        note_shown(store, user, [address.trace])
        trace: Trace = get_trace(store, address.trace)
        thresholds = evaluators.thresholds(store, name)
    elif address.s:
        entered = Entered.from_token(address.s)
        trace, thresholds = entered.trace, entered.thresholds
    else:
        raise UserError("The address names no trace.", "Open one on the Evidence page.")
    note_scored(store, user, trace)
    return trace, thresholds


def _nbytes(one: StressedTrace) -> int:
    return 2000 + 4 * sum(map(len, one.variant.trace.substeps))


def stress_html(
    evaluator: str, test: StressTest, stressed: list[StressedTrace], bars: StressBars, threshold: float
) -> Markup:
    """Render the stress test of a trace: each variant that was judged, and the names of the transforms that found
    nothing to change."""
    (original,), (tried,) = test.traces, test.variants
    judged = {one.transform.name for one in stressed}
    return render(
        "evidence/stressed.html",
        evaluator=evaluator,
        original=original,
        groups=[
            {"demand": demand, "rows": rows}
            for demand in Demand
            if (rows := [_row(one, original, bars, threshold) for one in stressed if _is_of(one, demand)])
        ],
        empty=[one.name for one, variant in tried if variant is None],
        unscored=[one.name for one, variant in tried if variant is not None and one.name not in judged],
    )


def _is_of(one: StressedTrace, demand: Demand) -> bool:
    return one.transform.demand == demand


def _row(one: StressedTrace, original: Trace, bars: StressBars, threshold: float) -> dict[str, Any]:
    """Return the template's variables of a variant, with those of its steps that were changed or moved."""
    notable = [
        row for row in bars.compare(one, original.substeps) if row["changed"] or row["target"] or row["moved"]
    ]
    return {
        "one": one,
        "as_demanded": is_as_demanded(one, threshold),
        "sentence": outcome_sentence(one, threshold),
        "steps": notable[:_MOST_ROWS],
        "more": len(notable[_MOST_ROWS:]),
        "same": len(one.variant.origins) - len(notable),
    }
