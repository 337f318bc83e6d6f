import csv
import io
import json
import shutil
from urllib.parse import parse_qs

import numpy as np
import pytest
from fastapi.testclient import TestClient

from stepsight.app.browse import selection
from stepsight.app.browse.address import Address
from stepsight.app.browse.page import CSV_PATH, JSON_PATH, BrowsePages, file_address, trace_files
from stepsight.app.score.entered import Entered
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.files.jsonl import parse_trace
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import Outputs, StepScores
from stepsight.core.trace import Label, Step, Trace
from stepsight.storage.database.store import UnavailableError, open_store
from stepsight.storage.judgments.evaluators import register_evaluator
from stepsight.storage.judgments.judgments import save_judgments
from tests.app.client import asking, let_in
from tests.app.elements import read
from tests.cases import each
from tests.messages import refused
from tests.storage.samples import ERROR, SAMPLES, add, judge

BAD_ID, LONG = 999, Trace.of("q", ["7" * 20_000], ["neg"], id="long")


@pytest.fixture(scope="module")
def kept(module_store):
    """A store with the small samples, 60 numbered traces, and one that no evaluator can read; not to be changed."""
    add(module_store, SAMPLES, "sums")
    labels = (["neg"], ["pos"], None)
    add(
        module_store,
        [Trace.of(f"Problem {i}", [f"Step {i}."], labels[i % 3], id=f"n{i}") for i in range(60)],
        "many",
    )
    add(module_store, [LONG], "long")
    return module_store


@pytest.fixture
def browse(kept, evaluators):
    """The page that a query string asks for, read."""

    def browse(**query):
        return read(BrowsePages(kept, evaluators).content(query).html)

    return browse


def links(page):
    """The link of each trace on a list."""
    return page.one("table", cls="traces").all("a", cls="open")


def ids(page):
    return [
        row.one("span", cls="id").text.split(" · ")[0]
        for row in page.one("table", cls="traces").one("tbody").all("tr")
    ]


def query_of(href):
    path, _, query = href.partition("?")
    assert path == "/browse"
    return parse_qs(query)


def trace_id(page, id):
    """The database id of a trace on a list."""
    return query_of(links(page)[ids(page).index(id)]["href"])["trace"]


def notices(page):
    return [alert.text for alert in page.all(role="alert")]


def pager(page):
    return page.one("p", cls="pager").all("span")[0].text


def test_a_list_with_its_facets(kept, evaluators, drawn):
    for title, query in {
        "the first dataset": {},
        "conditions combine and are counted": {"dataset": "sums", "gold": "error", "error_at": "middle"},
        "a search marks what it finds": {"dataset": "sums", "q": "IT IS"},
    }.items():
        drawn(BrowsePages(kept, evaluators).content(query).html, title)


def test_a_search_is_marked_in_the_trace_too(browse):
    opened = browse(**query_of(links(browse(dataset="sums", q="IT IS"))[0]["href"]))
    assert [mark.text for mark in opened.all("mark") if "class" not in mark.attributes] == ["It is"]
    assert [mark.text for mark in opened.all("mark", cls="fails")] == ["1 + 1 = 3"]
    assert opened.one("p", cls="among").text == "Among: Search: IT IS"


def test_pages_hold_25_traces_and_lead_to_each_other(browse):
    first, second, third = (browse(dataset="many", page=str(number)) for number in (1, 2, 3))
    assert [len(ids(page)) for page in (first, second, third)] == [25, 25, 10]
    assert ids(first) + ids(second) + ids(third) == [f"n{i}" for i in range(60)]
    assert [pager(page) for page in (first, second, third)] == ["1–25 of 60", "26–50 of 60", "51–60 of 60"]
    assert first.all("a", cls="prev") == third.all("a", cls="next") == []
    assert query_of(second.one("a", cls="next")["href"]) == {"dataset": ["many"], "page": ["3"]}
    # The first page is the default and needs no mention.
    assert query_of(second.one("a", cls="prev")["href"]) == {"dataset": ["many"]}


def test_the_most_doubtful_gold_comes_first_with_the_reasons_and_whatever_ranks_nothing_says_so(
    sqlite_store, evaluators
):
    slip = Trace.of("What is 3 + 1?", ["Add them.", "3 + 1 = 5."], ["pos", "pos"], id="slip")
    add(sqlite_store, [*SAMPLES, slip], "sums")
    add(sqlite_store, [Trace.of("q", ["Add."], ["pos"], id="1")], "alone")
    pages = BrowsePages(sqlite_store, evaluators)

    def listed(dataset):
        return read(pages.content({"dataset": dataset, "sort": "doubt"}).html)

    page = listed("sums")
    while page.all(cls="hint", role="status"):
        page = listed("sums")
    first = page.one("table", cls="traces").one("tbody").all("tr")[0]
    assert ids(page)[0] == "slip"
    assert first.one(cls="hit").text == "Gold calls step 2 valid: 3 + 1 is 4, not 5."
    opened = read(pages.content(query_of(links(page)[0]["href"])).html)
    assert first.one(cls="hit").text in [hint.text for hint in opened.all("p", cls="hint")]
    page = listed("alone")
    assert notices(page) == ["alone has labels of one problem only. Doubts need labels of other problems."]


def test_a_large_dataset_is_sorted_by_doubt_nowhere(sqlite_store, evaluators, monkeypatch):
    monkeypatch.setattr(selection, "LARGEST", 3)
    add(sqlite_store, SAMPLES, "sums")
    with asking(sqlite_store, evaluators) as client:
        paths = ("/browse?dataset=sums&", "/browse/export?dataset=sums&", "/api/v1/datasets/sums/traces?")
        answers = [client.get(f"{path}sort=doubt") for path in paths]
    assert [answer.status_code for answer in answers] == [200, 422, 422]
    assert all("sums has 4 traces; at most 3 can be sorted by doubt." in answer.text for answer in answers)


def test_a_filter_is_kept_from_page_to_page(browse):
    assert pager(browse(dataset="many", gold="clean", q="Problem")) == "1–20 of 20"
    page = browse(dataset="many", q="Problem")
    following = {"dataset": ["many"], "q": ["Problem"], "page": ["2"]}
    assert query_of(page.one("a", cls="next")["href"]) == following
    opened = browse(**query_of(links(page)[3]["href"]))
    assert query_of(opened.one("a", cls="next")["href"])["q"] == ["Problem"]


def test_a_page_beyond_the_end_says_so(browse):
    page = browse(dataset="many", page="999999999999")
    assert "There is no page 999,999,999,999." in page.text
    assert pager(page) == "0 of 60"
    assert page.all("a", cls="next") == []
    assert pager(browse(dataset="many", page="0")) == "1–25 of 60"


def test_an_opened_trace_shows_gold_scores_and_neighbours(browse):
    page = browse(trace=trace_id(browse(dataset="sums"), "clean"))
    assert page.one("div", cls="q").text == "What is 2 + 2?"
    assert [mark.text for mark in page.all("span", cls="g")] == ["✓ pos"]
    assert len(page.all("div", cls="c")) == 2
    assert "scored for this page, not stored" in page.one("ul", cls="answers").text
    assert [part.text for part in page.one("p", cls="meta").all("span")] == [
        "people’s labels none yet",
        "generator hand",
    ]
    near = [browse(**query_of(page.one("a", cls=kind)["href"])) for kind in ("prev", "next")]
    assert [one.one("div", cls="q").text for one in near] == ["What is 1 + 1?", "What is 3 + 3?"]
    assert query_of(page.one("a", cls="up")["href"]) == {"dataset": ["sums"]}


def test_a_trace_can_be_read_while_it_is_scored(sqlite_store, tiny):
    evaluators = Evaluators([tiny], shipped=False)
    add(sqlite_store, [ERROR])
    # Traces are scored where there is a place, and both are taken.
    with evaluators._places.short, evaluators._places.short:
        page = read(BrowsePages(sqlite_store, evaluators).content({"trace": "1"}).html)
    (line,) = [element for element in page.all(cls="measuring") if "data-again" in element.attributes]
    assert line.text == "is scoring this trace; its bars will appear here"
    assert (len(page.one("ol", cls="steps").children), page.all("div", cls="bar")) == (2, [])


def test_score_opens_with_the_same_steps(browse):
    page = browse(trace=trace_id(browse(dataset="sums"), "error"))
    token = page.one("span", cls="out").all("a")[0]["href"].removeprefix("/?s=")
    form = Entered.from_token(token)
    assert form.trace.substeps == ERROR.substeps
    assert form.evaluators == ("tiny",)


def test_a_trace_says_where_in_its_list_it_stands_and_leads_back_there(browse):
    many = browse(dataset="many", gold="error", page="1")
    opened = browse(trace=trace_id(many, "n3"), dataset="many", gold="error")
    # Every third of the 60 has an error: n0, n3, …, n57.
    assert opened.one("span", cls="place").text == "2 of 20"
    last = browse(trace=query_of(links(browse(dataset="many", page="3"))[-1]["href"])["trace"], dataset="many")
    assert last.one("span", cls="place").text == "60 of 60"
    assert query_of(last.one("a", cls="up")["href"]) == {"dataset": ["many"], "page": ["3"]}
    outside = browse(trace=trace_id(browse(dataset="many"), "n1"), dataset="many", gold="error")
    assert outside.one("span", cls="place").text == ""


def test_the_online_view_of_an_evaluator_without_online_scores_says_so_and_shows_no_others(
    sqlite_store, evaluators
):
    (trace,) = add(sqlite_store, [ERROR])
    row = evaluators.register(sqlite_store, "tiny")
    save_judgments(sqlite_store, row.id, [judge(trace, "offline")])
    page = read(BrowsePages(sqlite_store, evaluators).content({"mode": "online"}).html)
    assert "tiny has no online scores of these traces." in page.text
    assert page.all("span", cls="mini") == []
    assert "mode" not in query_of(page.one("a", cls="other-mode")["href"])
    assert read(BrowsePages(sqlite_store, evaluators).content({}).html).all("span", cls="mini") != []


@each(
    "query, message",
    [
        ({"trace": "x"}, "trace is 'x', expected a whole number. Check the address."),
        ({"trace": str(BAD_ID)}, f"There is no trace {BAD_ID}."),
        ({"trace": "999999999999"}, "There is no trace 999999999999."),
        ({"sort": "-change"}, "tiny has not judged any trace of this dataset"),
        ({"against": "nobody"}, "No evaluator 'nobody'"),
    ],
)
def test_a_query_that_makes_no_sense_gets_a_notice_above_a_list(browse, query, message):
    page = browse(**query)
    (notice,) = notices(page)
    assert message in notice
    assert page.one("h1").text == "long"
    assert ids(page) == ["long"]


@pytest.mark.parametrize("name", ["nowhere", "a\x00b", " ", "<b>"])
def test_an_unknown_dataset_gets_a_notice_and_a_way_back(browse, name):
    page = browse(dataset=name)
    assert page.one("h1").text == "Browse"
    assert notices(page) == notices(browse(dataset=name, trace="999"))
    assert len(notices(page)) == 1
    assert page.one("a")["href"] == "/browse"


def test_an_empty_store_says_what_to_do(sqlite_store, evaluators):
    for query in ({}, {"dataset": "sums"}, {"trace": "1"}):
        page = read(BrowsePages(sqlite_store, evaluators).content(query).html)
        assert notices(page) == ["The store is empty. Add data"]


def test_a_store_that_fails_is_left_to_the_application(tmp_path, sqlite_template, evaluators):
    path = tmp_path / "store.db"
    shutil.copy(sqlite_template, path)
    with open_store(str(path)) as store:
        path.write_bytes(b"no database any more" * 1000)
        with refused(UnavailableError):
            BrowsePages(store, evaluators).content({})


def test_a_trace_with_others_of_its_problem_leads_to_them_in_the_list(sqlite_store, evaluators):
    problems = ("How many?" * 200, "How many?" * 200, "Why?")
    traces = add(sqlite_store, [Trace.of(problem, ["5"], id=f"{i}") for i, problem in enumerate(problems)], "pool")
    page = read(BrowsePages(sqlite_store, evaluators).content({"trace": str(traces[0].trace_id)}).html)
    (link,) = [one for one in page.all("a") if "of this problem" in one.text]
    assert link.text == "The 2 solutions of this problem"
    found = read(BrowsePages(sqlite_store, evaluators).content(query_of(link["href"])).html)
    assert ids(found) == ["0", "1"]
    alone = read(BrowsePages(sqlite_store, evaluators).content({"trace": str(traces[2].trace_id)}).html)
    assert "of this problem" not in alone.text


TRACE = Trace(
    "=1+1", "What is 1 + 1?", (Step(("a",), valid=True), Step(("=b", "c"), Label.NEG), Step(("d",))), {"by": "hand"}
)  # fmt: skip
SAID = {
    "percent": (Outputs.VALIDITY, [[0.4, 0, 0.6], [0.75, 0, 0.25], [0, 0, 1], [0, 0, 0]], None),
    "words": (Outputs.VERDICT, [[0, 0, 1], [1, 0, 0], [1, 0, 0], [0, 0, 0]], 0.0),
    "number": (Outputs.SOLUTION, [[0, 0, 0]] * 4, 0.25),
}
WHY = {"words": "Step 2."}


@pytest.fixture
def trace(sqlite_store):
    (trace,) = add(sqlite_store, [TRACE])
    for name, (outputs, rows, solution) in SAID.items():
        row = register_evaluator(
            sqlite_store,
            name=name,
            fingerprint=f"imported:{name}",
            format="imported",
            attention="unknown",
            info={"outputs": outputs.value},
        )
        scores = StepScores(np.array(rows, np.float32))
        save_judgments(sqlite_store, row.id, [Judgment(trace, Mode.OFFLINE, scores, solution, WHY.get(name, ""))])
    return trace


@pytest.fixture
def client(sqlite_store, evaluators):
    return TestClient(let_in(trace_files(sqlite_store, evaluators)))


def test_the_json_file_holds_trace_gold_and_judgments(client, trace, evaluators):
    query = {"trace": trace.trace_id, "beside": ["tiny", *SAID]}
    answer = client.get(JSON_PATH, params=query)
    assert answer.headers["content-disposition"] == f'attachment; filename="trace-{trace.trace_id}.json"'
    record = answer.json()
    assert record["valid"] == [True, False, None]
    assert (record["first_error"], record["labels"], record["by"]) == (2, [None, "neg", None], "hand")
    tiny, percent, words, number = record["judgments"]
    judged = evaluators.judge("tiny", trace)
    assert tiny["hindsight"][3][1][0] == pytest.approx(float(judged.hindsight.offline.probs[1, 0]), abs=1e-6)
    assert (tiny["created"] is None, percent["created"] is None) == (True, False)
    assert [step["validity"] for step in percent["offline"]["steps"]] == [0.6, 0.25, 1.0, None]
    assert [step["valid"] for step in words["offline"]["steps"]] == [True, False, False, None]
    assert (words["solution_score"], words["rationale"]) == (0.0, "Step 2.")
    assert (number["offline"], number["solution_score"], number["rationale"]) == (None, 0.25, None)


def test_the_json_file_can_be_imported_again(client, trace):
    record = client.get(JSON_PATH, params={"trace": trace.trace_id}).json()
    again = parse_trace(record, "file")
    assert (again.id, again.problem, again.substeps) == (trace.id, trace.problem, trace.substeps)
    assert again.labels == trace.labels


def test_the_csv_file_has_a_row_per_substep_evaluator_and_mode(client, trace):
    answer = client.get(CSV_PATH, params={"trace": trace.trace_id, "beside": ["tiny", *SAID]})
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(answer.text.removeprefix("\ufeff"), newline="")))
    # tiny has two modes, two others one each, of 4 sub-steps; one number for the solution has a row of its own.
    assert len(rows) == (2 + 1 + 1) * 4 + 1
    assert (rows[-1]["step"], rows[-1]["solution_score"]) == ("", "0.25")
    assert [(row["step"], row["substep"], row["gold"]) for row in rows[:4]] == [
        ("1", "1", "valid"), ("2", "1", "neg"), ("2", "2", "neg"), ("3", "1", ""),
    ]  # fmt: skip
    percent = [row for row in rows if row["evaluator"] == "percent"]
    assert [(row["neg"], row["validity"]) for row in percent] == [("", "0.6"), ("", "0.25"), ("", "1.0"), ("", "")]
    words = [row for row in rows if row["evaluator"] == "words"]
    assert [(row["neg"], row["validity"], row["valid"]) for row in words] == [
        ("", "", "True"), ("", "", "False"), ("", "", "False"), ("", "", ""),
    ]  # fmt: skip
    # What would be a formula is none.
    assert {row["text"] for row in rows[:-1]} == {"a", "'=b", "c", "d"}


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ({}, 422, "The address names no trace."),
        ({"trace": "x"}, 422, "trace is 'x', expected a whole number."),
        ({"trace": "999"}, 404, "There is no trace 999."),
        ({"trace": "1", "beside": "nobody"}, 404, "No evaluator 'nobody'"),
    ],
)
def test_a_file_of_a_missing_trace_is_refused(client, trace, query, status, message):
    for path in (JSON_PATH, CSV_PATH):
        answer = client.get(path, params=query)
        assert answer.status_code == status
        assert message in json.loads(answer.text)["error"]


def test_the_address_of_a_file_keeps_what_is_shown():
    address = Address(dataset="sums", trace=3, gold="error", q="x", evaluator="a", beside=("a", "b"))
    assert file_address(CSV_PATH, address) == "/browse/trace.csv?trace=3&amp;evaluator=a&amp;beside=a&amp;beside=b"
