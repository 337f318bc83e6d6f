"""Trajectories in Harbor's Agent Trajectory Interchange Format, ATIF 1.x (`stepsight import atif`).

    {"schema_version": "ATIF-v1.4", "session_id": "025B…", "agent": {"name": "harbor-agent", "version": "1.0.0"},
     "steps": [{"step_id": 1, "source": "user", "message": "What is …?"},
       {"step_id": 2, "source": "agent", "message": "I search.", "reasoning_content": "…",
        "tool_calls": [{"tool_call_id": "c1", "function_name": "search", "arguments": {"ticker": "GOOGL"}}],
        "observation": {"results": [{"source_call_id": "c1", "content": "185.35"}]}}]}

Steps of the agent are steps; those of the system and of users are context, and so are the results of an
observation, which follow their step. A result that only refers to the trajectory of another agent becomes a line
that names it. The id is `trajectory_id`, or else `session_id`. The specification is the RFC 0001 of Harbor.
"""

import json
from collections.abc import Mapping
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.trace import Trace
from stepsight.storage.importers.agents.turns import Turns
from stepsight.storage.importers.agents.unread import Unread
from stepsight.storage.importers.rows.fields import ASIDE, content_id, describe, identifier, listed, located, rest
from stepsight.storage.importers.rows.kind import FileKind, Row, choosing_thoughts

# The end of the key under which the trajectories of agents that did part of the work are named.
_REFERENCE = "agent_trajectory_ref"
_IDS = ("trajectory_id", "session_id")
# The fields of a step that are read, and those that only number it.
_READ = ("source", "message", "reasoning_content", "tool_calls", "observation", "step_id", "timestamp")


def parse(row: Row, where: str, thoughts: str = ASIDE) -> Trace:
    """Parse a trajectory. Raises `UserError` if it has no step of the agent or no message of a user, or if a step
    has any other form."""
    with located(where):
        turns = Turns(thoughts)
        for number, step in enumerate(listed(row, "steps"), start=1):
            if not isinstance(step, dict) or not isinstance(step.get("source"), str):
                raise UserError(f"step {number} is {describe(step)} without a source.", "Expected ATIF's steps.")
            _read(turns, step, number)
        key = next((key for key in _IDS if row.get(key) is not None), "")
        return turns.trace(identifier(row, key) if key else content_id(row), rest(row, "steps"))


def _read(turns: Turns, step: Mapping[str, Any], number: int) -> None:
    calls = step.get("tool_calls") or []
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        raise UserError(f"the calls of step {number} are {describe(calls)}, expected a list of objects.")
    source = step["source"]
    turns.leave(Unread.FIELD, (key for key, one in step.items() if key not in _READ and one not in (None, {}, [])))
    turns.read(
        {
            "role": "assistant" if source == "agent" else source,
            "content": step.get("message"),
            "reasoning_content": step.get("reasoning_content"),
            "tool_calls": [
                {
                    "id": call.get("tool_call_id"),
                    "name": call.get("function_name"),
                    "arguments": call.get("arguments"),
                }
                for call in calls
            ],
        },
        number,
    )
    observation = step.get("observation")
    results = observation.get("results") if isinstance(observation, dict) else None
    for result in results if isinstance(results, list) else []:
        if not isinstance(result, dict):
            raise UserError(f"a result of step {number} is {describe(result)}, expected an object.")
        named = [
            f"[{key}] {json.dumps(one, ensure_ascii=False)}"
            for key, references in result.items()
            if key.endswith(_REFERENCE)
            for one in (references if isinstance(references, list) else [references])
        ]
        content = result.get("content")
        parts = content if isinstance(content, list) else [content] if content else []
        turns.read(
            {"role": "tool", "content": [*parts, *named], "tool_call_id": result.get("source_call_id")}, number
        )


KIND = choosing_thoughts(
    FileKind(
        name="atif",
        title="agents' trajectories in ATIF, as Harbor writes them",
        fields=frozenset({"schema_version", "agent", "steps"}),
        holds=lambda row: str(row.get("schema_version")).upper().startswith("ATIF"),
        parse=parse,
    ),
    parse,
)
