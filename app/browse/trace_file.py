"""A stored trace with its judgments as a file: JSON, or CSV with a row per sub-step, evaluator and mode."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Depends, Request
from starlette.datastructures import QueryParams
from starlette.responses import Response

from stepsight.app.access.rights import Needs, Right, find_user_of, note_shown
from stepsight.app.browse.address import Address
from stepsight.app.browse.evaluator_choice import list_choices, shown_choices
from stepsight.app.browse.trace_judgments import TraceJudgments, judge_trace
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.failures import error_response
from stepsight.core.errors import UserError
from stepsight.core.files.csv_cells import csv_text
from stepsight.core.files.jsonl import format_trace
from stepsight.core.judgment import Mode, judgment_record
from stepsight.core.label import LABEL_NAMES
from stepsight.core.scores import Outputs, StepScores, Thresholds, verdict_word
from stepsight.core.trace import Step
from stepsight.storage.database.store import Store
from stepsight.storage.traces.queries import StoredTrace, get_trace

JSON_PATH = "/browse/trace.json"
CSV_PATH = "/browse/trace.csv"

_DIGITS = 6
_PLACE = ("step", "substep", "text", "gold")
_NUMBERS = (*LABEL_NAMES, "validity", "spread", "verdict")
_HEAD = (*_PLACE, "evaluator", "mode", *_NUMBERS)


def router(store: Store, evaluators: Evaluators) -> APIRouter:
    """Both files of a trace, under the query of its page."""
    routes = APIRouter(include_in_schema=False, dependencies=[Depends(Needs(Right.READ))])

    def answer(request: Request) -> Response:
        try:
            trace, answers = _read(store, evaluators, request.query_params)
            note_shown(store, find_user_of(request), [trace.trace_id])
        except UserError as error:
            return error_response(request.scope, error)
        if request.url.path == CSV_PATH:
            return _file(trace_csv(trace, answers), "text/csv; charset=utf-8", trace, "csv")
        text = json.dumps(trace_record(trace, answers), ensure_ascii=False)
        return _file(text, "application/json", trace, "json")

    for path in (JSON_PATH, CSV_PATH):
        routes.add_api_route(path, answer, methods=["GET"])
    return routes


def trace_record(trace: StoredTrace, answers: Sequence[TraceJudgments]) -> dict[str, Any]:
    """A row of the plain format, with `dataset`, `first_error` (a step counted from 1, null for none), `valid` (per
    step, null where the gold says nothing) and `judgments`."""
    return format_trace(trace) | {
        "dataset": trace.dataset,
        "first_error": None if trace.first_error is None else trace.first_error + 1,
        "valid": [step.valid for step in trace.steps],
        "judgments": [record for answer in answers for record in _judgments(trace, answer)],
    }


def trace_csv(trace: StoredTrace, answers: Sequence[TraceJudgments]) -> str:
    """A row per sub-step, evaluator and mode; cells are empty where nothing was said."""
    rows = [row for answer in answers for row in _rows(trace, answer)]
    if not rows:
        rows = [[*_place(trace, i), *[None] * (len(_HEAD) - len(_PLACE))] for i in range(len(trace.substeps))]
    return csv_text([_HEAD, *rows])


def _read(store: Store, evaluators: Evaluators, query: QueryParams) -> tuple[StoredTrace, list[TraceJudgments]]:
    address, problems = Address.read({key: query.getlist(key) for key in query})
    if problems or address.trace is None:
        raise UserError("; ".join(problems) or "No trace is named.", "Follow the link on the page of a trace.")
    trace = get_trace(store, address.trace)
    choices = list_choices(store, evaluators, trace.dataset_id)
    return trace, judge_trace(store, evaluators, shown_choices(choices, address), trace)


def _gold_word(step: Step) -> str | None:
    """The gold of a step: its label, `valid` where that is all that is known, None where there is none."""
    if step.label is not None:
        return step.label.text
    return "valid" if step.valid else None


def _substep_numbers(scores: StepScores, i: int, outputs: Outputs, thresholds: Thresholds) -> dict[str, Any]:
    """What an evaluator says of sub-step `i`, by column; probabilities of zero stand for nothing."""
    probs = scores.probs[i]
    if not probs.any():
        return {}
    verdict = {"verdict": verdict_word(probs, thresholds, outputs)}
    if outputs.in_words:
        return verdict
    numbers = {"validity": _rounded(scores.validity[i])}
    if scores.spread is not None:
        numbers["spread"] = _rounded(scores.spread[i])
    if outputs != Outputs.THREE_WAY:
        return numbers | verdict
    three = dict(zip(LABEL_NAMES, map(_rounded, probs), strict=True))
    return three | numbers | {"redundancy": three["neu"]} | verdict


def file_address(path: str, address: Address) -> str:
    """The address of a file of the trace that an address shows, as an attribute's value."""
    kept = ("trace", "evaluator", "against", "other", "beside")
    short = Address(**{name: getattr(address, name) for name in kept})
    return short.url(path)


def _file(text: str, kind: str, trace: StoredTrace, ending: str) -> Response:
    name = f'attachment; filename="trace-{trace.trace_id}.{ending}"'
    return Response(text, media_type=kind, headers={"content-disposition": name})


def _judgments(trace: StoredTrace, answer: TraceJudgments) -> Iterator[dict[str, Any]]:
    if answer.outputs == Outputs.THREE_WAY:
        for judgment in answer.judgments:
            yield judgment_record(judgment, answer.name, answer.thresholds) | {"stored": answer.stored}
        return
    for judgment in answer.judgments:
        if judgment.hindsight is not None:
            record = judgment_record(judgment, answer.name, answer.thresholds, answer.outputs)
            yield record | {"stored": answer.stored}
            continue
        record = {"id": trace.id, "evaluator": answer.name, "mode": judgment.mode.value}
        record["stored"] = answer.stored
        scores = answer.modes.get(judgment.mode)
        if scores is not None:
            record["steps"] = [_substep_record(answer, judgment.mode, i) for i in range(len(scores))]
        if judgment.solution is not None:
            record["says_of_solution"] = judgment.solution
        if judgment.rationale:
            record["rationale"] = judgment.rationale
        if judgment.spent is not None:
            record["spent"] = asdict(judgment.spent)
        yield record


def _substep_record(answer: TraceJudgments, mode: Mode, i: int) -> dict[str, Any] | None:
    """What an evaluator that does not give three probabilities says of a sub-step."""
    if answer.silent[mode][i]:
        return None
    scores = answer.modes[mode]
    if answer.outputs.in_words:
        return {"label": LABEL_NAMES[int(scores.probs[i].argmax())]}
    spread = {} if scores.spread is None else {"spread": _rounded(scores.spread[i])}
    return {"validity": _rounded(scores.validity[i])} | spread


def _rows(trace: StoredTrace, answer: TraceJudgments) -> Iterator[list[object]]:
    for mode, scores in answer.modes.items():
        for i in range(len(scores)):
            numbers = _substep_numbers(scores, i, answer.outputs, answer.thresholds)
            yield [*_place(trace, i), answer.name, mode.value, *map(numbers.get, _NUMBERS)]


def _place(trace: StoredTrace, i: int) -> list[object]:
    owner = int(trace.owners[i])
    substep = i - int((trace.owners < owner).sum())
    return [owner + 1, substep + 1, trace.substeps[i], _gold_word(trace.steps[owner])]


def _rounded(value: float) -> float:
    return round(float(value), _DIGITS)
