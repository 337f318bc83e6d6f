"""Judgments as OpenTelemetry's events `gen_ai.evaluation.result`, in the JSON Lines of OTLP files.

    {"resourceLogs": [{"resource": …, "scopeLogs": [{"scope": …, "logRecords": [{"eventName":
      "gen_ai.evaluation.result", "attributes": [{"key": "gen_ai.evaluation.name", "value": …}, …]}]}]}]}

An event is the verdict of an evaluator on a sub-step in a mode. Its response, `gen_ai.response.id`, is the trace's
id; attributes of our own name the dataset, the step, the evaluator and the mode. A sub-step that is not judged has
no event. Collectors read such files with the receiver `otlpjsonfile`. Sources: the semantic conventions of
OpenTelemetry for generative AI, and its file exporter of OTLP.
"""

import json
import math
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from stepsight import __version__
from stepsight.core.arrays import DIGITS

if TYPE_CHECKING:
    import pandas as pd

NAME = "opentelemetry"
"""The name of the format in commands."""

_EVENT = "gen_ai.evaluation.result"
_EVALUATION = "stepsight.validity"
# The columns that become attributes of our own.
_OURS = ("dataset", "step", "substep", "evaluator", "fingerprint", "mode")
_LABELS = {True: "valid", False: "invalid"}
_INFO = 9


def event_parts(frames: "Iterable[pd.DataFrame]") -> Iterator[bytes]:
    """Yield a line of OTLP for each frame of `judgment_frames` with its events."""
    moment = str(time.time_ns())
    for frame in frames:
        records = [record for row in frame.to_dict("records") if (record := _record(row, moment)) is not None]
        if records:
            scope = {"scope": {"name": "stepsight", "version": __version__}, "logRecords": records}
            resource = {"attributes": _attributes({"service.name": "stepsight"})}
            logs = {"resourceLogs": [{"resource": resource, "scopeLogs": [scope]}]}
            yield f"{json.dumps(logs, ensure_ascii=False)}\n".encode()


def _record(row: Mapping[Any, Any], moment: str) -> dict[str, Any] | None:
    """Return the event of a row, or None if the row has neither a score nor a verdict."""
    score: Any = row.get("validity")
    valid = row.get("valid")
    attributes: dict[str, Any] = {"gen_ai.evaluation.name": _EVALUATION, "gen_ai.response.id": row["trace"]}
    if _is_there(score):
        attributes["gen_ai.evaluation.score.value"] = round(float(score), DIGITS)
    if _is_there(valid):
        attributes["gen_ai.evaluation.score.label"] = _LABELS[bool(valid)]
    if len(attributes) == 2:
        return None
    if _is_there(row.get("rationale")):
        attributes["gen_ai.evaluation.explanation"] = row["rationale"]
    attributes |= {f"stepsight.{name}": row[name] for name in _OURS}
    about = {"observedTimeUnixNano": moment, "severityNumber": _INFO, "eventName": _EVENT}
    return about | {"attributes": _attributes(attributes)}


def _is_there(value: Any) -> bool:
    # pandas has values of its own for what is missing.
    return (
        value is not None
        and str(value) not in ("<NA>", "")
        and not (isinstance(value, float) and math.isnan(value))
    )


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        return {"stringValue": value}
    # 64-bit integers are texts in the JSON of protocol buffers.
    return {"doubleValue": value} if isinstance(value, float) else {"intValue": str(value)}
