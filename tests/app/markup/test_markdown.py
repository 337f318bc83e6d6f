import json
import re
from pathlib import Path

import pytest

from stepsight.app.markup.markdown import markdown_html
from stepsight.app.markup.text import TERMS, text_html
from stepsight.core.equations.evaluator import checks_of
from stepsight.storage.importers import KINDS
from tests.app.elements import INJECTIONS, read
from tests.app.injection import PAYLOADS
from tests.cases import each
from tests.cost import is_linear


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**Area:** it is *nine*.", "<strong>Area:</strong> it is <i>nine</i>."),
        ("__Area__ and _nine_", "<strong>Area</strong> and <i>nine</i>"),
        ("## The area\nnine", "<strong>The area</strong>\nnine"),
        ("## **The area**", "<strong>The area</strong>"),
        ("- one\n* two\n  + three", "• one\n• two\n  • three"),
        ("We have:\n- To find x\n- 3 apples\n- the rest = 5", "We have:\n• To find x\n- 3 apples\n• the rest = 5"),
        ("\\[ x \\]\n- **Then** divide", str(text_html("\\[ x \\]")) + "\n• <strong>Then</strong> divide"),
        ("# Step 1: x = 3", "<strong>Step 1: x = 3</strong>"),
        ("# 1. Area", "<strong>1. Area</strong>"),
        ("## of 2**3**2 and **it**", "<strong>of 2**3**2 and it</strong>"),
        ("3 *more* 5, *x* and **3** 4", "3 <i>more</i> 5, <i>x</i> and <strong>3</strong> 4"),
        ("run `a_1 * b_1 < 2`", "run <code>a_1 * b_1 &lt; 2</code>"),
        ("see\n```python\nif a:\n    b = *c*\n```\ndone", "see\n<pre>if a:\n    b = *c*</pre>\ndone"),
        (
            "sums\n\n| a | *b* |\n|---|:-:|\n| 1 | 2 |\n| 3 |\n\nend",
            'sums\n<table class="written"><thead><tr><th>a</th><th><i>b</i></th></tr></thead>'
            "<tbody><tr><td>1</td><td>2</td></tr><tr><td>3</td><td></td></tr></tbody></table>end",
        ),
        ("[the rule](https://example.org/x) says", "the rule says"),
    ],
)
def test_markdown_is_rendered(text, html):
    assert markdown_html(text) == html


@each(
    "text",
    [
        "2 * 3 * 4", "2*3*4", "a_1 * b_2", "x_1 + y_1", "(a)*(b)*(c)", "2**3**2", "n! * m! * k", "a * b and c * d",
        "5 *", "#### 72", "- 3 + 5 = 2", "f(x_1)_2", "snake_case_name", "[1](2)", "a ` b",
        "|x| = 3\n-4 | 5", "P(A|B)\n|---|---|---|",
        "x^2\n- y^2\n= 5", "3a\n+ b", "* y^2", "- ab + 2", "- ABC", "- abc", "We get:\n- sin x",
        "Then\n- area(ABC) - 2",
        "profit = revenue\n- cost\n- tax\n= 5", "Profit:\n- cost\n- tax\n= 5", "the total is\n- cost\n- tax",
        "# of ways = 6", "# ways", "# Ways = 6", "# Ways < 6", "# \\(S\\)", "#### 1,080.5",
        "2 *3* 4", "2 **3** 4", "(a) *b* (c)", "x = 2\n*3* 4", "*3* 4", "2 *3*\n4", "$x$ *y* $z$", "2x *3* 4y",
    ],
)  # fmt: skip
def test_text_that_is_not_markdown_stays(text):
    assert markdown_html(text) == text_html(text)


def test_maths_wins():
    for text in ("$x*y*z$ and $a_1 _b_ c$", "\\[ *a* **b** \\]", "$$\n- a\n# b\n$$"):
        assert markdown_html(text) == text_html(text)
    assert markdown_html("**so $x*y$**") == f"<strong>so {text_html('$x*y$')}</strong>"


@each(
    "around",
    [
        "{}",
        "**{}**",
        "`{}`",
        "```\n{}\n```",
        "# {}",
        "- *{}*",
        "[{}](/x)",
        "[x]({})",
        "| {} | b |\n|---|---|\n| {} | {} |",
    ],
)
@each("text", [*INJECTIONS, *PAYLOADS])
def test_markup_is_text(around, text):
    page = read(markdown_html(around.replace("{}", text)))
    tags = {"span", "strong", "i", "code", "pre", "table", "thead", "tbody", "tr", "th", "td"}
    assert {element.tag for element in page.all()} <= tags
    for element in page.all():
        assert set(element.attributes) <= {"class", "data-source", "data-display"}


@each(
    "sign",
    ["*", "**", "_", " *a", "`", "```\n", "[a](", "- ", "# ", " **a", "$*a", "\ue0000\ue001", "|\n", "|-|\n", "|-"],
)
def test_many_signs_take_linear_time(sign):
    assert is_linear(lambda size: markdown_html(sign * (size // len(sign))), 50_000)


MANUAL = Path(__file__).resolve().parents[3] / "docs" / "evaluators.md"
ROW = re.compile(r"^\| (.+?) \| [\d,]+ of [\d,]+ \| (\d+) \|.*\| (\d+) of ([\d,]+) \|$", re.MULTILINE)


@pytest.fixture(scope="module")
def measured():
    """For each benchmark, the number of steps that are flagged, of those that are wrong, and of all wrong ones."""
    rows = ROW.findall(MANUAL.read_text(encoding="utf-8"))
    return {name: tuple(int(count.replace(",", "")) for count in counts) for name, *counts in rows}


def test_pages_sum_up_the_table_of_the_manual(measured):
    flagged, found, wrong = map(sum, zip(*measured.values(), strict=True))
    assert len(measured) == 4
    assert f"four benchmarks, {flagged} steps had" in TERMS["equations"]
    assert f"gold calls {found} of them ({100 * found / flagged:.0f} %) wrong" in TERMS["equations"]
    assert f"They are {100 * found / wrong:.0f} % of all {wrong:,} wrong steps:" in TERMS["equations"]


def test_mr_math_is_measured_again(measured, data):
    flagged, wrong = set(), set()
    for line in (data / "mr-math" / "mr-math_invalid_errors.json").read_text(encoding="utf-8").splitlines():
        trace = KINDS["mr-math-invalid"].read(json.loads(line))
        labelled = {i for i, step in enumerate(trace.steps) if step.valid is not None}
        wrong |= {(trace.id, i) for i in labelled if not trace.steps[i].valid}
        failing = {
            trace.owners[i] for i, part in enumerate(checks_of(trace)) if not all(check.holds for check in part)
        }
        flagged |= {(trace.id, i) for i in failing & labelled}
    assert (len(flagged), len(flagged & wrong), len(wrong)) == measured["MR-MATH, invalid steps"]
