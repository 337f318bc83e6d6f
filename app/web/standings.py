"""Whether evaluators tell more of a dataset than the trivial baselines do: a line where they do not.

It is measured in a thread of its own and kept until labels or judgments change. A page that is shown before that
leaves room for the line, and its script asks for it: `GET /standing?dataset=NAME&evaluator=ID&mode=offline`, where
`evaluator` may be repeated, answers with its HTML, which is empty where there is nothing to say, or with status 202
as long as it is being measured.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from stepsight.app.access.rights import Needs, Right
from stepsight.app.web.computations import LARGEST, Computations, Pending
from stepsight.app.web.html import macro
from stepsight.app.web.page_address import Number, PageQuery, read_query
from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.core.metrics.baselines import find_baseline
from stepsight.core.validation import choice
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import StoredEvaluator, list_evaluators
from stepsight.storage.judgments.metric_columns import read_version_of
from stepsight.storage.traces.queries import Dataset, find_dataset
from stepsight.training.evaluate.evaluation import MODES
from stepsight.training.evaluate.standing import Standing, measure_standing
from stepsight.training.report.results import PROTOCOL

_TEMPLATE = "standing.html"
_MOST = 5
# Of one result, in bytes.
_SIZE = 1_000


class StandingAddress(PageQuery):
    """What is asked for: the evaluators, by id, that a page shows of a dataset in a mode."""

    PATH: ClassVar[str] = "/standing"

    dataset: str = ""
    evaluator: tuple[Number, ...] = ()
    mode: Annotated[str, choice(MODES)] = Mode.OFFLINE.value


@dataclass(frozen=True)
class Shortfall:
    """An evaluator that does not clear the baselines, with the address of its card."""

    standing: Standing
    card: str

    @property
    def figure(self) -> str:
        return PROTOCOL[self.standing.figure]

    @property
    def baseline(self) -> str:
        return find_baseline(self.standing.baseline).reads

    @property
    def interval(self) -> str:
        """The difference with its interval."""
        one = self.standing.difference
        return f"{_signed(one.number)}, 95 %: {_signed(one.low)} to {_signed(one.high)}"


class Standings:
    """The standings of a store's evaluators. Safe to use from several threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # One at a time: pages are to be fast meanwhile.
        self._computations = Computations(at_once=1, most=100, kept=_SIZE * 400)

    def find(
        self, dataset: Dataset, evaluator: StoredEvaluator, mode: Mode, patience: float = 0.0
    ) -> Standing | Pending | None:
        """The standing of an evaluator, None where there is none, or `Pending` where it is not there after
        `patience` seconds. While a job judges the dataset, an earlier one will do."""
        if not dataset.errors + dataset.redundant or dataset.traces > LARGEST:
            return None
        traces, judged, calibration = read_version_of(self._store, dataset.id, evaluator.id)
        try:
            newest = self._computations.newest(
                (dataset.id, evaluator.id, mode, traces, calibration),
                judged,
                lambda: measure_standing(self._store, dataset, evaluator, mode),
                lambda _: _SIZE,
                patience,
            )
        except UserError:
            # It is no more than a remark.
            return None
        return newest if isinstance(newest, Pending) else newest.result

    def line(self, dataset: Dataset, evaluators: Sequence[StoredEvaluator], mode: Mode) -> Markup:
        """What a page says at once of the evaluators that it shows: nothing, the line, or room for it."""
        found = self._all(dataset, evaluators, mode)
        if found is not None:
            return line_html(dataset.name, found)
        query = {"dataset": dataset.name, "evaluator": [one.id for one in evaluators[:_MOST]], "mode": mode.value}
        names = [one.name for one in evaluators[:_MOST]]
        address = f"{StandingAddress.PATH}?{urlencode(query, doseq=True)}"
        return macro(_TEMPLATE, "room", address, dataset.name, names)

    def text(self, dataset: Dataset, evaluators: Sequence[StoredEvaluator], mode: Mode) -> Markup | None:
        """What stands in the room that was left; None as long as it is being measured."""
        found = self._all(dataset, evaluators, mode)
        return None if found is None else macro(_TEMPLATE, "text", dataset.name, found)

    def _all(self, dataset: Dataset, evaluators: Sequence[StoredEvaluator], mode: Mode) -> list[Shortfall] | None:
        found = [(self.find(dataset, one, mode), one) for one in evaluators[:_MOST]]
        if any(isinstance(standing, Pending) for standing, _ in found):
            return None
        return shortfalls((one, standing) for standing, one in found if isinstance(standing, Standing))


def shortfalls(standings: Iterable[tuple[StoredEvaluator, Standing]]) -> list[Shortfall]:
    """Those that do not clear the baselines."""
    return [Shortfall(standing, card_address(one)) for one, standing in standings if not standing.clears]


def line_html(dataset: str, found: Sequence[Shortfall]) -> Markup:
    """The line on evaluators that do not clear the baselines on a dataset; nothing where there are none."""
    return macro(_TEMPLATE, "line", dataset, found) if found else Markup()


def card_id(fingerprint: str) -> str:
    """The id that the card of an evaluator has on the Evaluators page."""
    # Of score files it may be any text, and an id has no spaces.
    return f"card-{hashlib.sha256(fingerprint.encode()).hexdigest()[:12]}"


def card_address(evaluator: StoredEvaluator) -> str:
    return f"/evaluators#{card_id(evaluator.fingerprint)}"


def router(store: Store, standings: Standings) -> APIRouter:
    """The route that a page's script asks."""
    routes = APIRouter(include_in_schema=False)

    @routes.get(StandingAddress.PATH, dependencies=[Depends(Needs(Right.READ))])
    def standing(request: Request) -> HTMLResponse:
        address = StandingAddress.exact(read_query(request.url.query))
        dataset = find_dataset(store, address.dataset)
        wanted = [one for one in list_evaluators(store) if one.id in address.evaluator]
        text = standings.text(dataset, wanted, Mode(address.mode))
        headers = {"cache-control": "no-cache"}
        return HTMLResponse(text or "", 202 if text is None else 200, headers=headers)

    return routes


def _signed(value: float) -> str:
    text = f"{abs(value):.2f}"
    return text if text == "0.00" else f"{'+' if value > 0 else '−'}{text}"
