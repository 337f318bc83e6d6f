"""Extracting a problem and the steps of its solution from the requests that clients send to reward models.

A request contains a chat, or the text into which a chat template turned a chat. Steps are separated by the step
token of Qwen2.5-Math-PRM (`<extra_0>`) or of Math-Shepherd (`ки`). A solution without step tokens is split in the
same way as a solution pasted into the Score page.

As on a vLLM server, every step token is read, and nothing else: a step token with no step before it stands for the
steps so far, and text after the last token is a step that is in view but not read.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.text.response import STEP_TOKEN
from stepsight.core.text.signs import is_blank
from stepsight.core.text.split import split_steps
from stepsight.core.trace import Trace

# The ways in which templates open and close a turn. A turn that is not closed extends to the end.
_TURNS = (
    re.compile(r"<\|im_start\|>(\w{1,20})\n(.*?)(?:<\|im_end\|>|\Z)", re.DOTALL),
    re.compile(r"<\|start_header_id\|>(\w{1,20})<\|end_header_id\|>\n\n(.*?)(?:<\|eot_id\|>|\Z)", re.DOTALL),
    re.compile(r"<start_of_turn>(\w{1,20})\n(.*?)(?:<end_of_turn>|\Z)", re.DOTALL),
)
_SOLVERS = ("assistant", "model")
_QUESTION, _ANSWER, _LEAD = "Question:\n", "\nAnswer:\n", "Let's think step by step.\n"
# The longest end that is looked for: a search from every place of a text takes seconds.
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
    for turns in _TURNS:
        found = turns.findall(text)
        if found:
            return _trace_of_turns(found)
    before, closed, solution = text.rpartition("[/INST]")
    if closed:
        return _sent(before.rpartition("[INST]")[2], solution)
    problem, answers, solution = text.partition(_ANSWER)
    if answers and problem.startswith(_QUESTION):
        return _sent(problem.removeprefix(_QUESTION), solution.removeprefix(_LEAD))
    if prompt and text.startswith(prompt):
        return _sent(prompt, text.removeprefix(prompt))
    raise UserError("no problem and solution can be recognised in the text.", _HINT)


def _trace_of_turns(turns: Sequence[tuple[str, str]]) -> SentSolution:
    last = max((place for place, (role, _) in enumerate(turns) if role in _SOLVERS), default=0)
    problem = next((content for role, content in reversed(turns[:last]) if role == "user"), None)
    if problem is None:
        raise UserError("the conversation has no solution after a problem.", _HINT)
    return _sent(problem, turns[last][1])


def _sent(problem: str, solution: str) -> SentSolution:
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
