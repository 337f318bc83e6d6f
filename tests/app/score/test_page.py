import json

import gradio as gr
import pytest

from stepsight.app.score.form import ScoreForm
from stepsight.app.score.page import build, check_address, corrected, opened, saved_html, scored, written
from stepsight.app.score.steps import EMPTY
from stepsight.app.web.text import text_key
from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.storage.database.store import open_store
from stepsight.storage.traces.queries import find_dataset, get_trace, list_datasets
from stepsight.training.evaluate.gallery import read_gallery
from tests.app.markup import read
from tests.storage.samples import find_judgment

PROBLEM, SOLUTION = "What is 2 + 3?", "1. 2 + 3 = 5.\n2. So the answer is 5."
FORM = ScoreForm(PROBLEM, SOLUTION, ("tiny",), 0.4, 0.2)


@pytest.fixture
def store(tmp_path):
    with open_store(str(tmp_path / "store.db")) as store:
        yield store


def state(**values):
    return json.dumps({"steps": [], "key": text_key(SOLUTION)} | values)


def texts(html):
    return [item.one("div", cls="t").children or item.one("div", cls="t").text for item in read(html).all("li")]


def skipped(value):
    return value == gr.skip()


def test_what_is_entered_is_scored_as_the_text_is_split(evaluators):
    assert texts(scored(evaluators, PROBLEM, SOLUTION, ["tiny"], "")) == ["2 + 3 = 5.", "So the answer is 5."]


def test_corrected_steps_are_what_is_scored_and_linked(evaluators):
    corrected = state(steps=[["2 + 3 = 5. So 5."], ["Done.", "Checked."]], corrected=True)
    html = scored(evaluators, PROBLEM, SOLUTION, ["tiny"], corrected)
    form = ScoreForm.from_token(read(html).one("section")["data-token"])
    assert [step.substeps for step in form.trace().steps] == [("2 + 3 = 5. So 5.",), ("Done.", "Checked.")]


def test_thresholds_and_the_result_before_come_with_the_state(evaluators):
    before = ScoreForm(PROBLEM, "2 + 3 = 5.", ("tiny",)).token()
    html = scored(evaluators, PROBLEM, SOLUTION, ["tiny"], state(validity=0.4, redundancy=0.2, before=before))
    section = read(html).one("section")
    assert (section["data-validity"], section["data-redundancy"]) == ("0.4", "0.2")
    assert section["data-before"] == before


@pytest.mark.parametrize("problem", [None, ""])
def test_what_is_missing_gets_a_notice(evaluators, problem):
    assert "The problem is empty." in read(scored(evaluators, problem, SOLUTION, ["tiny"], "")).text
    assert "Reload the page." in read(scored(evaluators, PROBLEM, SOLUTION, ["tiny"], "{")).text


def test_an_address_brings_the_page_back(evaluators):
    problem, solution, names, split, result, saved = opened(evaluators, {"s": FORM.token()})
    assert (problem, solution, names, saved) == (PROBLEM, SOLUTION, ["tiny"], "")
    assert texts(split) == ["2 + 3 = 5.", "So the answer is 5."]
    assert read(result).one("section")["data-token"] == FORM.token()


def test_thresholds_and_a_comparison_in_the_address_count(evaluators):
    before = ScoreForm(PROBLEM, "2 + 3 = 5.", ("tiny",)).token()
    query = {"s": FORM.token(), "valid": "0.9", "redundant": "0.8", "kept": before}
    section = read(opened(evaluators, query)[4]).one("section")
    assert (section["data-validity"], section["data-redundancy"]) == ("0.9", "0.8")
    assert section["data-kept"] == before


def test_an_address_without_a_link_leaves_what_is_typed(evaluators):
    check_address({})
    check_address({"s": FORM.token()})
    *kept, result, saved = opened(evaluators, {})
    assert all(map(skipped, kept))
    assert (result, saved) == ("", "")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"s": "cut"}, "This link was cut or changed. Ask for it again, or paste the solution."),
        ({"s": FORM.token(), "valid": "x"}, "valid is 'x', expected a number from 0 to 1."),
    ],
)
def test_a_link_that_makes_no_sense_says_so_and_what_is_typed_stays(evaluators, query, message):
    with pytest.raises(UserError) as caught:
        check_address(query)
    assert message in str(caught.value)
    *kept, result, _ = opened(evaluators, query)
    assert all(map(skipped, kept))
    assert message in read(result).one("div", role="alert").text


def test_a_link_with_an_evaluator_that_is_gone_brings_the_text_and_says_so(evaluators):
    gone = ScoreForm(PROBLEM, SOLUTION, ("gone",))
    problem, solution, names, _, result, _ = opened(evaluators, {"s": gone.token()})
    assert (problem, solution) == (PROBLEM, SOLUTION)
    assert skipped(names)
    assert "There is no evaluator 'gone'. Choose one of: tiny, tiny-causal." in read(result).text


def test_corrected_steps_are_drawn_and_written_into_the_box():
    person = state(steps=[["one"], ["two", "three"]], corrected=True)
    found = read(corrected(person)).one("ol")
    assert (found["data-origin"], found["data-key"]) == ("person", text_key(SOLUTION))
    text, split = written(person)
    assert json.loads(text) == ["one", ["two", "three"]]
    assert json.loads(read(split).one("ol")["data-steps"]) == [["one"], ["two", "three"]]
    assert read(split).one("ol")["data-key"] == text_key(text)
    assert written(state(steps=[["one"], ["two"]]))[0] == "1. one\n2. two"
    assert corrected(state()) == EMPTY
    assert "Reload the page." in corrected("{")


def test_a_result_is_saved_with_its_judgments(store, evaluators):
    told = read(saved_html(store, evaluators, "another", "text", [], state(token=FORM.token())))
    trace = get_trace(store, int(told.all("a")[0]["href"].removeprefix("/browse?trace=")))
    assert (trace.dataset, trace.problem) == ("saved", PROBLEM)
    assert trace.substeps == ("2 + 3 = 5.", "So the answer is 5.")
    assert told.all("a")[1]["href"] == f"/evidence?trace={trace.trace_id}"
    judged = find_judgment(store, trace, evaluators.register(store, "tiny").id, Mode.HINDSIGHT)
    assert judged.hindsight.rows[1] == pytest.approx(evaluators.judge("tiny", trace).hindsight.rows[1], abs=1e-6)


def test_the_same_trace_saved_twice_is_one(store, evaluators):
    told = [read(saved_html(store, evaluators, "", "", [], state(token=FORM.token()))).text for _ in range(2)]
    assert [text.split(" as ")[0] for text in told] == ["Saved", "Was saved before"]
    assert find_dataset(store, "saved").traces == 1


def test_what_has_no_link_is_saved_as_it_is_entered(store, evaluators):
    assert "Saved as" in saved_html(store, evaluators, PROBLEM, SOLUTION, ["tiny"], state(dataset="mine"))
    assert [(dataset.name, dataset.traces) for dataset in list_datasets(store)] == [("mine", 1)]


@pytest.mark.parametrize("dataset", ["", " x", "a\nb"])
def test_a_dataset_without_a_proper_name_gets_a_notice(store, evaluators, dataset):
    told = read(saved_html(store, evaluators, "", "", [], state(token=FORM.token(), dataset=dataset)))
    assert "the name of the dataset" in told.one("div", role="alert").text
    assert list_datasets(store) == []


def built(store, evaluators, **options):
    with gr.Blocks() as demo:
        build(store, evaluators, **options)
    return demo


def test_the_page_builds_with_the_best_evaluator_chosen(store, evaluators):
    demo = built(store, evaluators)
    by_id = {block.elem_id: block for block in demo.blocks.values() if getattr(block, "elem_id", None)}
    assert by_id["evaluators"].value == ["tiny"]
    assert [choice[1] for choice in by_id["evaluators"].choices] == ["tiny", "tiny-causal"]
    gallery = read_gallery()
    samples = by_id["examples"].samples
    assert [problem for (problem,) in samples] == [trace.problem for trace in gallery[: len(samples)]]
    assert 8 <= len(samples) < len(gallery)
    blocks = [block for block in demo.blocks.values() if isinstance(block, gr.HTML)]
    links = [block.value for block in blocks if "/browse?dataset=gallery" in block.value]
    assert len(links) == 1
    assert f"All {len(gallery)} traces" in links[0]


def test_a_page_that_only_reads_has_nothing_that_saves(store, evaluators):
    def names(demo):
        return {function.name for function in demo.fns.values()}

    assert names(built(store, evaluators)) - names(built(store, evaluators, read_only=True)) == {"save_result"}
