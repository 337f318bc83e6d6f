"""Routes that imitate other reward-model servers, for training loops that already support those.

They are vLLM's POST /pooling and POST /classify, which verl uses too, vLLM's GET /v1/models, and OpenRLHF's remote
reward model. They are at the root of the server, where the clients expect them. Fields that are not needed to find
the texts or the evaluator are ignored, and the rewards returned are always probabilities.
"""

import re
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Depends, Request
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from stepsight.app.api.models import Context, FailedLine, Texts
from stepsight.app.api.scores import AnswerPart, Stream, unless_gone
from stepsight.app.web.access import LOOKING, RequiresRight, Right, find_user_of, request_id
from stepsight.app.web.failures import failure_json
from stepsight.core.arrays import rounded
from stepsight.core.errors import UserError
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.text.response import STEP_TOKEN
from stepsight.core.text.signs import is_blank
from stepsight.core.text.split import split_steps
from stepsight.core.trace import Trace
from stepsight.storage.people.blindness import check_texts

# How chat templates open and close a turn. A turn that is never closed extends to the end of the text.
_TURNS = (
    re.compile(r"<\|im_start\|>(\w{1,20})\n(.*?)(?:<\|im_end\|>|\Z)", re.DOTALL),
    re.compile(r"<\|start_header_id\|>(\w{1,20})<\|end_header_id\|>\n\n(.*?)(?:<\|eot_id\|>|\Z)", re.DOTALL),
    re.compile(r"<start_of_turn>(\w{1,20})\n(.*?)(?:<end_of_turn>|\Z)", re.DOTALL),
)
_SOLVERS = ("assistant", "model")
_QUESTION, _ANSWER, _LEAD = "Question:\n", "\nAnswer:\n", "Let's think step by step.\n"
# The longest closing sequence to look for: searching from every position of a text would take seconds.
_LONGEST_END = 2_000
_ENDS = re.compile(r"(?:\s|</s>|<eos>|<\|endoftext\|>|<\|im_end\|>|<\|eot_id\|>|<\|end_of_text\|>){1,100}\Z")

_HINT = (
    "Send messages, a user's with the problem and an assistant's with the solution, or the text that a chat "
    "template makes of them."
)


@dataclass(frozen=True)
class SentSolution:
    """A solution that a client sent, as a trace. `rows` gives the sub-step of each row of the answer, 0-based."""

    trace: Trace
    rows: tuple[int, ...]


def read_messages(messages: Sequence[Mapping[str, Any]]) -> SentSolution:
    """Read the last solution in a chat and the problem before it. Raises `UserError` if the chat contains no
    solution."""
    turns = [(str(message.get("role")), _content(message.get("content"))) for message in messages]
    return _trace_of_turns(turns)


def read_text(text: str, prompt: str | None = None) -> SentSolution:
    """Read the problem and the solution in a text. The text must be the output of a chat template, have the form
    `Question: ... Answer: ...`, or begin with `prompt`. Otherwise `UserError` is raised."""
    for pattern in _TURNS:
        turns = pattern.findall(text)
        if turns:
            return _trace_of_turns(turns)
    before, closed, solution = text.rpartition("[/INST]")
    if closed:
        return _read_solution(before.rpartition("[INST]")[2], solution)
    problem, answers, solution = text.partition(_ANSWER)
    if answers and problem.startswith(_QUESTION):
        return _read_solution(problem.removeprefix(_QUESTION), solution.removeprefix(_LEAD))
    if prompt and text.startswith(prompt):
        return _read_solution(prompt, text.removeprefix(prompt))
    raise UserError("no problem and solution can be recognised in the text.", _HINT)


def _trace_of_turns(turns: Sequence[tuple[str, str]]) -> SentSolution:
    last = max((place for place, (role, _) in enumerate(turns) if role in _SOLVERS), default=0)
    problem = next((content for role, content in reversed(turns[:last]) if role == "user"), None)
    if problem is None:
        raise UserError("the conversation has no solution after a problem.", _HINT)
    return _read_solution(problem, turns[last][1])


def _read_solution(problem: str, solution: str) -> SentSolution:
    solution = solution[:-_LONGEST_END] + _ENDS.sub("", solution[-_LONGEST_END:])
    problem = problem.strip()
    *ended, rest = [part.strip() for part in STEP_TOKEN.split(solution)]
    if not ended:
        trace = Trace.of(problem, split_steps(solution))
        return SentSolution(trace, tuple(range(len(trace.substeps))))
    steps = [part for part in (*ended, rest) if not is_blank(part)]
    if steps and is_blank(ended[0]):
        raise UserError("there is no step before the first step token.", "Put each step before its token.")
    # The number of steps up to each token.
    counts = accumulate(int(not is_blank(part)) for part in ended)
    return SentSolution(Trace.of(problem, steps), tuple(count - 1 for count in counts))


def _content(content: Any) -> str:
    """Return the content of a chat message as text. If the content is a list of parts, the parts are joined."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    if not all(isinstance(part, Mapping) and isinstance(part.get("text"), str) for part in parts):
        raise UserError("a message contains something other than text.", _HINT)
    return "".join(part["text"] for part in parts)


_MOST = 1000
# The reward of a text that cannot be judged, such as an empty completion. It is the lowest possible reward, since
# clients only accept numbers.
_UNREAD = 0.0


class _Asked(BaseModel):
    """The body of a vLLM request: the texts to judge, and a `mode`, which StepSight adds."""

    model_config = ConfigDict(extra="ignore")

    model: str | None = None
    input: str | Texts | None = Field(None, max_length=1_000_000)
    messages: Annotated[list[dict[str, Any]], Field(fail_fast=True)] | None = Field(None, max_length=_MOST)
    mode: Mode = Mode.OFFLINE


class _RewardAsked(BaseModel):
    """The body of an OpenRLHF request: the texts to judge, and the prompts that they begin with."""

    model_config = ConfigDict(extra="ignore")

    query: Texts = Field(min_length=1, max_length=_MOST)
    prompts: Annotated[list[str | None], Field(fail_fast=True)] | None = Field(None, max_length=_MOST)
    model: str | None = None
    mode: Mode = Mode.OFFLINE


class _Validities(BaseModel):
    """The validities of the sub-steps of one text. `rows` are those of its step tokens."""

    index: int
    steps: list[float]
    rows: list[float]


class _Route(APIRoute):
    """A route that reports a body it cannot decode in the API's error format."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            try:
                return await handle(request)
            except HTTPException as error:
                raise UserError(f"{error.detail}.", "Send JSON in UTF-8.") from None

        return handled


def reward_routes(context: Context) -> APIRouter:
    router = APIRouter(include_in_schema=False, route_class=_Route)
    scoring = [Depends(RequiresRight(Right.SCORE))]

    @router.get("/v1/models", dependencies=[Depends(RequiresRight(*LOOKING))])
    def models() -> dict[str, Any]:
        names = context.evaluators.names
        about = {name: context.evaluators.about(name) for name in names}
        data = [
            {"id": name, "object": "model", "owned_by": "stepsight", "max_model_len": about[name].context}
            for name in names
        ]
        return {"object": "list", "data": data}

    @router.post("/pooling", dependencies=scoring)
    async def pooling(body: _Asked, request: Request) -> Response:
        def listed(name: str, judged: Sequence[_Validities]) -> dict[str, Any]:
            return _list_json("pool", name, [{"object": "pooling", "data": _pairs(line.rows)} for line in judged])

        return await _answer(context, request, body.model, body.mode, partial(_traces, body), listed)

    @router.post("/classify", dependencies=scoring)
    async def classify(body: _Asked, request: Request) -> Response:
        def listed(name: str, judged: Sequence[_Validities]) -> dict[str, Any]:
            pairs = _pairs([min(line.steps) for line in judged])
            labels = ["valid" if valid >= invalid else "invalid" for invalid, valid in pairs]
            rows = [
                {"label": label, "probs": pair, "num_classes": 2} for label, pair in zip(labels, pairs, strict=True)
            ]
            return _list_json("classify", name, rows)

        return await _answer(context, request, body.model, body.mode, partial(_traces, body), listed)

    @router.post("/get_reward", dependencies=scoring)
    async def get_reward(body: _RewardAsked, request: Request) -> Response:
        def listed(name: str, judged: Sequence[_Validities | FailedLine]) -> dict[str, Any]:
            rewards = [min(line.steps) if isinstance(line, _Validities) else _UNREAD for line in judged]
            errors = {str(line.index): line.error for line in judged if isinstance(line, FailedLine)}
            answer = {"rewards": rewards, "scores": rewards, "extra_logs": {}}
            return answer | ({"errors": errors} if errors else {})

        return await _answer(context, request, body.model, body.mode, partial(_read_texts, body), listed, True)

    return router


def _list_json(kind: str, name: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    data = [{"index": place, **row} for place, row in enumerate(rows)]
    return {
        "id": f"{kind}-{request_id()}",
        "object": "list",
        "created": int(time.time()),
        "model": name,
        "data": data,
    }


def _pairs(validities: Sequence[float]) -> list[list[float]]:
    """Return the probabilities of wrong and right for each validity, in the format of a two-class head."""
    return [[rounded(1 - valid), valid] for valid in validities]


def _traces(body: _Asked) -> list[SentSolution | UserError]:
    if body.messages is not None:
        return [read_messages(body.messages)]
    texts = [body.input] if isinstance(body.input, str) else body.input or []
    if not 0 < len(texts) <= _MOST:
        raise UserError(f"input has {len(texts):,} texts.", f"Send messages, or input with 1 to {_MOST:,} texts.")
    sent = [_read_one(text, None) for text in texts]
    for place, entry in enumerate(sent, start=1):
        if isinstance(entry, UserError):
            raise entry.at(f"text {place}") if len(sent) > 1 else entry
    return sent


def _read_texts(body: _RewardAsked) -> list[SentSolution | UserError]:
    """Read each text by itself. Raises `UserError` if none can be read and none begins with its prompt, since the
    request then has another form."""
    prompts = body.prompts or [None] * len(body.query)
    if len(prompts) != len(body.query):
        raise UserError(f"{len(prompts):,} prompts for {len(body.query):,} queries.", "Send one prompt per query.")
    pairs = list(zip(body.query, prompts, strict=True))
    sent = [_read_one(text, prompt) for text, prompt in pairs]
    begins = any(prompt and text.startswith(prompt) for text, prompt in pairs)
    errors = [entry for entry in sent if isinstance(entry, UserError)]
    if len(errors) == len(sent) and not begins:
        raise errors[0]
    return sent


def _read_one(text: str, prompt: str | None) -> SentSolution | UserError:
    try:
        return read_text(text, prompt)
    except UserError as error:
        return error


async def _answer(
    context: Context, request: Request, model: str | None, mode: Mode, read: Any, listed: Any, each: bool = False
) -> Response:
    """Judge the texts that `read` returns. If `each` is True, a text that cannot be judged is listed as a
    `FailedLine`; otherwise it fails the request."""
    name = model or context.evaluators.default
    if context.evaluators.about(name).outputs.in_words:
        raise UserError(
            f"{name} gives verdicts, not numbers.", f"Use one of: {', '.join(context.evaluators.names)}."
        )
    sent: list[SentSolution | UserError] = await to_thread.run_sync(read)
    unread = [
        FailedLine(index=place, error=one.message, hint=one.hint, status=422, retry_after=None)
        for place, one in enumerate(sent)
        if isinstance(one, UserError)
    ]
    parts = [
        AnswerPart(
            (place,),
            partial(context.evaluators.submit, name, one.trace, mode),
            partial(_validities, place, one.rows),
            (one.trace,),
        )
        for place, one in enumerate(sent)
        if isinstance(one, SentSolution)
    ]
    judged: list[Any] = [*unread]
    if parts:
        stream = Stream(parts, context.seconds, partial(check_texts, context.store, find_user_of(request)))
        await stream.begin()
        judged += await unless_gone(request, _collect_answers(stream))
    failed = next((one for one in judged if isinstance(one, FailedLine) and not (each and one.status == 422)), None)
    if failed is not None:
        response = failure_json(failed.status, failed.error, failed.hint)
        if failed.retry_after is not None:
            response.headers["retry-after"] = str(failed.retry_after)
        return response
    return JSONResponse(listed(name, sorted(judged, key=lambda line: line.index)))


async def _collect_answers(stream: Stream) -> list[BaseModel]:
    async with aclosing(stream.answers()) as answers:
        return [line async for some in answers for line in some]


def _validities(place: int, rows: Sequence[int], judgment: Judgment) -> list[_Validities]:
    scores = judgment.online if judgment.mode == Mode.ONLINE else judgment.offline
    assert scores is not None
    steps: list[float] = rounded(scores.validity)
    return [_Validities(index=place, steps=steps, rows=[steps[row] for row in rows])]
