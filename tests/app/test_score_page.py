import base64
import json

import gradio as gr
import pytest

from app.pages.score import build, preview_html, read_form, result_html, solution_text
from app.permalink import ScoreForm
from core.errors import UserError
from core.record import judgment_record
from core.scores import Thresholds
from core.split import split_steps
from core.trace import Trace
from tests.app.markup import INJECTIONS, read
from training.gallery import read_gallery

PROBLEM, SOLUTION = "What is 2 + 3?", "1. 2 + 3 = 5.\n2. So the answer is 5."
FORM = ScoreForm(PROBLEM, SOLUTION, "tiny")


def notice(html):
    """The text of a page that is a notice and nothing else."""
    page = read(html)
    (alert,) = page.children
    assert alert["role"] == "alert"
    return alert.text


def download(page):
    link = page.one("a", download="stepsight.json")["href"]
    return json.loads(base64.b64decode(link.removeprefix("data:application/json;base64,")))


def test_a_solution_is_judged_with_the_evaluators_numbers(evaluators):
    page = read(result_html(evaluators, FORM))
    judgment = evaluators.judge("tiny", Trace.of(PROBLEM, ["2 + 3 = 5.", "So the answer is 5."]))
    for mode in ("online", "offline"):
        shown = [bar.one(cls="num").text for bar in page.all("div", data_mode=mode)]
        assert shown == [f"{float(value):.2f}" for value in getattr(judgment, mode).validity]
    assert page.one("p", cls="q").text == PROBLEM


def test_the_download_is_the_record_with_the_texts(evaluators):
    found = download(read(result_html(evaluators, FORM)))
    trace = read_form(FORM)
    expected = judgment_record(evaluators.judge("tiny", trace), "tiny", Thresholds())
    assert found == expected | {"problem": PROBLEM, "texts": ["2 + 3 = 5.", "So the answer is 5."]}


def test_the_link_holds_the_form(evaluators):
    form = ScoreForm(PROBLEM, SOLUTION, "tiny-causal", 0.25, 0.75)
    link = read(result_html(evaluators, form)).one("a", cls="link")["href"]
    assert ScoreForm.from_token(link.removeprefix("/?s=")) == form


def test_thresholds_of_the_form_decide(evaluators):
    strict = read(result_html(evaluators, ScoreForm(PROBLEM, SOLUTION, "tiny", 1.0, 1.0)))
    lax = read(result_html(evaluators, ScoreForm(PROBLEM, SOLUTION, "tiny", 0.0, 1.0)))
    assert {bar.one("span", cls="mark").text for bar in strict.all("div", cls="c")} == {"✕"}
    assert {bar.one("span", cls="mark").text for bar in lax.all("div", cls="c")} == {"✓"}
    assert download(strict)["solution"]["valid"] is False
    assert download(lax)["solution"]["valid"] is True


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (ScoreForm("", SOLUTION, "tiny"), "The problem is empty. Enter the problem, then score again."),
        (ScoreForm(" \n", SOLUTION, "tiny"), "The problem is empty."),
        (ScoreForm(None, SOLUTION, "tiny"), "The problem is empty."),
        (ScoreForm(PROBLEM, "", "tiny"), "There are no steps. Paste a solution, then score again."),
        (ScoreForm(PROBLEM, None, "tiny"), "There are no steps."),
        (ScoreForm(PROBLEM, "[]", "tiny"), "there are no steps."),
        (ScoreForm(PROBLEM, '["a", ""]', "tiny"), "step 2 of the JSON list is empty."),
        (ScoreForm(PROBLEM, '["a", 3]', "tiny"), "step 2 of the JSON list is 3"),
        (ScoreForm(PROBLEM, "a\x00b", "tiny"), "step 1 holds a NUL byte."),
        (ScoreForm(PROBLEM, "a\ud800", "tiny"), "step 1 holds half of a surrogate pair."),
        (ScoreForm(PROBLEM, "7" * 20_000, "tiny"), "tokens, tiny reads at most 1,024."),
        (ScoreForm(PROBLEM, "7" * 100_001, "tiny"), "The text is longer than 100,000 characters."),
        (ScoreForm(PROBLEM, "[" * 5_000, "tiny"), "tokens, tiny reads at most 1,024."),
        (ScoreForm(PROBLEM, SOLUTION, ""), "There is no evaluator ''. Choose one of: tiny, tiny-causal."),
        (ScoreForm(PROBLEM, SOLUTION, None), "There is no evaluator None."),
        (ScoreForm(PROBLEM, SOLUTION, "<b>"), "There is no evaluator '<b>'."),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_what_cannot_be_scored_gets_a_notice(evaluators, form, message):
    assert message in notice(result_html(evaluators, form))


def test_the_form_is_read_as_the_preview_shows_it():
    trace = read_form(ScoreForm("  q \n", "Let x be 1.\n\nSo 2.\n", "tiny"))
    assert (trace.problem, trace.substeps) == ("q", ("Let x be 1.", "So 2."))
    with pytest.raises(UserError):
        read_form(ScoreForm("q", "\n", "tiny"))


@pytest.mark.parametrize("text", INJECTIONS)
def test_problem_and_steps_are_escaped(evaluators, text):
    html = result_html(evaluators, ScoreForm(text, json.dumps([text, [text, "2 + 3 = 5."]]), "tiny"))
    page = read(html)
    assert download(page)["texts"] == [text, text, "2 + 3 = 5."]
    clean = read(result_html(evaluators, ScoreForm("q", '["x", ["y", "z"]]', "tiny")))

    def structure(page):
        return [element.tag for element in page.all() if element.attributes.get("class") != "math"]

    assert structure(page) == structure(clean)


@pytest.mark.parametrize("text", INJECTIONS)
def test_the_preview_is_escaped(text):
    page = read(preview_html(json.dumps([text, [text, text]])))
    items = page.one("ol", cls="preview").all("li")
    assert len(items) == 2
    assert {element.tag for element in page.one("ol").all()} <= {"li", "br", "span"}
    assert len(items[1].all("br")) == 1
    if not page.all("span"):
        assert [item.text for item in items] == [text, text + text]


def test_the_preview_counts_and_shows_the_steps():
    page = read(preview_html("Step 1: Add $x$.\nStep 2: Done."))
    assert page.one("p").text == "2 steps"
    assert [item.text for item in page.all("li")] == ["Add x.", "Done."]
    assert read(preview_html("Add.")).one("p").text == "1 step"


@pytest.mark.parametrize("solution", ["", " \n ", None])
def test_the_preview_of_nothing_is_a_hint(solution):
    page = read(preview_html(solution))
    assert page.one("p", cls="hint").text.startswith("Steps appear here as you type")
    assert page.all("li") == []


def test_the_preview_of_a_bad_list_is_a_notice():
    assert "step 2 of the JSON list is 3" in notice(preview_html('["a", 3]'))


@pytest.mark.parametrize(
    "steps",
    [
        ["One.", "Two."],
        ["1. A number of its own.", "2) Another."],
        ["One\nline break.", "Two."],
        ["One.", ["Two.", "Three."]],
        ["Step 1: a heading", "x"],
        ['A "quote"', "[1, 2]"],
        ["Only one."],
        ["  white space  ", "x"],
        ["open \\[ a", "and closed b \\]"],
        ["$$a$$", "\\[ b \\]", "\\begin{align}c\\end{align}"],
    ],
)
def test_a_trace_becomes_text_that_is_split_into_the_same_steps(steps):
    trace = Trace.of("q", steps)
    assert Trace.of("q", split_steps(solution_text(trace))).steps == trace.steps


def test_every_example_survives_the_text_box_and_is_scored(evaluators):
    for example in read_gallery():
        form = ScoreForm(example.problem, solution_text(example), "tiny")
        assert read_form(form).substeps == example.substeps, example.id
        assert read(result_html(evaluators, form)).one("section")


def test_the_page_builds_with_the_best_evaluator_chosen(evaluators):
    with gr.Blocks() as demo:
        build(evaluators)
    by_id = {block.elem_id: block for block in demo.blocks.values() if getattr(block, "elem_id", None)}
    assert by_id["evaluator"].value == "tiny"
    assert [choice[1] for choice in by_id["evaluator"].choices] == ["tiny", "tiny-causal"]
    gallery = read_gallery()
    samples = by_id["examples"].samples
    assert [problem for problem, _ in samples] == [trace.problem for trace in gallery[: len(samples)]]
    assert 8 <= len(samples) < len(gallery)
    blocks = [block for block in demo.blocks.values() if isinstance(block, gr.HTML)]
    links = [block.value for block in blocks if "/browse?dataset=gallery" in block.value]
    assert len(links) == 1
    assert f"All {len(gallery)} traces" in links[0]
