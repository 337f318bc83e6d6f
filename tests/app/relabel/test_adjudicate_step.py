"""A step with what was said of it, and the form that decides it."""

import re
from datetime import UTC, datetime

import pytest

from stepsight.app.relabel.adjudicate_step import agreed_html, disagreed_html, label_html
from stepsight.core.trace import Step
from stepsight.storage.labelling.results.answers import SubmittedAnnotation
from stepsight.storage.labelling.results.decisions import Decision

NOW = datetime(2026, 11, 21, 14, 30, tzinfo=UTC)
STEP = Step(("So <3>.", "Done."))


def answer(label: str | None, comment: str = "", exposed: frozenset[str] = frozenset()) -> SubmittedAnnotation:
    """Of one step."""
    return SubmittedAnnotation(
        item_id=1,
        slot_id=1,
        trace_id=1,
        external_id="a",
        dataset="sums",
        user_id=1,
        user="anna",
        chosen="ordered",
        digest="",
        view="whole",
        labels=(label,),
        first=(label,),
        errors={0: "circular"} if label == "neg" else {},
        comments={0: comment} if comment else {},
        corrections={},
        flag=None,
        exposed=exposed,
        guideline=1,
        submitted=NOW,
        seconds=1.0,
    )


def decision(label: str | None, reason: str = "So.", *, own: bool = False) -> Decision:
    return Decision(1, 0, label, reason, "<judge>", NOW, own)


def test_a_step_on_which_all_agree() -> None:
    html = agreed_html(0, STEP, [answer(None), answer("neu"), answer("neu")])
    assert '<span class="label neu">○ neu</span>' in html
    assert "So &lt;3&gt;." in html
    assert "no label" in agreed_html(0, STEP, [answer(None)])
    assert label_html(None) == '<span class="g none">no label</span>'


def test_what_was_said() -> None:
    said = [("A", answer("neg", "Why <b>?", frozenset({"scores", "gold"}))), ("B", answer("unsure"))]
    html = disagreed_html(0, STEP, said, [])
    rows = re.findall(r"<tr><th scope=\"row\">(.*?)</tr>", html, re.DOTALL)
    assert [row[0] for row in rows] == ["A", "B"]
    assert "Why &lt;b&gt;?" in rows[0]
    assert "circular" in rows[0]
    assert "had seen gold, scores" in rows[0]
    assert "? unsure" in rows[1]
    assert "anna" not in html
    assert '<li class="open" id="step-1" data-step="0"' in html


def test_the_form() -> None:
    html = disagreed_html(0, STEP, [("A", answer("neg"))], [])
    assert re.findall(r'value="(\w*)" required\s*> <kbd>(\d)</kbd>', html) == [
        ("neg", "1"), ("neu", "2"), ("pos", "3"), ("", "0"),
    ]  # fmt: skip
    assert ">Decide</button>" in html
    # It does nothing before the script is there.
    assert '<form class="decision" method="dialog">' in html


@pytest.mark.parametrize(("label", "value"), [("pos", "pos"), (None, "")])
def test_a_decision(label: str | None, value: str) -> None:
    html = disagreed_html(
        0, STEP, [("A", answer("neg"))], [decision("neg", "First <it>."), decision(label, own=True)]
    )
    assert re.findall(r'value="(\w*)" required\s+checked', html) == [value]
    assert ">Change</button>" in html
    assert "&lt;judge&gt;, who labelled it too, 2026-11-21 14:30" in html
    # The earlier one stays to be seen.
    assert html.index("Decided otherwise before") < html.index("First &lt;it&gt;.")
    assert '<li class="decided"' in html
