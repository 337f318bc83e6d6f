"""The tools of the Model Context Protocol: judging steps, checking equations, and finding traces of the store."""

from collections.abc import Sequence
from concurrent.futures import TimeoutError as WaitTimeoutError
from functools import partial
from typing import Any

from pydantic import BaseModel, Field

from stepsight.app.api.models import Context, ScoreRequest, SolutionRequest, StepInfo, TraceLine, TraceQuery
from stepsight.app.api.traces import step_infos, trace_page
from stepsight.app.mcp.protocol import Tool
from stepsight.app.scoring.gallery_seed import open_evaluators
from stepsight.app.scoring.limits import REQUEST_SECONDS, REQUEST_TOKENS
from stepsight.core.equations.evaluator import checks_of
from stepsight.core.equations.wording import finding
from stepsight.core.errors import UserError
from stepsight.core.judgment_record import JudgmentRecord
from stepsight.core.models.placement import Placement
from stepsight.core.trace import Trace
from stepsight.storage.database.store import Store
from stepsight.storage.traces.queries import get_trace
from stepsight.training.evaluate.strength import concluded_record


class CheckedEquation(BaseModel):
    """An equation, or a number taken over from the problem or an earlier step."""

    step: int
    substep: int
    text: str = Field(description="The equation as it is written.")
    holds: bool
    right: str = Field(description="What is right; empty if it holds or if that is not known.")
    finding: str = Field(description="What is wrong, in one line; empty if it holds.")


class CheckedEquations(BaseModel):
    checked: int
    failing: int
    equations: list[CheckedEquation]


class TraceSearch(TraceQuery):
    """The dataset and the conditions of its Browse page."""

    dataset: str = Field(description="The name of a dataset of the store.")
    limit: int = Field(10, ge=1, le=100)


class FoundTrace(TraceLine):
    solution: list[StepInfo] = Field(description="The steps with their gold labels.")


class FoundTraces(BaseModel):
    total: int = Field(description="The number of traces that meet the conditions.")
    traces: list[FoundTrace]


def open_tools(store: Store, evaluators: Sequence[str], place: Placement | None) -> list[Tool[Any]]:
    """Return the tools on a store, which judge with the shipped and the given evaluators. Raises the errors of
    `open_evaluators`."""
    opened = open_evaluators(store, evaluators, place, REQUEST_TOKENS)
    return build_tools(Context(store, opened, read_only=True, seconds=REQUEST_SECONDS))


def build_tools(context: Context) -> list[Tool[Any]]:
    return [
        Tool(
            "score_steps",
            "Judge the steps of a solution",
            "Judge every step of a solution of a mathematical problem: validity and verdict of each step, offline"
            " (with the whole solution in view), online (with the steps up to it) or in hindsight (both, and after"
            " every later step). Give each step as a text. The steps of an agent are its turns; messages and tools'"
            " results between them go into context. Nothing is stored.",
            ScoreRequest,
            JudgmentRecord,
            partial(_score, context),
        ),
        Tool(
            "check_equations",
            "Check the equations of a solution",
            "Work out every equation in the steps of a solution exactly, and say which hold, which fail and what is"
            " right. Numbers that are taken over wrongly from the problem or an earlier step are found too."
            " Equations that are not certain are left out.",
            SolutionRequest,
            CheckedEquations,
            _check,
        ),
        Tool(
            "find_traces",
            "Find solutions of a dataset",
            "Find stored solutions (traces) of a dataset by text (q), gold labels, metadata, length and the"
            " verdicts of evaluators, with their problem, steps and gold labels.",
            TraceSearch,
            FoundTraces,
            partial(_find, context),
        ),
    ]


def _score(context: Context, asked: ScoreRequest) -> JudgmentRecord:
    name = asked.evaluator or context.evaluators.default
    evaluator = context.evaluators.about(name)
    trace = Trace.of(asked.problem, asked.steps, context=asked.context)
    thresholds = context.evaluators.thresholds(context.store, name)
    scoring = context.evaluators.submit(name, trace, asked.mode, asked.hindsight_budget)
    try:
        judgment = scoring.result(context.seconds)
    except WaitTimeoutError:
        scoring.cancel()
        raise UserError(
            f"This took longer than the {context.seconds:g} s that a call may take.",
            "Send fewer steps, a smaller hindsight_budget, or choose another mode than hindsight.",
        ) from None
    return concluded_record(judgment, evaluator, thresholds, name=name)


def _check(asked: SolutionRequest) -> CheckedEquations:
    trace = Trace.of(asked.problem, asked.steps)
    found = [
        CheckedEquation(
            step=step,
            substep=substep,
            text=trace.substeps[i][check.start : check.end],
            holds=check.holds,
            right=check.right,
            finding="" if check.holds else finding(trace, i, check),
        )
        for i, ((step, substep), part) in enumerate(zip(trace.places, checks_of(trace), strict=True))
        for check in part
    ]
    failing = sum(not one.holds for one in found)
    return CheckedEquations(checked=len(found), failing=failing, equations=found)


def _find(context: Context, asked: TraceSearch) -> FoundTraces:
    page = trace_page(context, asked.dataset, asked)
    traces = [
        FoundTrace(**line.model_dump(), solution=step_infos(get_trace(context.store, line.trace)))
        for line in page.traces
    ]
    return FoundTraces(total=page.total, traces=traces)
