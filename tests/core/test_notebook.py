"""The drawings of a trace, a triangle and a judgment."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from stepsight import Hindsight, Trace
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import StepScores
from stepsight.core.trace import Step

EVIL = '<script>alert(1)</script> & "so" \''
TRACE = Trace.of(EVIL, ["Two.", ["Three.", EVIL]], ["pos", "neg"])


def rows(*values):
    """Triangle rows of these validities."""
    return tuple(np.array([[1 - v, 0, v] for v in row], np.float32) for row in values)


TRIANGLE = Hindsight(rows([0.75], [0.75, 0.5], [0.25, 0.5, 1.0]))


class Tags(HTMLParser):
    """Every element is closed, and none is of another page."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.seen.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def cells(html):
    """The texts of a table's rows without their heads."""
    return [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in re.findall(r"<tr>.*?</tr>", html, re.DOTALL)]


@pytest.mark.parametrize(
    "drawn",
    [
        TRACE,
        TRIANGLE,
        Judgment(TRACE, Mode.HINDSIGHT, TRIANGLE),
        Judgment(TRACE, Mode.ONLINE, TRIANGLE.online),
        Hindsight(()),
    ],
    ids=["trace", "triangle", "hindsight", "online", "nothing"],
)
def test_a_drawing_is_complete_and_self_contained(drawn):
    html = drawn._repr_html_()
    tags = Tags()
    tags.feed(html)
    assert tags.open == []
    assert set(tags.seen) <= {"div", "style", "p", "ol", "li", "b", "table", "caption", "tr", "th", "td"}
    assert {name for name, _ in tags.attributes} <= {"class", "style", "title", "scope", "tabindex"}
    assert "http" not in html
    assert "url(" not in html


def test_a_trace_has_its_steps_with_their_gold():
    html = TRACE._repr_html_()
    assert re.findall(r'<b class="label">(\w+)</b>', html) == ["pos", "neg"]
    bare = Trace("", "q", (Step(("a",), valid=True), Step(("b",), valid=False), Step(("c",))))
    assert re.findall(r'<b class="label">(\w+)</b>', bare._repr_html_()) == ["valid", "neg"]
    assert html.count("&lt;script&gt;alert(1)&lt;/script&gt; &amp; &#34;so&#34; &#39;") == 2


def test_a_triangle_has_a_row_for_each_step_in_view_and_the_change():
    head, *triangle, change = cells(TRIANGLE._repr_html_())
    assert head == ["1", "2", "3"]
    assert triangle == [["0.75", "", ""], ["0.75", "0.50", ""], ["0.25", "0.50", "1.00"]]
    # 0.25 - 0.75, and twice nothing.
    assert change == ["−0.50", "0.00", "0.00"]
    assert TRIANGLE._repr_html_().count('class="cell online"') == 3


def test_a_judgment_in_one_mode_has_one_row():
    said = StepScores(np.array([[0, 0.5, 0.5], [0, 0, 0], [1, 0, 0]], np.float32))
    assert cells(Judgment(TRACE, Mode.OFFLINE, said)._repr_html_())[1:] == [["1.00", "", "0.00"]]


def test_a_long_triangle_is_drawn_as_its_two_modes():
    long = Hindsight.constant(StepScores(np.tile(np.array([[0.25, 0, 0.75]], np.float32), (200, 1))))
    head, online, offline, change = cells(long._repr_html_())
    assert [len(row) for row in (head, online, offline, change)] == [200] * 4
    assert len(long._repr_html_()) < 100_000
