"""The component on its own: what it makes of the values that an event can give it."""

import re
from dataclasses import replace
from pathlib import Path

import gradio as gr
import pytest

from stepsight import StepScores
from stepsight.app.demo import step_scores
from stepsight.app.score.files import judgments_row
from stepsight.core.judgment import Mode
from stepsight.core.judgment_record import judgment_record
from stepsight.core.scores import Thresholds
from stepsight.core.trace import Trace
from tests.app.elements import INJECTION, read
from tests.messages import refused

TRACE = Trace.of(f"What is $2 + 3$? {INJECTION}", ["2 + 3 = 6.", ["So", "6."]])


@pytest.fixture
def component():
    with gr.Blocks():
        yield StepScores(thresholds=Thresholds(0.9, 0.1))


@pytest.fixture
def judgment(evaluators):
    return evaluators.judge("tiny", TRACE)


def bars(html):
    return [bar["title"] for bar in read(html).all(cls="bar")]


def test_a_judgment_is_shown_with_a_bar_for_each_step_and_mode_and_its_triangle(component, judgment):
    shown = read(component.postprocess(judgment))
    assert len(shown.all(cls="bar")) == 6
    assert [cell.text for cell in shown.one(cls="triangle").all("td", cls="online")] == [
        f"{value:.2f}" for value in judgment.online.validity
    ]
    assert "<img src=x onerror=alert(1)>" in shown.one("div", cls="q").text
    assert component.postprocess(None) is None


def test_several_judgments_stand_beside_each_other_under_their_names(component, judgment):
    offline = replace(judgment, mode=Mode.OFFLINE, result=judgment.offline)
    shown = read(component.postprocess({"one": judgment, "two": offline}))
    assert [one.all("strong")[0].text for one in shown.one("ul", cls="answers").all("li")] == ["one", "two"]
    assert len(shown.all(cls="bar")) == 9
    assert [one.text for one in shown.all(cls="name")] == ["Hindsight, one"]


def test_a_downloaded_record_is_shown_as_the_judgment_at_its_own_thresholds(component, evaluators, judgment):
    record = judgment_record(judgment, evaluators.about("tiny"), Thresholds(0.9, 0.1))
    row = judgments_row(TRACE, [dict.fromkeys(Mode, record)])
    with gr.Blocks():
        other = StepScores()
    assert bars(other.postprocess(row)) == bars(component.postprocess({"tiny": judgment}))


NOTHING = {"problem": "a", "judgments": []}


@pytest.mark.parametrize("value", ["<b>", [3], NOTHING, {"problem": "a", "steps": ["b"], "judgments": [{}]}])
def test_any_other_value_is_refused(component, value):
    with refused():
        component.postprocess(value)


def test_the_style_sheet_is_no_template_and_lays_out_by_the_width_of_the_component():
    style = step_scores.style()
    assert not re.search(r"`|\$\{|\{\{|@media \(m|\\", style.replace("\\\\", ""))
    assert "#ff8a5b" in style.partition(".dark & .step-scores")[2]


def test_gradio_writes_no_stub_beside_the_module():
    assert not Path(step_scores.__file__).with_suffix(".pyi").exists()
