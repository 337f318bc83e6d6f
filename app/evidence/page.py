"""The Evidence page: how later steps changed the verdicts on earlier ones, in one trace or in a gallery.

The URL determines everything on the page. The page's script changes the URL and requests the content again.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from time import monotonic

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, Response
from markupsafe import Markup

from stepsight.app.browse.selection import ListPlace
from stepsight.app.evidence.evidence import KINDS, PROBLEM, Evidence, EvidenceAddress, JudgingError, open_evidence
from stepsight.app.evidence.gallery import NotJudgedError, flip_of, gallery_html, open_gallery, page_of
from stepsight.app.evidence.trace import (
    evidence_file,
    evidence_html,
    file_name,
    left_out_record,
    title,
    waiting_html,
)
from stepsight.app.score.entered import Entered
from stepsight.app.scoring.batcher import BusyError
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.access import RequiresRight, Right, find_user_of, has_right
from stepsight.app.web.baseline_check import BaselineChecks
from stepsight.app.web.html import macro, render
from stepsight.app.web.pages import (
    DOWNLOAD_PATIENCE,
    PageContent,
    Query,
    address_page,
    answer_query,
    client_disconnected,
    waiting_route,
)
from stepsight.core.errors import UserError
from stepsight.core.evidence import LeaveOneOut
from stepsight.core.judgment import Mode
from stepsight.core.keyed_cache import KeyedCache
from stepsight.storage.database.jobs_schema import ACTIVE, Job, Task
from stepsight.storage.database.store import Store
from stepsight.storage.jobs.jobs import list_jobs
from stepsight.storage.judgments.evaluators import StoredEvaluator, evaluators_of
from stepsight.storage.people.blindness import check_texts, check_traces, hidden_traces
from stepsight.storage.people.users import User
from stepsight.storage.traces.queries import Dataset, Neighbours, StoredTrace, find_dataset

# Seconds for which the page waits for a judgment before it shows the trace without one.
_PATIENCE = 0.3
_NOWHERE = ListPlace(Neighbours(None, None))

LEFT_OUT = "/evidence/left-out"
FILE = "/evidence/file"


@dataclass(frozen=True)
class EvidencePage:
    """The Evidence page. With `checks`, it warns if an evaluator does not beat the trivial baselines."""

    store: Store
    evaluators: Evaluators
    checks: BaselineChecks | None = None

    def routes(self, *, read_only: bool = False) -> APIRouter:
        """Build the routes of the page and its downloads. If `read_only` is True, nobody may start a job."""

        def content(query: Query, request: Request) -> PageContent:
            may_judge = not read_only and has_right(request, Right.WRITE)
            return self.content(query, find_user_of(request), may_judge=may_judge)

        routes = address_page("Evidence", content)
        routes.include_router(file_routes(self.store, self.evaluators))
        return routes

    def content(self, query: Query, user: User | None = None, *, may_judge: bool = False) -> PageContent:
        """Render the page for a query.

        `user` is the viewer, or None if nobody is logged in. If there is nothing to show and `may_judge` is True,
        the page offers to start a job.
        """

        def body(address: EvidenceAddress, problems: Sequence[str], _: list[UserError]) -> Markup:
            if address.trace is not None:
                check_traces(self.store, user, address.trace)
            return (self._trace_html if address.opens else self._gallery_html)(address, problems, user)

        return answer_query(EvidenceAddress, query, body, partial(self._failure_html, may_judge))

    def _failure_html(self, may_judge: bool, error: UserError, problems: Sequence[str]) -> Markup:
        if isinstance(error, JudgingError):
            return waiting_html(error.trace, title(error.trace), error, problems)
        unjudged = error if isinstance(error, NotJudgedError) else None
        return render(
            "evidence/failure.html",
            problems=problems,
            message=error,
            unjudged=unjudged,
            may_judge=may_judge,
            evaluators=self.evaluators.names,
            job=judging(self.store, unjudged.dataset) if unjudged is not None else None,
        )

    def _gallery_html(self, address: EvidenceAddress, problems: Sequence[str], user: User | None) -> Markup:
        gallery = open_gallery(self.store, self.evaluators, address.dataset, address.evaluator)
        here = gallery.here(address)
        line = self._baseline_check(gallery.dataset, gallery.offer.row)
        if job := judging(self.store, gallery.dataset.name):
            line = macro("parts.html", "judging", job)
        hidden = hidden_traces(self.store, user, gallery.shown(here))
        return gallery_html(self.store, gallery, here, problems, line, hidden)

    def _trace_html(self, address: EvidenceAddress, problems: Sequence[str], user: User | None) -> Markup:
        """Render the page of one trace with the evidence on it."""
        evidence = open_evidence(self.store, self.evaluators, address, _PATIENCE)
        trace = evidence.trace
        check_texts(self.store, user, trace)
        alone = EvidenceAddress(trace=address.trace, s=address.s, evaluator=evidence.evaluator)
        ask = alone.url(LEFT_OUT) if evidence.scorer is not None or evidence.has_left_out else ""
        place = _gallery_place(self.store, self.evaluators, evidence, address)
        line = Markup()
        if isinstance(trace, StoredTrace):
            judged = {stored.fingerprint: stored for stored in evaluators_of(self.store, trace.dataset_id)}
            dataset = find_dataset(self.store, trace.dataset)
            line = self._baseline_check(dataset, judged.get(evidence.about.fingerprint))
        elif self.checks is not None and evidence.scorer is not None:
            line = self.checks.strength_html({evidence.evaluator: evidence.about.fingerprint})
        return render(
            "evidence/page.html",
            problems=problems,
            title=title(trace),
            address=address,
            links=_links(evidence, address, place),
            place=place.words,
            has_neighbours=place.near != _NOWHERE.near,
            evaluators=[(name, name) for name in evidence.choices],
            evaluator=evidence.evaluator,
            baseline_check=line,
            evidence=evidence_html(evidence, address, ask),
            present=alone.url(kind=address.kind, present=PROBLEM),
            file=alone.url(FILE, step=address.step, after=address.after),
            browse=alone.url("/browse") if isinstance(trace, StoredTrace) else "",
            token=address.s or Entered.of(trace, (evidence.evaluator,), evidence.thresholds).token(),
        )

    def _baseline_check(self, dataset: Dataset, evaluator: StoredEvaluator | None) -> Markup:
        """Render a warning if the evaluator does not beat the trivial baselines offline."""
        if self.checks is None or evaluator is None:
            return Markup()
        return self.checks.line(dataset, [evaluator])


def judging(store: Store, dataset: str) -> Job | None:
    """Return the waiting or running job that judges a dataset in hindsight mode, or None."""
    jobs = (job for job in list_jobs(store) if job.task == Task.JUDGE and job.state in ACTIVE)
    return next((job for job in jobs if job.dataset == dataset and job.request["mode"] == Mode.HINDSIGHT), None)


def _gallery_place(store: Store, evaluators: Evaluators, evidence: Evidence, address: EvidenceAddress) -> ListPlace:
    """Return the trace's position in the gallery from which it was opened, or an empty position if it was opened
    from elsewhere."""
    if address.kind not in KINDS or not isinstance(evidence.trace, StoredTrace):
        return _NOWHERE
    try:
        gallery = open_gallery(store, evaluators, evidence.trace.dataset, evidence.evaluator)
    except UserError:
        return _NOWHERE
    flip, trace_id = flip_of(address.kind), evidence.trace.trace_id
    ids = gallery.flips.of(flip).tolist()
    if trace_id not in ids:
        return _NOWHERE
    return ListPlace(gallery.flips.neighbours(flip, trace_id), ids.index(trace_id) + 1, len(ids))


def _links(evidence: Evidence, address: EvidenceAddress, place: ListPlace) -> list[tuple[str, str, str]]:
    """Return the links of the pager as (CSS class, label, URL) triples. The URL is "" if there is no page to link
    to."""
    near = place.near
    here = EvidenceAddress(evaluator=evidence.evaluator, kind=address.kind)
    dataset = evidence.trace.dataset if isinstance(evidence.trace, StoredTrace) else ""
    return [
        ("prev", "Previous", here.url(trace=near.previous) if near.previous is not None else ""),
        ("up", "The gallery", here.url(dataset=dataset, page=page_of(place.number)) if dataset else here.PATH),
        ("next", "Next", here.url(trace=near.next) if near.next is not None else ""),
    ]


def file_routes(store: Store, evaluators: Evaluators) -> APIRouter:
    """Build the routes for leave-one-out scores and for the evidence file.

    They take the same query as the page of one trace. The application turns any `UserError` that they raise into a
    response.
    """
    routes = APIRouter(include_in_schema=False, dependencies=[Depends(RequiresRight(Right.READ))])
    left_outs = LeftOuts()

    def left_out(request: Request) -> JSONResponse:
        evidence, _ = _requested_evidence(store, evaluators, request)
        scores = left_outs.of(evidence, partial(client_disconnected, request))
        return JSONResponse(left_out_record(evidence, scores))

    def file(request: Request) -> Response:
        evidence, address = _requested_evidence(store, evaluators, request)
        asks = evidence.has_left_out or (evidence.scorer is not None and not evidence.calls)
        left_out = left_outs.of(evidence, partial(client_disconnected, request)) if asks else None
        page = evidence_file(
            evidence, evidence_html(evidence, address, left_out=left_out, in_file=True), datetime.now(UTC)
        )
        name = f'attachment; filename="{file_name(evidence.trace)}"'
        # Not sent as HTML, since the server adds its own policy to every HTML page.
        return Response(page, media_type="application/octet-stream", headers={"content-disposition": name})

    routes.add_api_route(LEFT_OUT, waiting_route(left_out), methods=["GET"])
    routes.add_api_route(FILE, waiting_route(file), methods=["GET"])
    return routes


def _requested_evidence(store: Store, evaluators: Evaluators, request: Request) -> tuple[Evidence, EvidenceAddress]:
    address = EvidenceAddress.exact(dict(request.query_params))
    if not address.opens:
        raise UserError("The address names no trace.", "Open one on the Evidence page.")
    if address.trace is not None:
        check_traces(store, find_user_of(request), address.trace)
    evidence = open_evidence(store, evaluators, address, DOWNLOAD_PATIENCE)
    check_texts(store, find_user_of(request), evidence.trace)
    return evidence, address


# The total size of cached scores in bytes.
_KEPT = 12_000_000
# The number of requests that may wait for another one, and roughly how many seconds a request takes.
_WAITING = 8
_SECONDS = 5
# Seconds between checks whether the reader is still waiting.
_LOOKS = 0.2
# The limit for one request. There is one pass per step, each about as long as the trace.
_MOST_TOKENS = 2_100_000


class ReaderLeftError(UserError):
    """Raised if the reader who asked for the scores has left."""


class LeftOuts:
    """Leave-one-out scores by the evaluators loaded on this server, computed for one trace at a time. It is
    thread-safe."""

    def __init__(self) -> None:
        self._cache = KeyedCache(_KEPT)
        self._working = threading.Lock()
        self._places = threading.BoundedSemaphore(_WAITING)

    def of(self, evidence: Evidence, client_disconnected: Callable[[], bool] = lambda: False) -> LeaveOneOut:
        """Return the leave-one-out scores of a trace. If the store does not have them, compute them now. Once
        `client_disconnected()` is True, the work stops.

        Raises `UserError` if the evaluator cannot score on this server or the trace is too long, and `BusyError` if
        too many requests are waiting.
        """
        stored = evidence.find_left_out()
        if stored is not None:
            return stored
        if evidence.scorer is None:
            raise UserError(
                f"{evidence.evaluator} is not loaded here, so no step can be left out.",
                "Fetch it on the Evaluators page, or import its scores with steps left out.",
            )
        key = (evidence.about.fingerprint, evidence.trace.digest)
        check = _check(client_disconnected)
        while True:
            try:
                scores: LeaveOneOut = self._cache.get(
                    key, None, lambda: self._leave_out(evidence, check), lambda scores: scores.probs.nbytes
                )
                return scores
            except ReaderLeftError:
                # If another reader left while this one was waiting for their work, the work is started again.
                check()

    def _leave_out(self, evidence: Evidence, check: Callable[[], None]) -> LeaveOneOut:
        assert evidence.scorer is not None
        if not self._places.acquire(blocking=False):
            raise BusyError(evidence.evaluator, _SECONDS)
        try:
            with self._working:
                scorer = evidence.scorer()
                tokens = len(scorer.evaluator.encode(evidence.trace)) * len(evidence)
                if tokens > _MOST_TOKENS:
                    reads = f"Leaving out each of {len(evidence)} steps reads {tokens:,} tokens"
                    raise UserError(
                        f"{reads}, which is too many for this page.", "Use Scorer.leave_one_out in Python."
                    )
                for scores in scorer.stream_left_out(evidence.trace):
                    if scores is not None:
                        return scores
                    check()
                raise AssertionError("no scores")
        finally:
            self._places.release()


def _check(client_disconnected: Callable[[], bool]) -> Callable[[], None]:
    """Return a check that raises `ReaderLeftError` once the client has disconnected. It asks no more often than
    every `_LOOKS` seconds, since that takes a turn of the event loop."""
    looked, has_left = 0.0, False

    def check() -> None:
        nonlocal looked, has_left
        if not has_left and monotonic() - looked >= _LOOKS:
            looked, has_left = monotonic(), client_disconnected()
        if has_left:
            raise ReaderLeftError("Nobody was waiting for these scores any more.", "Open the page again.")

    return check
