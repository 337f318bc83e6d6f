"""The context of an agent's step as pages show it: messages before the step and the calls in it, each folded."""

from dataclasses import dataclass

from markupsafe import Markup

from stepsight.app.web.html import macro
from stepsight.core.context import ContextMessage, ToolCall, said_text
from stepsight.core.trace import Trace

_TEMPLATE = "agents/context.html"
_GIST = 120
MOST_SHOWN = 20_000
"""The most characters of a message or of arguments that a page holds. The trace's JSON has all of it."""


@dataclass(frozen=True)
class ShownText:
    """A text cut to the length that a page shows. `gist` is its beginning on one line, and `rest` counts the
    characters that are cut off."""

    text: str
    gist: str
    rest: int

    @classmethod
    def of(cls, text: str) -> "ShownText":
        gist = " ".join(text[: 2 * _GIST].split())[:_GIST]
        return cls(text[:MOST_SHOWN], gist, max(0, len(text) - MOST_SHOWN))


def before_html(trace: Trace, step: int) -> Markup:
    """Render the messages before the step with this 0-based index, or after the last step if `step` is the number
    of steps."""
    messages = trace.context.before(step) if trace.context else ()
    return macro(_TEMPLATE, "before", [(one, ShownText.of(one.text), _remark(trace, one)) for one in messages])


def calls_html(trace: Trace, step: int) -> Markup:
    """Render the calls of the step with this 0-based index."""
    return macro(_TEMPLATE, "calls", [(one, ShownText.of(one.code)) for one in _calls(trace, step)])


def after_html(trace: Trace, step: int) -> Markup:
    """Render everything that follows the text of the step with this 0-based index: its calls and, after the last
    step, the remaining messages."""
    is_last = step == len(trace.steps) - 1
    return calls_html(trace, step) + (before_html(trace, step + 1) if is_last else Markup())


def step_said(trace: Trace, step: int, text: str) -> str:
    """Return a text of the step with this 0-based index without the lines of its calls, which `calls_html`
    shows."""
    return said_text(text, _calls(trace, step))


def said_texts(trace: Trace, steps: range | None = None) -> dict[str, str]:
    """Return `step_said` of each step, or of some, by the text of the step."""
    numbers = range(len(trace.steps)) if steps is None else steps
    return {trace.steps[number].text: step_said(trace, number, trace.steps[number].text) for number in numbers}


def _calls(trace: Trace, step: int) -> tuple[ToolCall, ...]:
    return trace.context.calls_of(step) if trace.context else ()


def _remark(trace: Trace, message: ContextMessage) -> str:
    """Return a remark on anything odd about a message, or ""."""
    known = {one.id for one in trace.context.calls} if trace.context else set()
    return "it answers no call of this trace" if message.call and message.call not in known else ""
