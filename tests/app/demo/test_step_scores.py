"""The component that shows judged steps, and its style sheet."""

import re
from dataclasses import replace

import pytest

from stepsight.app.demo.step_scores import step_scores_html, style
from stepsight.app.web.step_bars import TraceJudgments
from stepsight.core.judgment import Mode
from stepsight.core.scores import Outputs, Thresholds
from stepsight.core.trace import Trace
from tests.app.elements import INJECTION, read

TRACE = Trace.of(f"What is $2 + 3$? {INJECTION}", ["2 + 3 = 6.", ["So", "6."]])


@pytest.fixture
def judgment(evaluators):
    return evaluators.judge("tiny", TRACE)


def shown(**judgments):
    columns = [
        TraceJudgments(name, Outputs.THREE_WAY, Thresholds(0.9, 0.1), modes, stored=True)
        for name, modes in judgments.items()
    ]
    return read(str(step_scores_html(columns)))


def test_a_judgment_is_shown_with_a_bar_for_each_step_and_mode_and_its_triangle(judgment):
    page = shown(tiny=dict.fromkeys(Mode, judgment))
    assert len(page.all(cls="bar")) == 6
    assert [cell.text for cell in page.one(cls="triangle").all("td", cls="online")] == [
        f"{value:.2f}" for value in judgment.online.validity
    ]
    assert "<img src=x onerror=alert(1)>" in page.one("div", cls="q").text


def test_several_judgments_stand_beside_each_other_under_their_names(judgment):
    offline = replace(judgment, mode=Mode.OFFLINE, result=judgment.offline)
    page = shown(one=dict.fromkeys(Mode, judgment), two={Mode.OFFLINE: offline})
    assert [one.all("strong")[0].text for one in page.one("ul", cls="answers").all("li")] == ["one", "two"]
    assert len(page.all(cls="bar")) == 9
    assert [one.text for one in page.all(cls="name")] == ["Hindsight, one"]


def test_the_style_sheet_is_no_template_and_lays_out_by_the_width_of_the_component():
    sheet = style()
    assert not re.search(r"`|\$\{|\{\{|@media \(m|\\", sheet.replace("\\\\", ""))
    assert "#ff8a5b" in sheet.partition(".dark & .step-scores")[2]
