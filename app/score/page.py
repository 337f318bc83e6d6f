"""The Score page: paste a problem and its solution, correct the steps, and see every step judged in both modes.

The URL determines the result. `s` is its permalink, and `before` is the permalink of the result to compare it with.
The page's script posts JSON to `/score/split` and its like.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Annotated, Any
from urllib.parse import parse_qsl

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Depends, Request
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse, JSONResponse

from stepsight.app.score.entered import LONGEST_ENTRY, Entered, PageState, SolutionText, check_steps
from stepsight.app.score.result import result_html
from stepsight.app.score.running import RunningResults
from stepsight.app.scoring.batcher import ScoringCost
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.access import LOOKING, RequiresRight, Right, find_user_of, has_right
from stepsight.app.web.html import plain_page, render
from stepsight.app.web.pages import PageContent, body, client_disconnected
from stepsight.app.web.step_bars import notice_html
from stepsight.core.errors import AddressError, UserError
from stepsight.core.judgment import Mode
from stepsight.core.text.response import thinking_in, unclosed_thought
from stepsight.core.trace import Trace
from stepsight.core.validation import Model
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.people.blindness import check_texts
from stepsight.storage.traces.writer import SAVED, save_trace
from stepsight.training.evaluate.strength import DATASET, read_card, read_gallery

# The first traces of the gallery are the most instructive ones; a link leads to the others.
_EXAMPLES = 4
# Longer texts are shown once they are opened.
_BRIEF = 120
EMPTY = Markup('<p class="hint">Steps appear here as you type: numbered, headed, by paragraph or by line.</p>')
# Seconds for which the first response waits for a judgment. The page's script requests it if it takes longer.
_SOON = 0.4
# The number of tokens from which the page says how long scoring takes: a few seconds.
_MUCH = 50_000
# How many requests may wait for judgments at once. They have their own threads.
_AT_ONCE = 40

Answer = Callable[[Any, Request], dict[str, Any]]
"""A function that answers what was sent in a request, with an object for JSON."""


class TypedText(Model):
    """A text to be split into steps, and whether thinking before the solution is split too."""

    text: str
    thinking: bool = False


class OpenedLink(Model):
    """A query string to be opened. `evaluators` replaces those of its permalink, and `run` is as in `PageState`."""

    query: str
    evaluators: list[str] | None = None
    run: str = ""


class RunningKey(Model):
    """The key of a solution that is being judged."""

    run: str


@dataclass(frozen=True)
class ScorePage:
    """The Score page, which scores with `evaluators` and, unless it is `read_only`, saves to `store`. A result has
    the line that `strength_html` renders for the fingerprints of evaluators by name."""

    store: Store
    evaluators: Evaluators
    read_only: bool = False
    strength_html: Callable[[Mapping[str, str]], Markup] = lambda fingerprints: Markup()
    running_results: RunningResults = field(default_factory=RunningResults)

    def routes(self) -> APIRouter:
        """Build the routes of the page and of what its script sends."""
        routes = APIRouter(include_in_schema=False)
        limiter = CapacityLimiter(_AT_ONCE)

        def add(name: str, kind: type[Any], answer: Answer, *rights: Right) -> None:
            needs = [Depends(RequiresRight(*(rights or LOOKING)))]

            async def respond(request: Request, values: Annotated[Any, body(kind)]) -> JSONResponse:
                return JSONResponse(await to_thread.run_sync(answer, values, request, limiter=limiter))

            routes.add_api_route(f"/score/{name}", respond, methods=["POST"], dependencies=needs)

        add("split", TypedText, lambda typed, _: self.split(typed.text, typed.thinking))
        add("write", PageState, lambda state, _: self.write(state))
        add("score", PageState, self.score)
        add("cost", PageState, lambda state, _: self.cost(state))
        add("rejudge", PageState, self.rejudge)
        add("running", RunningKey, lambda key, _: self.running(key.run))
        add("open", OpenedLink, lambda link, request: self.open(link.query, link.evaluators, request, link.run))
        if not self.read_only:
            add("save", PageState, lambda state, _: self.save(state), Right.WRITE)

        def show(request: Request) -> HTMLResponse:
            shown = self.content(request)
            page = plain_page("Score", shown.html, "Score")
            return HTMLResponse(page, shown.status, headers={"cache-control": "no-cache"})

        needs = [Depends(RequiresRight(Right.SCORE))]
        routes.add_api_route("/", show, methods=["GET", "HEAD"], dependencies=needs)
        return routes

    def content(self, request: Request) -> PageContent:
        """Render the page for the URL of a request."""
        names = self.evaluators.names
        entered = {"problem": "", "text": "", "evaluators": [], "steps": EMPTY, "result": Markup()}
        refusal, errors = Markup(), []
        try:
            entered |= self._open_query(request.url.query, request, patience=_SOON)
        except AddressError as error:
            refusal = notice_html(str(error.without_options()))
            errors.append(error)
        html = render(
            "score/page.html",
            entered=entered,
            refusal=refusal,
            chosen=entered["evaluators"] or names[:1],
            is_late=entered["result"] is None,
            names=names,
            # If no evaluator beats the baselines, visitors are told before anything is scored.
            demonstrations=len(names) if all(read_card(name).is_weak for name in names) else 0,
            examples=_examples(*names[:1]),
            dataset=DATASET,
            longest=LONGEST_ENTRY,
            traces=len(read_gallery()),
        )
        return PageContent.of(html, errors=errors)

    def split(self, text: str, thinking: bool = False) -> dict[str, Any]:
        """Split a text into steps and return them rendered. If `thinking` is True, thinking before the solution is
        split too."""
        try:
            solution = SolutionText.typed(text, judges_thinking=thinking)
            check_steps(solution.steps)
            return {"steps": steps_html(solution)}
        except UserError as error:
            return {"steps": notice_html(str(error.without_options()))}

    def write(self, state: PageState) -> dict[str, Any]:
        """Compose a text from corrected steps, and return it with the steps rendered."""
        return _text_and_steps(state.solution_text())

    def score(self, state: PageState, request: Request) -> dict[str, Any]:
        """Score the entered solution and, if it is an edit of the previous solution, compare the two. If steps were
        edited, the result includes the text composed from them."""
        try:
            solution = state.solution_text()
            entered = state.entered(solution)
        except UserError as error:
            return {"result": notice_html(str(error.without_options()))}
        written = _text_and_steps(solution) if state.steps is not None else {}
        return {"result": self._result(entered, request, state.run)} | written

    def cost(self, state: PageState) -> dict[str, Any]:
        """Return the cost of scoring the entered solution, and True under `long` if it is high."""
        try:
            entered = state.entered(state.solution_text())
            costs = [(name, *_cost(self.evaluators, name, entered.trace)) for name in entered.chosen]
        except UserError as error:
            return {"cost": escape(str(error.without_options())), "long": False}
        counted = [(name, cost, mode) for name, cost, mode in costs if cost is not None]
        is_long = any(
            isinstance(cost, UserError) or cost.prefixes > _MUCH or mode == Mode.OFFLINE
            for _, cost, mode in counted
        )
        return {
            "cost": render("score/cost.html", costs=counted, steps=len(entered.trace.substeps)),
            "long": is_long,
        }

    def rejudge(self, state: PageState, request: Request) -> dict[str, Any]:
        """Return the displayed result at other thresholds."""
        return {"result": self._result(state.displayed(), request, state.run)}

    def running(self, run: str) -> dict[str, Any]:
        """Return the scores that are known so far of the solution that is being judged under the key `run`."""
        return {"result": self.running_results.html(run)}

    def open(self, query: str, evaluators: Sequence[str] | None, request: Request, run: str = "") -> dict[str, Any]:
        """Return the page's content for a query string, which is empty if the query has no permalink. If
        `evaluators` is not None, it replaces the permalink's evaluators. `run` is as in `PageState`."""
        try:
            return self._open_query(query.removeprefix("?"), request, evaluators, run=run)
        except AddressError as error:
            return {"result": notice_html(str(error.without_options()))}

    def save(self, state: PageState) -> dict[str, Any]:
        """Save the displayed result with its judgments, and return a note that links to the saved trace. If the
        result has no permalink, the entered solution is saved instead."""
        entered = state.displayed()
        trace, is_new = save_trace(
            self.store, entered.saved_trace, SAVED if state.dataset is None else state.dataset
        )
        for chosen in filter(self.evaluators.gives_scores, entered.evaluators):
            name, mode = self.evaluators.fit(chosen, trace)
            judgment = self.evaluators.judge(name, trace, mode)
            save_judgments(self.store, self.evaluators.register(self.store, name).id, [judgment])
        return {"saved": render("score/saved.html", trace=trace, is_new=is_new)}

    def _open_query(
        self,
        spelled: str,
        request: Request,
        evaluators: Sequence[str] | None = None,
        patience: float | None = None,
        run: str = "",
    ) -> dict[str, Any]:
        """Return the page's content for the query string `spelled`.

        The result is None if it takes longer than `patience` seconds. Raises `AddressError` if the permalink is
        invalid.
        """
        query = dict(parse_qsl(spelled))
        if not query.get("s"):
            return {}
        entered = Entered.from_query(query)
        if evaluators is not None:
            entered = replace(entered, evaluators=tuple(evaluators))
        solution = entered.solution_text()
        entered = replace(entered, thinking=solution.thinking)
        is_late = patience is not None and not self._is_soon(entered, patience)
        return {
            "problem": entered.problem,
            **_text_and_steps(solution),
            "evaluators": [*map(self.evaluators.plain, filter(self.evaluators.gives_scores, entered.evaluators))],
            "result": None if is_late else self._result(entered, request, run),
        }

    def _is_soon(self, entered: Entered, seconds: float) -> bool:
        """Start the judgments. Returns True if they are ready, or have failed, within this many `seconds`."""
        try:
            fits = [self.evaluators.fit(name, entered.trace) for name in entered.evaluators]
            begun = [self.evaluators.submit(name, entered.trace, mode, comes_back=True) for name, mode in fits]
        except UserError:
            return True
        return not wait(begun, timeout=seconds).not_done

    def _result(self, entered: Entered, request: Request, run: str) -> Markup:
        """Render the result, compared with the earlier solution if there is one. Raises `ForbiddenError` if one of
        the two is hidden from the user."""
        check_texts(self.store, find_user_of(request), *entered.traces)
        with self.running_results.under(run) as on_begin:
            return result_html(
                self.evaluators,
                entered,
                read_only=self.read_only or not has_right(request, Right.WRITE),
                client_disconnected=partial(client_disconnected, request),
                strength_html=self.strength_html,
                on_begin=on_begin,
            )


def steps_html(solution: SolutionText) -> Markup:
    """Render the steps of a solution, for correction, and the parts of its text that are not steps."""
    if not solution.steps:
        return EMPTY
    return render(
        "score/steps.html",
        steps=solution.steps,
        set_aside=[(text, bool(thinking_in(text))) for text in solution.set_aside],
        thinking=solution.thinking,
        unclosed=unclosed_thought(solution.text),
        brief=_BRIEF,
        data=json.dumps(solution.steps, ensure_ascii=False),
    )


def _cost(evaluators: Evaluators, name: str, trace: Trace) -> tuple[ScoringCost | UserError | None, Mode]:
    """Return the tokens that an evaluator reads of a solution, the error if it cannot read it, or None if unknown,
    and the mode in which the solution is judged first."""
    fitting, mode = evaluators.fit(name, trace)
    try:
        return evaluators.cost(fitting, trace), mode
    except UserError as error:
        return error.without_options(), mode


def _text_and_steps(solution: SolutionText) -> dict[str, Any]:
    """Return the text of a solution and its rendered steps."""
    return {"text": solution.text, "steps": steps_html(solution)}


@cache
def _examples(*evaluators: str) -> list[tuple[str, str]]:
    """Return (title, URL) for each example solution. The URL opens the solution judged by these evaluators."""
    return [
        (str(trace.meta.get("title", trace.id)), f"/?s={Entered.of(trace, evaluators).token()}")
        for trace in read_gallery()[:_EXAMPLES]
    ]
