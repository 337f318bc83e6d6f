import json
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from starlette.requests import Request
from starlette.testclient import TestClient

from stepsight.app.score import page as score_page
from stepsight.app.score.entered import Entered, PageState, SolutionText
from stepsight.app.score.page import EMPTY, ScorePage, steps_html
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.server import build_app
from stepsight.app.web.access import Right
from stepsight.core.judgment import Mode
from stepsight.core.scores import Thresholds
from stepsight.storage.database.store import open_store
from stepsight.storage.judgments.evaluators import list_evaluators
from stepsight.storage.people.users import Role, User
from stepsight.storage.traces.queries import find_dataset, get_trace, iterate_traces, list_datasets
from stepsight.training.evaluate.strength import read_gallery
from tests.app.client import let_in
from tests.app.elements import read
from tests.app.entries import typed
from tests.app.held_up import hold_up, posted, served
from tests.app.processes import until
from tests.messages import refused
from tests.storage.samples import find_judgment

PROBLEM, SOLUTION = "What is 2 + 3?", "1. 2 + 3 = 5.\n2. So the answer is 5."
FORM = typed(PROBLEM, SOLUTION, ("tiny",), 0.4, 0.2)
ENTERED = {"problem": PROBLEM, "solution": SOLUTION, "evaluators": ["tiny"]}
state = PageState.model_validate
SHORTER = typed(PROBLEM, "2 + 3 = 5.", ("tiny",)).token()


@pytest.fixture
def store(tmp_path):
    with open_store(str(tmp_path / "store.db")) as store:
        yield store


@pytest.fixture
def page(store, evaluators):
    return ScorePage(store, evaluators)


def asking(query="", rights=frozenset(Right)):
    state = {"user": User(1, "ada", Role.VIEWER, active=True), "rights": rights}
    return Request({"type": "http", "path": "/", "headers": [], "query_string": query.encode(), "state": state})


def asked(**options):
    return asking(**options)


def texts(html):
    return [item.one("div", cls="t").text for item in read(html).one("ol").all("li")]


def token(html):
    return read(html).one("section")["data-token"]


def test_an_entered_text_is_split_and_scored(page):
    assert page.split(SOLUTION)["steps"].count("<li>") == 2
    answer = page.score(state(ENTERED), asked())
    assert list(answer) == ["result"]
    assert texts(answer["result"]) == ["2 + 3 = 5.", "So the answer is 5."]


def test_edited_steps_are_scored_and_written_into_the_box(page):
    steps = [["2 + 3 = 5. So 5."], ["Done.", "Checked."]]
    answer = page.score(state(ENTERED | {"steps": steps}), asked())
    form = Entered.from_token(token(answer["result"]))
    assert [step.substeps for step in form.trace.steps] == [("2 + 3 = 5. So 5.",), ("Done.", "Checked.")]
    assert {key: answer[key] for key in ("text", "steps")} == page.write(state({"steps": steps}))
    assert json.loads(answer["text"]) == ["2 + 3 = 5. So 5.", ["Done.", "Checked."]]
    assert json.loads(read(answer["steps"]).one("ol")["data-steps"]) == steps
    assert page.write(state({"steps": [["one"], ["two"]]}))["text"] == "1. one\n2. two"
    assert page.write(state({"steps": []}))["steps"] == EMPTY


def test_a_list_of_something_else_is_a_notice_and_no_error(page):
    for answer in (
        page.split('["a", 3]')["steps"],
        page.score(state(ENTERED | {"solution": '["a", 3]'}), asked())["result"],
    ):
        assert "step 2 of the list is 3" in read(answer).one("div", role="alert").text


def test_an_address_brings_the_page_back(page):
    opened = page.open(f"?s={FORM.token()}&before={SHORTER}", None, asked())
    assert read(opened["result"]).one("section")["data-before"] == SHORTER
    assert (opened["problem"], opened["text"], opened["evaluators"]) == (PROBLEM, SOLUTION, ["tiny"])
    assert texts(opened["steps"]) == ["2 + 3 = 5.", "So the answer is 5."]
    assert token(opened["result"]) == FORM.token()


def test_an_example_is_judged_by_those_who_are_chosen(page):
    opened = page.open(f"?s={FORM.token()}", ["tiny-causal", "tiny"], asked())
    assert token(opened["result"]) == replace(FORM, evaluators=("tiny-causal", "tiny")).token()


def test_the_displayed_result_is_judged_at_other_thresholds(page):
    """Whatever has been typed since."""
    values = {"solution": "9", "token": FORM.token(), "earlier": SHORTER, "validity": 0.9, "redundancy": 0.8}
    section = read(page.rejudge(state(values), asked())["result"]).one("section")
    assert (section["data-validity"], section["data-redundancy"], section["data-before"]) == ("0.9", "0.8", SHORTER)
    assert Entered.from_token(section["data-token"]) == replace(FORM, thresholds=Thresholds(0.9, 0.8))


def test_an_address_without_a_link_brings_nothing(page):
    assert page.open("", None, asked()) == {}


def test_a_link_that_makes_no_sense_says_so(page):
    message = "This link is incomplete or was changed. Ask for it again, or paste the solution."
    opened = page.open("s=cut", None, asked())
    assert list(opened) == ["result"]
    assert message in read(opened["result"]).one("div", role="alert").text
    shown = page.content(asking("s=cut"))
    assert (shown.status, message in read(shown.html).one("div", role="alert").text) == (422, True)


def test_a_link_with_an_evaluator_that_is_gone_brings_the_text_and_says_so(page):
    gone = typed(PROBLEM, SOLUTION, ("gone",))
    opened = page.open(f"s={gone.token()}", None, asked())
    assert (opened["problem"], opened["text"], opened["evaluators"]) == (PROBLEM, SOLUTION, [])
    assert "There is no evaluator 'gone'. Choose one of: tiny, tiny-causal." in read(opened["result"]).text


def test_a_result_is_saved_with_its_judgments(store, evaluators, page):
    entered = {"problem": "another", "solution": "text", "token": FORM.token()}
    told = read(page.save(state(entered))["saved"])
    trace = get_trace(store, int(told.all("a")[0]["href"].removeprefix("/browse?trace=")))
    assert (trace.dataset, trace.problem) == ("saved", PROBLEM)
    assert trace.substeps == ("2 + 3 = 5.", "So the answer is 5.")
    assert told.all("a")[1]["href"] == f"/evidence?trace={trace.trace_id}"
    judged = find_judgment(store, trace, evaluators.register(store, "tiny").id, Mode.HINDSIGHT)
    assert judged.hindsight.rows[1] == pytest.approx(evaluators.judge("tiny", trace).hindsight.rows[1], abs=1e-6)


def test_the_same_trace_saved_twice_is_one(store, page):
    told = [read(page.save(state({"token": FORM.token()}))["saved"]).text for _ in range(2)]
    assert [text.split(" as ")[0] for text in told] == ["Saved", "Already saved"]
    assert find_dataset(store, "saved").traces == 1


def test_an_entry_without_a_link_can_be_saved(store, page):
    assert "Saved as" in page.save(state(ENTERED | {"dataset": "mine"}))["saved"]
    assert [(dataset.name, dataset.traces) for dataset in list_datasets(store)] == [("mine", 1)]


def test_thinking_is_saved_with_the_trace_unjudged_or_as_steps(store, page):
    thinking = {"solution": "<think>Add.</think>2 + 3 = 5.\n\nSo 5."}
    for judged in (False, True):
        page.save(state(ENTERED | thinking | {"thinking": judged}))
    aside, first = iterate_traces(store, find_dataset(store, "saved").id)
    assert (aside.substeps, aside.meta) == (("2 + 3 = 5.", "So 5."), {"thinking_set_aside": "Add."})
    assert (first.substeps, first.meta) == (("Add.", "2 + 3 = 5.", "So 5."), {"thought_steps": 1})


@pytest.mark.parametrize("dataset", ["", " x", "a\nb"])
def test_a_dataset_without_a_proper_name_is_refused(store, page, dataset):
    with refused():
        page.save(state({"token": FORM.token(), "dataset": dataset}))
    assert list_datasets(store) == []


def test_saving_is_offered_to_people_with_the_right_to_write(store, evaluators, page):
    looking = {"rights": frozenset({Right.SCORE})}
    reading = ScorePage(store, evaluators, read_only=True)
    paths = [{route.path for route in one.routes().routes} for one in (page, reading)]
    assert paths[0] - paths[1] == {"/score/save"}
    for page_, options, saves in ((page, {}, True), (page, looking, False), (reading, {}, False)):
        result = page_.score(state(ENTERED), asked(**options))["result"]
        assert ("Save as a trace" in read(result).text) == saves


def test_the_first_response_holds_the_form_and_the_examples(page):
    first = read(page.content(asking()).html)
    assert [box["value"] for box in first.one("fieldset").all("input") if "checked" in box.attributes] == ["tiny"]
    assert [box["value"] for box in first.one("fieldset").all("input")] == ["tiny", "tiny-causal"]
    gallery = read_gallery()
    examples = first.one("ul").all("a")
    assert [link.text for link in examples] == [trace.meta["title"] for trace in gallery[: len(examples)]]
    assert 4 <= len(examples) < len(gallery)
    form = Entered.from_token(examples[0]["href"].removeprefix("/?s="))
    assert (form.trace.substeps, form.evaluators) == (gallery[0].substeps, ("tiny",))
    assert f"All {len(gallery)} example solutions" in first.text


def test_the_first_response_holds_the_result_of_its_address(page):
    first = read(page.content(asking(f"s={FORM.token()}")).html)
    assert [area.text for area in first.all("textarea")] == [PROBLEM, SOLUTION]
    assert first.one("section")["data-token"] == FORM.token()
    assert "data-late" not in first.one("div", id="result").attributes


def test_the_first_response_does_not_wait_for_a_judgment_that_takes_long(page, monkeypatch):
    monkeypatch.setattr(score_page, "wait", lambda begun, timeout: SimpleNamespace(not_done=begun))
    first = read(page.content(asking(f"s={FORM.token()}")).html)
    result = first.one("div", id="result")
    assert ("data-late" in result.attributes, result.text) == (True, "")
    assert [area.text for area in first.all("textarea")] == [PROBLEM, SOLUTION]


def test_what_the_script_sends_has_to_fit(page):
    client = TestClient(let_in(page.routes()))
    for path, values in (
        ("write", {"steps": 7}),
        ("split", {"thinking": True}),
        ("split", {"text": "\ud800"}),
        ("open", {"query": 1}),
        ("running", []),
    ):
        answer = client.post(f"/score/{path}", content=json.dumps(values))
        assert (answer.status_code, set(answer.json())) == (422, {"error", "hint"})
    assert client.post("/score/write", json={"steps": [["a"]]}).json()["text"] == "a"


def test_scoring_ends_when_the_page_is_left(store, tiny):
    evaluators, scorer = hold_up(tiny)
    with served(build_app(store, evaluators)) as address:
        with posted(address, "/score/score", ENTERED):
            assert scorer.at_work.wait(30)
            # Longer than between two looks: who stays is waited for.
            assert not scorer.ended.wait(1.2)
        assert scorer.ended.wait(120)
        until(lambda: not evaluators._offered["tiny"].batcher.is_busy)


LONG = {"problem": PROBLEM, "solution": "\n".join(f"{i}. 2 + 3 = 5." for i in range(1, 31)), "evaluators": ["tiny"]}


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (100_000, "tiny reads all 30 prefixes, {every} tokens."),
        (2_000, "tiny reads the whole solution alone, {whole} tokens instead of {every}."),
    ],
)
def test_what_scoring_takes_is_told_before(store, tiny, tokens, said):
    evaluators = Evaluators([tiny], shipped=False, tokens=tokens)
    cost = evaluators.cost("tiny", typed(LONG["problem"], LONG["solution"]).trace)
    told = " ".join(read(ScorePage(store, evaluators).cost(state(LONG))["cost"]).text.split())
    assert told == said.format(every=f"{cost.prefixes:,}", whole=f"{cost.whole:,}")


@pytest.fixture
def limited(store, tiny):
    """A page of which a request has too few tokens for a long solution in hindsight."""
    return ScorePage(store, Evaluators([tiny], shipped=False, tokens=2_000))


def test_a_solution_beyond_the_limit_of_a_request_is_read_as_a_whole(limited):
    section = read(limited.score(state(LONG), asked())["result"])
    assert "Only the whole solution was read" in section.text
    assert [cell.text.split()[-1] for cell in section.all("span", cls="unread")] == ["–"] * 30
    # An edit of it is compared offline.
    edited = LONG | {"solution": LONG["solution"].replace("30. 2 + 3 = 5.", "30. 2 + 3 = 6.")}
    again = read(limited.score(state(edited | {"before": section.one("section")["data-token"]}), asked())["result"])
    assert "Against the result before the edit" in again.text


def test_every_prefix_of_a_solution_beyond_the_context_is_read_once_somebody_asks(page):
    solution = "\n".join(f"{i}. " + " + ".join(map(str, range(i, i + 10))) for i in range(1, 101))
    entered = ENTERED | {"solution": solution}
    assert "tiny reads the whole solution first, " in read(page.cost(state(entered))["cost"]).text
    whole = read(page.score(state(entered), asked())["result"])
    assert len(whole.all("span", cls="unread")) == 100
    (button,) = [found for found in whole.all("button") if "data-every" in found.attributes]
    assert re.fullmatch(r"Read every prefix too: [\d,]{6,} tokens, about \d+ s", button.text)
    # It stays read for those who do not ask.
    for every in (True, False):
        result = read(page.score(state(entered | {"every": every}), asked())["result"])
        assert result.all("span", cls="unread") == []
        assert "Only the whole solution was read" not in result.text


def test_a_result_of_the_whole_solution_alone_is_saved_as_an_offline_judgment(limited, store):
    limited.save(state(LONG))
    (row,) = list_datasets(store)
    trace = get_trace(store, 1)
    (evaluator,) = list_evaluators(store)
    assert [bool(find_judgment(store, trace, evaluator.id, mode)) for mode in Mode] == [
        mode == Mode.OFFLINE for mode in Mode
    ]
    assert row.traces == 1


THOUGHT = "<think>Two.\n\nThree.</think>\n\nSo 5."
SPLITS = {
    "two steps": SolutionText.typed("Step 1: Add $x$.\nStep 2: Done."),
    "sub-steps": SolutionText.typed('["One.", ["Two.", "Three."]]'),
    "a text that is set aside": SolutionText.typed("Sure!\n\n1. Add.\n2. Done."),
    "thinking, which is offered": SolutionText.typed(THOUGHT),
    "thinking that is judged": SolutionText.typed(THOUGHT, judges_thinking=True),
    "long thinking, folded": SolutionText.typed(
        f"<think>\n{'Two and three. ' * 20}\n</think>\n\n1. Add.\n2. Done."
    ),
    "nothing": SolutionText.typed(" \n "),
}


def test_a_solution_is_shown_as_it_is_split(drawn):
    for title, solution in SPLITS.items():
        drawn(steps_html(solution), title)
    assert steps_html(SolutionText.typed("")) == EMPTY
