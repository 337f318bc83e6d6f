"""Messages and calls of an agent on pages."""

import re

from markupsafe import Markup

from stepsight.app.agents.context_html import before_html, calls_html
from stepsight.app.annotate.label import in_context
from stepsight.app.browse.trace_view import trace_html
from stepsight.app.evidence.trace import waiting_html
from stepsight.core.context import ContextMessage, ToolCall, TraceContext, turn_text
from stepsight.core.errors import UserError
from stepsight.core.trace import Trace

CALL = ToolCall(0, "search", '{"q": "<b>"}', "c1")
TRACE = Trace.of(
    "When was it?",
    [turn_text("I look.", [CALL]), "In 1838."],
    ["pos", "neg"],
    context=TraceContext(
        (
            ContextMessage(0, "user", "When was it?"),
            ContextMessage(1, "tool", "<i>1838</i>", "search", "c1"),
            ContextMessage(1, "tool", "lost", None, "c9"),
            ContextMessage(2, "user", "Thanks."),
        ),
        (CALL,),
    ),
)


def words(html: Markup) -> str:
    return " ".join(re.sub(r"<[^<>]*>", " ", html).split())


def test_messages_and_calls_are_folded_with_their_whole_text_inside() -> None:
    html = before_html(TRACE, 1)
    assert html.count("<details>") == 2
    assert '<pre dir="auto" tabindex="0">&lt;i&gt;1838&lt;/i&gt;</pre>' in html
    assert words(html).startswith("tool search &lt;i&gt;1838&lt;/i&gt;")
    assert words(html).endswith("tool it answers no call of this trace lost lost")
    assert "calls search" in words(calls_html(TRACE, 0))
    assert "{\n  &#34;q&#34;: &#34;&lt;b&gt;&#34;\n}" in calls_html(TRACE, 0)
    assert calls_html(TRACE, 1) == Markup()


def test_broken_arguments_are_marked_and_a_long_text_is_cut_with_the_rest_counted() -> None:
    context = TraceContext((ContextMessage(0, "tool", "x" * 5_000_000),), (ToolCall(0, "f", '{"q": "un'),))
    trace = Trace.of("q", ["f"], context=context)
    assert "its arguments are not JSON" in words(calls_html(trace, 0))
    html = before_html(trace, 0)
    assert len(html) < 25_000
    assert "4,980,000 more characters, which the trace’s JSON has." in words(html)


def test_browse_shows_a_call_once_and_every_message_in_its_place() -> None:
    html = trace_html(TRACE, [], "")
    shown = re.findall(r"<b>(user|tool search|tool|calls search)</b>|>(I look\.|In 1838\.)", html)
    assert ["".join(one) for one in shown] == [
        "user", "I look.", "calls search", "tool search", "tool", "In 1838.", "user",
    ]  # fmt: skip
    assert "search({" not in words(html)


def test_a_step_to_be_labelled_stands_between_what_came_before_and_its_calls() -> None:
    first, last = (in_context(TRACE, number) for number in range(2))
    assert (first.step.text, last.step.text) == ("I look.", "In 1838.")
    assert [words(one)[:14] for one in (first.before, first.after, last.after)] == [
        "user When was ", "calls search {", "user Thanks. T",
    ]  # fmt: skip
    plain = in_context(Trace.of("q", ["a"]), 0)
    assert (plain.before, plain.after, plain.step.text) == ("", "", "a")


def test_a_trace_that_is_still_judged_and_its_evidence_fold_calls_as_browse_does() -> None:
    html = waiting_html(TRACE, "t", UserError("It is judged."), [])
    shown = re.findall(r"<b>(user|tool search|tool|calls search)</b>|>(I look\.|In 1838\.)", html)
    assert ["".join(one) for one in shown] == [
        "user", "I look.", "calls search", "tool search", "tool", "In 1838.", "user",
    ]  # fmt: skip
    assert "search({" not in words(html)
