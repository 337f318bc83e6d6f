"""The Evidence page without a browser: one trace, the gallery, and what it asks for beside itself."""

import base64
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from stepsight.app.evidence.evidence import EvidenceAddress, open_evidence
from stepsight.app.evidence.page import EvidencePage
from stepsight.app.evidence.trace import evidence_html
from stepsight.app.score.entered import Entered
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.pages import read_query
from stepsight.core.evidence import LeaveOneOut
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.judgment_record import JudgmentRecord, ThresholdsRecord
from stepsight.core.scores import Hindsight, StepScores, Thresholds
from stepsight.core.trace import Step, Trace
from stepsight.storage.jobs.jobs import start_job
from stepsight.storage.judgments.evaluators import register_evaluator
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import find_dataset
from tests.app.client import asking
from tests.app.elements import INJECTIONS, read
from tests.app.entries import typed
from tests.app.held_up import hold_up
from tests.messages import refused
from tests.storage.samples import add, judge

LONG = Trace.of("q", ["7" * 20_000], ["neg"], id="long")
WILD = Trace.of("</script>" + INJECTIONS[0], INJECTIONS, ["neg"] + [None] * (len(INJECTIONS) - 1), id=INJECTIONS[1])
# Step 2 has two sub-steps.
FOUR = Trace(
    "four",
    "What is $1 + 1$?",
    (Step(("Add.",), valid=True), Step(("So 3.", "Yes."), valid=False), Step(("Check: 2.",), valid=True)),
    {"title": "A sum", "note": "Step 3 exposes $3$."},
)


def row(*validities):
    return np.array([[1 - v, 0.0, v] for v in validities], np.float32)


# 2.1 falls from 0.8 to 0.3 when 3 is revealed.
TRIANGLE = Hindsight((row(0.9), row(0.9, 0.8), row(0.9, 0.8, 0.9), row(0.9, 0.3, 0.9, 0.7)))
# Without 3, the last of all, 2.1 stays at 0.8; without 2.2 it is 0.35 and 3 is 0.4. Nothing rests on 2.1.
LEFT = LeaveOneOut.of(
    TRIANGLE.offline, {0: row(0.3, 0.9, 0.7), 1: row(0.9, 0.9, 0.7), 2: row(0.9, 0.35, 0.4), 3: row(0.9, 0.8, 0.9)}
)


def falling(trace, before, after):
    """Two steps, the first of which falls."""
    return Judgment(trace, Mode.HINDSIGHT, Hindsight((row(before), row(after, 0.9))))


@pytest.fixture(scope="module")
def kept(module_store, evaluators):
    """A store with FOUR, one that no evaluator can read, and 45 that fall more and more; not to be changed."""
    mini = evaluators.register(module_store, "tiny")
    (four,) = add(module_store, [FOUR], "four")
    save_judgments(module_store, mini.id, [Judgment(four, Mode.HINDSIGHT, TRIANGLE)])
    add(module_store, [LONG, WILD], "odd")
    gold = (["neg", "pos"], ["pos", "pos"], None)
    falls = add(
        module_store,
        [Trace.of(f"P{i}", ["a", "b"], gold[i % 3] if i < 3 else gold[0], id=f"f{i}") for i in range(45)],
        "falls",
    )
    save_judgments(module_store, mini.id, (falling(t, 0.9, 0.45 - i / 100) for i, t in enumerate(falls)))
    # Judged by one that is not here, whole for one trace and offline for another.
    theirs = register_evaluator(
        module_store, name="theirs", fingerprint="theirs", format="stepsight", attention="bidirectional"
    )
    save_judgments(module_store, theirs.id, [judge(falls[0], "hindsight"), judge(falls[1], "offline")])
    return module_store


@pytest.fixture
def show(kept, evaluators):
    """The page that a query string asks for, read."""
    return lambda query="": read(EvidencePage(kept, evaluators).content(read_query(query)).html)


@pytest.fixture
def ids(kept):
    with kept.read() as session:
        rows = session.connection().exec_driver_sql("SELECT external_id, id FROM traces").all()
    return {row[0]: row[1] for row in rows}


def notices(page):
    return [alert.text for alert in page.all(role="alert")]


def section(page):
    return page.one("section", cls="evidence")


def test_a_trace_with_its_matrix_its_stories_and_its_links(kept, evaluators, ids, drawn):
    # The largest revision is looked at first. Online a step is judged when all its sub-steps are there.
    query = read_query(f"trace={ids['four']}&evaluator=tiny&kind=stayed")
    drawn(EvidencePage(kept, evaluators).content(query).html)


def test_score_opens_with_the_same_steps(show, ids):
    *_, link = show(f"trace={ids['four']}&evaluator=tiny").one("p", cls="out").all("a")
    form = Entered.from_token(link["href"].removeprefix("/?s="))
    assert (link.text, form.trace.substeps, form.evaluators) == ("Open in Score", FOUR.substeps, ("tiny",))


def test_the_numbers_of_the_script_are_those_of_the_store(show, ids):
    found = section(show(f"trace={ids['four']}"))
    record = JudgmentRecord.model_validate_json(found["data-judgment"])
    places, scores = record.scores()
    np.testing.assert_allclose(scores.packed, TRIANGLE.packed, atol=5e-7)
    assert places == ((1, 1), (2, 1), (2, 2), (3, 1))
    assert record.thresholds == ThresholdsRecord(validity=0.5, redundancy=0.15)


def test_the_address_says_what_is_looked_at(show, ids):
    found = section(show(f"trace={ids['four']}&step=2.2&after=2.2"))
    assert (found["data-step"], found["data-after"]) == ("2", "2")


def test_an_unknown_step_is_named_and_the_trace_shown(show, ids):
    page = show(f"trace={ids['four']}&step=7")
    assert notices(page) == ["There is no step '7' in this trace. Its steps are 1 to 3."]
    assert section(page)["data-step"] == "1"


def test_a_causal_evaluator_is_read_in_both_orders_by_its_name(show, ids):
    page = show(f"trace={ids['four']}&evaluator=tiny-causal, read in both orders")
    assert page.one("p", cls="constant").text == "tiny-causal was not trained to be read in both orders."
    rows = JudgmentRecord.model_validate_json(section(page)["data-judgment"]).hindsight
    assert rows[-1][0] != rows[0][0]


def test_an_evaluator_that_is_not_here_shows_what_it_said(show, ids):
    page = show(f"trace={ids['f0']}&evaluator=theirs")
    assert len(page.one("table").all("td")) == 1 + 3
    assert "data-ask" not in section(page).attributes
    page = show(f"trace={ids['f1']}&evaluator=theirs")
    assert notices(page) == [
        "theirs: it has judged this trace, but not in hindsight mode. Choose another evaluator."
    ]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("trace=99999", "There is no trace 99999."),
        ("trace=abc", "trace is 'abc', expected a whole number."),
        ("s=abc", "This link is incomplete or was changed."),
        ("dataset=nowhere", "There is no dataset 'nowhere'."),
        ("dataset=falls&evaluator=nobody", "No evaluator 'nobody' has judged this dataset or can score here."),
        ("kind=odd", "kind is 'odd', expected one of wrong-to-right"),
    ],
)
def test_an_address_that_makes_no_sense_gets_a_notice(show, query, message):
    (found,) = notices(show(query))
    assert message in found


def test_where_nothing_is_judged_it_says_how_to_go_on(kept, sqlite_store, evaluators, drawn):
    for title, store, query, may_judge in (
        ("an empty store", sqlite_store, "", True),
        ("a dataset that nobody has judged", kept, "dataset=odd", True),
        ("for those who may start no job", kept, "dataset=odd", False),
        ("a kind without traces", kept, "dataset=falls&kind=stayed", False),
    ):
        drawn(EvidencePage(store, evaluators).content(read_query(query), may_judge=may_judge).html, title)


def test_a_dataset_that_is_being_judged_says_how_far_it_is(sqlite_store, evaluators, drawn):
    add(sqlite_store, [Trace.of("q", ["a", "b"], id="1")], "waiting")
    dataset = find_dataset(sqlite_store, "waiting")
    start_job(sqlite_store, dataset.id, evaluator="tiny", spec="tiny", fingerprint="0", mode="hindsight")
    drawn(EvidencePage(sqlite_store, evaluators).content(read_query("dataset=waiting")).html, "being judged")


def test_an_evaluator_that_has_not_judged_the_dataset_gives_way_to_one_that_has(show):
    page = show("dataset=falls&evaluator=tiny-causal")
    assert notices(page) == ["tiny-causal has not judged falls in hindsight mode. tiny has."]


def test_a_solution_from_the_score_page_is_judged(show):
    form = typed("What is 2 + 2?", "It is 4.\nYes.", ("tiny",), validity=0.4)
    page = show(f"s={form.token()}")
    found = section(page)
    assert json.loads(found["data-judgment"])["thresholds"]["validity"] == 0.4
    assert len(page.one("table").all("td")) == 1 + 3
    assert found["data-ask"].startswith("/evidence/left-out?s=")
    assert [link.text for link in page.one("p", cls="out").all("a")] == ["Download as a file", "Open in Score"]


def test_a_failing_equation_is_evidence_and_so_is_the_step_that_contradicts_it(kept, evaluators):
    steps = ["The bill is 14 * 17 = 228.", "So 228 + 12 = 240.", "But 140 + 98 = 238, not 228."]
    token = Entered.of(Trace.of("q", steps), ("tiny",), Thresholds(0.0)).token()
    page = read(EvidencePage(kept, evaluators).content(read_query(f"s={token}")).html)
    told = [[line.text for line in one.all("p", cls="equations")] for one in page.all("div", cls="told")]
    assert told == [
        ["In step 1, 14 * 17 is 238, not 228. Step 3 contradicts it."],
        [],
        ["It contradicts an equation of step 1 that fails."],
    ]
    rows = page.one("table", role="grid").all("tr")[1:]
    heading = page.one("p", cls="conclusion")["data-said"]
    assert heading == "Step 1 is wrong: 14 * 17 is 238, not 228. tiny does not see it."
    marked = [["title" in cell.attributes for cell in row.all("td")] for row in rows]
    assert marked == [[True], [False, False], [True, False, False]]


def test_the_gallery_is_listed_by_kind_and_change_and_paged(kept, evaluators, drawn, show):
    """45 fall below 0.5: one each is called right and unlabelled by gold, the others wrong. The last fell furthest,
    from 0.90 to 0.45 - 0.44 = 0.01."""
    for page in (1, 3):
        drawn(EvidencePage(kept, evaluators).content(read_query(f"dataset=falls&page={page}")).html, f"page {page}")
    assert show("dataset=falls&page=9").one("p", cls="pager").one("span").text == "0 of 43"


def test_the_gallery_leads_to_a_trace_and_on_to_its_neighbours(show, ids):
    href = show("dataset=falls").one("ol", cls="turns").all("a")[1]["href"]
    assert href == f"/evidence?trace={ids['f43']}&evaluator=tiny&kind=wrong-to-right&step=1"
    page = show(href.partition("?")[2])
    links = {link.text: link["href"] for link in page.one("p", cls="pager").all("a")}
    assert links["Previous"] == f"/evidence?trace={ids['f44']}&evaluator=tiny&kind=wrong-to-right"
    assert links["Next"] == f"/evidence?trace={ids['f42']}&evaluator=tiny&kind=wrong-to-right"
    assert links["The gallery"] == "/evidence?dataset=falls&evaluator=tiny&kind=wrong-to-right"
    assert page.one("span", cls="place").text == "2 of 43"
    # The 21st stands on the second page of twenty.
    later = show("dataset=falls&page=2").one("ol", cls="turns").all("a")[0]["href"]
    links = {link.text: link["href"] for link in show(later.partition("?")[2]).one("p", cls="pager").all("a")}
    assert links["The gallery"] == "/evidence?dataset=falls&evaluator=tiny&kind=wrong-to-right&page=2"


@pytest.fixture
def held(tiny):
    return hold_up(tiny)


def test_a_trace_can_be_read_until_its_evidence_is_there(sqlite_store, held, monkeypatch):
    evaluators, scorer = held
    scorer.known = [np.array([0.9, 0.05, 0.05], np.float32)]
    monkeypatch.setattr("stepsight.app.evidence.page._PATIENCE", 0.05)
    (stored,) = add(sqlite_store, [FOUR], "four")
    entered = Entered.of(Trace.of("What is 5?", ["So 3.", "No."]), ["tiny"]).token()
    queries = [read_query(f"trace={stored.trace_id}"), read_query(f"s={entered}")]
    for query in queries:
        page = read(EvidencePage(sqlite_store, evaluators).content(query).html)
        assert "data-again" in page.one(cls="notice").attributes
        assert "tiny is judging this solution" in page.one(cls="notice").text
        assert "This page continues by itself" in page.one(cls="notice").text
        assert "So 3." in page.one("ol", cls="steps").text
        assert not page.all("section", cls="moves")
    assert "gold: first error" in read(EvidencePage(sqlite_store, evaluators).content(queries[0]).html).text
    assert scorer.at_work.wait(30)
    page = read(EvidencePage(sqlite_store, evaluators).content(queries[0]).html)
    assert "tiny is judging this solution, 1 of 4 steps so far." in page.one(cls="notice").text
    scorer.go.set()
    monkeypatch.undo()
    for query in queries:
        page = read(EvidencePage(sqlite_store, evaluators).content(query).html)
        assert not page.all(cls="notice")
        assert len(page.one("section", cls="moves").all("button", cls="pick")) == len(page.all("div", cls="told"))


def test_a_file_waits_for_a_judgment_and_then_answers_429(sqlite_store, held, monkeypatch):
    evaluators, scorer = held
    (stored,) = add(sqlite_store, [FOUR], "four")
    with asking(sqlite_store, evaluators) as client:
        monkeypatch.setattr("stepsight.app.evidence.page.DOWNLOAD_PATIENCE", 0.05)
        late = client.get(f"/evidence/file?trace={stored.trace_id}")
        assert (late.status_code, late.json()["error"]) == (429, "tiny is judging this solution.")
        assert int(late.headers["retry-after"]) > 0
        monkeypatch.setattr("stepsight.app.evidence.page.DOWNLOAD_PATIENCE", 60)
        scorer.go.set()
        assert client.get(f"/evidence/file?trace={stored.trace_id}").status_code == 200


def test_the_first_dataset_that_was_judged_is_shown(show):
    page = show()
    assert [option["value"] for option in page.one("select", name="dataset").all("option")] == ["falls", "four"]
    assert "43" in page.one("nav", cls="kinds").text


def view(kept, evaluators, ids, **options):
    evidence = open_evidence(kept, evaluators, EvidenceAddress(trace=ids["four"]), 60)
    return read(evidence_html(evidence, EvidenceAddress(trace=ids["four"]), **options))


def test_the_page_may_hold_the_effects_of_leaving_steps_out(kept, evaluators, ids):
    found = section(view(kept, evaluators, ids, ask="/x", left_out=LEFT))
    record = json.loads(found["data-left-out"])
    assert "data-ask" not in found.attributes
    assert record["says"] == [
        "Leaving out any one later step changes its validity by less than 0.01.",
        "Without step 3 its validity would be 0.80: step 3 is the evidence.",
        "Leaving out any one later step changes its validity by less than 0.01.",
        "",
    ]
    assert record["rests"] == [
        "No other verdict rests on step 1.",
        "No other verdict rests on step 2.1.",
        "Without step 2.2, step 3 falls below 0.50, so its verdict rests on step 2.2.",
        "No other verdict rests on step 3. The verdict on step 3 rests on step 2.2.",
    ]
    assert record["unused"] == "No other verdict rests on steps 1 and 2.1."
    cells = [[np.full(3, np.nan) if cell is None else cell for cell in row] for row in record["rows"]]
    np.testing.assert_allclose(cells, LEFT.probs, atol=5e-4)


@pytest.mark.parametrize(("n", "size", "named"), [(3, "small", 3), (20, "large", 20), (60, "many", 20)])
def test_a_matrix_names_as_many_steps_as_there_is_room_for(kept, evaluators, n, size, named):
    form = typed("q", "\n".join(f"{i}" for i in range(10, 10 + n)), ("tiny",))
    table = read(EvidencePage(kept, evaluators).content({"s": form.token() or ""}).html).one("table")
    assert table["class"] == size
    assert len(table.all("th", scope="col", cls="named")) == named
    assert len(table.all("th", scope="col")) == n


@pytest.fixture(scope="module")
def client(kept, evaluators):
    with asking(kept, evaluators) as client:
        yield client


def test_a_long_trace_has_its_triangle_packed_for_the_script_and_its_record_whole_in_the_file(
    sqlite_store, evaluators
):
    n = 61
    rows = tuple(
        np.tile(np.float32([[0.1, 0.2, 0.7]]) - np.float32([[j, 0, -j]]) / 1000, (j + 1, 1)) for j in range(n)
    )
    trace = Trace.of("Q", [f"Step {i}: $1 + 1 = {2 + (i == 7)}$" for i in range(n)], ["pos"] * n, id="l")
    (long,) = add(sqlite_store, [trace], "long")
    theirs = register_evaluator(
        sqlite_store, name="theirs", fingerprint="theirs", format="stepsight", attention="bidirectional"
    )
    save_judgments(sqlite_store, theirs.id, [Judgment(long, Mode.HINDSIGHT, Hindsight(rows))])
    # The evaluator that is loaded would have to judge it first.
    html = EvidencePage(sqlite_store, evaluators).content(read_query(f"trace={long.trace_id}")).html
    found = section(read(html))
    assert not found.one("table", role="grid").all("td")[1:]
    assert np.array_equal(
        np.frombuffer(base64.b64decode(found["data-triangle"]), "<f4"), np.concatenate(rows).ravel()
    )
    assert JudgmentRecord.model_validate_json(found["data-judgment"]).mode == "offline"
    assert json.loads(found["data-marked"])[0] == [7, 7, "an equation fails here"]
    evidence = open_evidence(sqlite_store, evaluators, EvidenceAddress(trace=long.trace_id), 60.0)
    file = section(read(evidence_html(evidence, EvidenceAddress(trace=long.trace_id), in_file=True)))
    assert len(JudgmentRecord.model_validate_json(file["data-judgment"]).hindsight) == n
    assert "data-triangle" not in file.attributes
    # Where later steps change nothing, one row says all.
    still = Judgment(long, Mode.HINDSIGHT, Hindsight.constant(StepScores(rows[-1])))
    data = replace(evidence, judgment=still).judgment_data()
    assert data["constant"]
    assert np.array_equal(np.frombuffer(base64.b64decode(data["triangle"]), "<f4"), rows[-1].ravel())


def test_leaving_out_is_answered_for_every_sub_step(client, ids):
    answer = client.get(f"/evidence/left-out?trace={ids['four']}&evaluator=tiny")
    assert answer.status_code == 200
    assert len(answer.json()["says"]) == 4
    assert [len(row) for row in answer.json()["rows"]] == [4, 4, 4, 4]


@pytest.mark.parametrize(
    ("query", "status", "error"),
    [
        ("trace=99999", 404, "There is no trace 99999."),
        ("trace=x", 422, "trace is 'x', expected a whole number."),
        ("", 422, "The address names no trace."),
        ("dataset=falls", 422, "The address names no trace."),
    ],
)
def test_an_impossible_request_says_why(client, query, status, error):
    for path in ("left-out", "file"):
        answer = client.get(f"/evidence/{path}?{query}")
        assert (answer.status_code, answer.json()["error"][: len(error)]) == (status, error)


def test_an_evaluator_that_is_not_here_cannot_leave_out(client, ids):
    answer = client.get(f"/evidence/left-out?trace={ids['f0']}&evaluator=theirs")
    assert answer.status_code == 422
    assert answer.json()["error"] == "theirs is not loaded here, so no step can be left out."
    assert client.get(f"/evidence/file?trace={ids['f0']}&evaluator=theirs").status_code == 200


def test_the_file_comes_as_a_download(client, ids):
    answer = client.get(f"/evidence/file?trace={ids['four']}&evaluator=tiny&step=2.2")
    assert answer.headers["content-disposition"] == 'attachment; filename="stepsight-evidence-four.html"'
    assert 'data-step="2"' in answer.text
    assert "data-left-out=" in answer.text
    wild = client.get(f"/evidence/file?trace={ids[WILD.id]}&evaluator=tiny")
    name = re.fullmatch(r'attachment; filename="([\w.-]+)"', wild.headers["content-disposition"])
    assert name is not None
    assert name[1].endswith(".html")


def test_of_an_evaluator_that_gives_validity_only_nothing_else_is_offered(sqlite_store, mixed):
    token = Entered.of(Trace.of("What is 2 + 3?", ["2 + 3 = 6.", "So 6."]), ["two"]).token()

    def shown(more=""):
        return read(EvidencePage(sqlite_store, mixed).content(read_query(f"s={token}&evaluator=two{more}")).html)

    page = shown()
    assert len(page.one("table").all("td")) == 1 + 3
    assert page.all("i", cls="neu") == []
    assert json.loads(section(page)["data-judgment"])["thresholds"]["redundancy"] is None
    assert "gives validity only, not redundancy" in page.one("div", cls="sum").text
    assert notices(page) == []


def test_a_presentation_does_not_name_its_trace(show, ids):
    page = show(f"trace={ids['four']}&present=2.1")
    assert page.one("h1").text == "Presentation"
    assert section(page)["data-present"] == "2.1"
    assert "four" not in page.text


def test_a_trace_beyond_the_limit_of_a_request_is_refused_with_the_way_on(sqlite_store, tiny):
    (stored,) = add(sqlite_store, [Trace.of("What is 2 + 3?", ["2 + 3 = 5."] * 30, id="long")], "long")
    evaluators = Evaluators([tiny], shipped=False, tokens=2_000)
    with refused():
        open_evidence(sqlite_store, evaluators, EvidenceAddress(trace=stored.trace_id), 60.0)
