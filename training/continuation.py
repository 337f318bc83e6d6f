"""The rest of a solution whose labels stop at its first error.

A record of PRM800K's phase 2 keeps the solution as it was generated, of which only the first steps were labelled:

    {"question": {"problem": "…", "pre_generated_steps": ["I notice …", "So 60 …", "That gives me 7200 ways.",
     "# Answer\\n\\n7200"]}, "label": {"steps": [ … two steps … ], "finish_reason": "found_error"}}
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core.errors import UserError
from core.trace import Step, Trace

_KEY = "pre_generated_steps"
CONTINUED, COMPLETE, NOT_CONTINUED = "continued", "complete", "not_continued"


def continue_trace(trace: Trace) -> tuple[Trace, str]:
    """The trace with the generated steps that follow its labelled ones, unlabelled, and what was done.

    `continued`: steps were appended. `complete`: the labels reach the end of the solution. `not_continued`: the
    rest is not known, or the trace went another way than the generated solution; the trace is as it was.
    Raises `UserError` where the meta holds a rest that is no list of texts.
    """
    generated = _generated(trace)
    labelled = [step.text for step in trace.steps]
    if generated is None:
        return trace, COMPLETE if trace.meta.get("finish_reason") == "solution" else NOT_CONTINUED
    if generated[: len(labelled)] != labelled:
        return trace, NOT_CONTINUED
    rest = tuple(Step((text,)) for text in generated[len(labelled) :] if text.strip())
    return (replace(trace, steps=trace.steps + rest), CONTINUED) if rest else (trace, COMPLETE)


def _generated(trace: Trace) -> list[str] | None:
    meta: Mapping[str, Any] = trace.meta
    found = meta.get(_KEY)
    if found is None:
        return None
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        raise UserError(f"trace {trace.id!r}: the field {_KEY!r} is no list of texts.", "Check the file.")
    return found
