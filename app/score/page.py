"""The Score page: paste a problem and its solution, correct its steps, see every step judged in both modes.

A result follows from the address (`s`, a permalink; `before` or `kept`, the permalink of the result that it is
compared with; `valid` and `redundant`, thresholds). What the page's script asks for are the events of a Gradio
interface, by name: `split`, `write`, `score`, `open` and `save`.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import wait
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any
from urllib.parse import parse_qsl

import gradio as gr
from markupsafe import Markup
from starlette.requests import Request

from stepsight.app.access.rights import Asked, Right, find_user_of, has_right, note_scored, require
from stepsight.app.score.files import read_query
from stepsight.app.score.form import PageState, ScoreForm
from stepsight.app.score.result import result_html
from stepsight.app.score.steps import EMPTY, split_html
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.scoring.gallery_seed import DATASET
from stepsight.app.web.gradio_page import Event, has_left
from stepsight.app.web.html import render
from stepsight.app.web.judged import notice_html
from stepsight.core.errors import UserError
from stepsight.core.trace import Trace
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.writer import save_trace
from stepsight.training.evaluate.gallery import read_gallery

# Of the gallery, whose first traces show most; the others are a link away.
_EXAMPLES = 12
# Seconds for which the first response waits for a judgment. What takes longer, the page's script asks for.
_SOON = 0.4


def check_address(query: Mapping[str, str]) -> None:
    """Raises `UserError` where the address holds a permalink that cannot be opened."""
    if query.get("s"):
        read_query(query)


@dataclass(frozen=True)
class ScorePage:
    """The page with these evaluators, which saves to this store unless it is `read_only`."""

    store: Store
    evaluators: Evaluators
    read_only: bool = False

    @property
    def events(self) -> dict[str, Event]:
        """What the page's script asks for, by name."""
        events: dict[str, Event] = {
            "split": self.split,
            "write": self.write,
            "score": self.score,
            "open": self.open,
        }
        return events if self.read_only else events | {"save": self.save}

    def content(self, request: Request) -> Markup:
        """The page as its address asks for it."""
        query = dict(parse_qsl(request.url.query))
        names = self.evaluators.names
        entered = {"problem": "", "text": "", "evaluators": [], "steps": EMPTY, "result": Markup()}
        is_late = bool(query.get("s")) and not self._is_soon(query)
        entered |= self._opened(query, request, is_late=is_late)
        return render(
            "score/page.html",
            entered=entered,
            chosen=entered["evaluators"] or names[:1],
            is_late=is_late,
            names=names,
            examples=_examples(names[0]),
            dataset=DATASET,
            traces=len(read_gallery()),
        )

    def split(self, text: str) -> dict[str, Any]:
        """How a text is split into steps."""
        return {"steps": split_html(text)}

    def write(self, values: dict[str, Any]) -> dict[str, Any]:
        """The text of corrected steps, and how it is split: into the same steps."""
        return _written(PageState.read(values))

    def score(self, values: dict[str, Any], request: gr.Request) -> dict[str, Any]:
        """The result of what is entered, against the one in view before it where this is an edit of that; with the
        text of the steps and their split where a step was edited."""
        state = PageState.read(values)
        before = state.earlier if _is_again(state) else state.before
        result = self._judged(state.form, before, request, kept=state.kept)
        return {"result": result} | (_written(state) if state.steps is not None else {})

    def open(self, query: str, evaluators: list[str] | None, request: gr.Request) -> dict[str, Any]:
        """What an address brings into the page, empty without a permalink; judged by other `evaluators`
        unless that is None."""
        return self._opened(dict(parse_qsl(query.removeprefix("?"))), request, evaluators)

    def save(self, values: dict[str, Any], request: gr.Request) -> dict[str, Any]:
        """Save the result in view with its judgments, and say where it is; where it has no permalink, what is
        entered."""
        require(request, Right.WRITE)
        state = PageState.read(values)
        form = ScoreForm.from_token(state.token) if state.token else state.form
        saved = save_trace(self.store, form.trace(), state.dataset)
        for name in (name for name in form.evaluators if name in self.evaluators.names):
            judgment = self.evaluators.judge(name, saved.trace)
            save_judgments(self.store, self.evaluators.register(self.store, name).id, [judgment])
        return {"saved": render("score/saved.html", saved=saved)}

    def _only_looks(self, request: Asked) -> bool:
        return self.read_only or not has_right(request, Right.WRITE)

    def _is_soon(self, query: Mapping[str, str]) -> bool:
        """Whether the result of an address is there in a moment; it is begun."""
        try:
            form = read_query(query)
            trace = form.trace()
            begun = [self.evaluators.begin(name, trace) for name in form.evaluators]
        except UserError:
            return True
        return not wait(begun, timeout=_SOON).not_done

    def _opened(
        self,
        query: Mapping[str, str],
        request: Asked,
        evaluators: Sequence[str] | None = None,
        *,
        is_late: bool = False,
    ) -> dict[str, Any]:
        """What an address brings; without the result where that `is_late`."""
        if not query.get("s"):
            return {}
        try:
            form = read_query(query)
        except UserError as error:
            return {"result": notice_html(str(error))}
        if evaluators is not None:
            form = replace(form, evaluators=tuple(evaluators))
        return {
            "problem": form.problem,
            "text": form.text,
            "evaluators": [name for name in form.evaluators if name in self.evaluators.names],
            "steps": split_html(form.text),
            "result": Markup() if is_late else self._result(form, query, request),
        }

    def _result(self, form: ScoreForm, query: Mapping[str, str], request: Asked) -> Markup:
        before = query.get("kept") or query.get("before", "")
        return self._judged(form, before, request, kept="kept" in query)

    def _judged(self, form: ScoreForm, before: str, request: Asked, *, kept: bool) -> Markup:
        """The result, with that of an earlier solution; that the person sees scores of both is noted before."""
        note_scored(self.store, find_user_of(request), *_texts(form, before))
        return result_html(
            self.evaluators,
            form,
            before,
            kept=kept,
            read_only=self._only_looks(request),
            has_left=partial(has_left, request),
        )


def _is_again(state: PageState) -> bool:
    """Whether what is entered is the solution of the result in view, scored once more."""
    if state.kept or not state.before:
        return False
    try:
        before, now = ScoreForm.from_token(state.before).trace(), state.form.trace()
    except UserError:
        return False
    return (before.problem, before.substeps) == (now.problem, now.substeps)


def _texts(form: ScoreForm, before: str) -> list[Trace]:
    """What is entered, and the solution that it is compared with; without one that is none."""
    texts = []
    for read in (form.trace, lambda: ScoreForm.from_token(before).trace()):
        with suppress(UserError):
            texts.append(read())
    return texts


def _written(state: PageState) -> dict[str, Any]:
    text = state.text
    return {"text": text, "steps": split_html(text)}


@cache
def _examples(evaluator: str) -> list[tuple[str, str]]:
    """The title and the address of each example, judged by an evaluator."""
    return [
        (str(trace.meta.get("title", trace.id)), f"/?s={ScoreForm.of(trace, [evaluator]).token()}")
        for trace in read_gallery()[:_EXAMPLES]
    ]
