import csv
import io

import pytest
from fastapi.testclient import TestClient

from stepsight.app.results.measurements import Measurements
from stepsight.app.results.page import PLOTLY, ResultsPage
from stepsight.app.web import background_cache
from stepsight.app.web.background_cache import Pending
from stepsight.core.judgment import Mode
from stepsight.core.metrics.reasoneval import Errors
from stepsight.core.trace import Trace
from stepsight.storage.judgments.evaluators import evaluators_of
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.labelling.disputes import DisputeState, add_entry, open_dispute
from stepsight.storage.people.users import Role
from stepsight.storage.traces.queries import iterate_traces, list_datasets
from tests.app.client import let_in
from tests.app.elements import read
from tests.app.results.measured import measured
from tests.storage.labelling.samples import person
from tests.storage.samples import add, judge
from tests.training.evaluate.test_baseline_check import judged
from tests.training.judged import NAME, fill


@pytest.fixture(scope="module")
def kept(module_store, evaluators):
    """The pages of a store whose dataset is measured, with all that is made of it; not to be changed."""
    fill(module_store)
    results = Measurements(module_store)
    found = measured(module_store, NAME, results)
    for mode in found.modes:
        for errors in found.kinds:
            results.excerpt(found, mode, errors, patience=60)
    for reference in ("words", "nobody", "baseline:length"):
        results.minus(found, reference, patience=60)
    return ResultsPage(module_store, evaluators, results)


@pytest.fixture
def page_of(kept):
    return lambda **query: read(kept.content(query).html)


@pytest.fixture(scope="module")
def client(kept):
    return TestClient(let_in(kept.files()))


@pytest.fixture
def show(sqlite_store, evaluators):
    """The page of a query string, once everything it needs is there, read."""
    results = Measurements(sqlite_store)

    def show(**query):
        if query.get("dataset") in [one.name for one in list_datasets(sqlite_store)]:
            found = measured(sqlite_store, query["dataset"], results, query.get("group", ""))
            for mode in found.modes:
                for errors in found.kinds:
                    results.excerpt(found, mode, errors, patience=60)
        return read(ResultsPage(sqlite_store, evaluators, results).content(query).html)

    return show


def notices(page):
    return [notice.text for notice in page.all("div", cls="notice")]


def selected(page, name):
    return page.one("select", name=name).one("option", selected=None)["value"]


def test_an_empty_store_says_how_to_go_on(show):
    page = show()
    assert page.one("h1").text == "Results"
    assert notices(page) == ["The store is empty. Add data"]


def test_the_overview_has_its_choices_and_says_what_it_waits_for(sqlite_store, evaluators):
    fill(sqlite_store)
    query = {"figure": "sol_f1", "mode": "online"}
    page = read(ResultsPage(sqlite_store, evaluators, Measurements(sqlite_store)).content(query).html)
    assert (selected(page, "figure"), selected(page, "mode"), selected(page, "against")) == ("sol_f1", "online", "")
    options = [option["value"] for option in page.one("select", name="against").all("option")]
    assert options[:3] == ["", "one_mind", "words"]
    # It may be measured already; else the page's script asks again.
    assert page.all("p", role="status", data_again=None) or page.all("div", cls="finding")


def test_evaluators_that_do_not_clear_the_baselines_are_named(sqlite_store, show):
    judged(sqlite_store, "many", right=0.5)
    assert show(dataset="many").one("p", cls="baseline-check").text.startswith("On many, many does not clear")
    judged(sqlite_store, "known")
    assert show(dataset="known").all("p", cls="baseline-check") == []
    line = show().one("p", cls="baseline-check")
    assert line.text == "These evaluators do not clear the trivial baselines: on many, many. Compare evaluators"


def test_a_dataset_with_its_choices_outcomes_by_length_and_differences(kept, page_of, drawn):
    query = {"dataset": NAME, "mode": "offline", "errors": "redundant", "by": "steps", "against": "words"}
    drawn(kept.content(query).html)
    assert len(page_of(dataset=NAME, by="no such field").all("section")) == 12
    assert page_of(dataset=NAME, against="nobody").all("section")[0].one("h2").text == "Solutions and steps"


def test_nothing_else_than_a_status_is_shown_while_it_is_measured(sqlite_store, evaluators):
    fill(sqlite_store)

    class Slow(Measurements):
        def measure(self, dataset, group="", patience=0.0, *, patched=False):
            return super().measure(dataset, group, 0.0)

    results = Slow(sqlite_store)
    page = read(ResultsPage(sqlite_store, evaluators, results).content({"dataset": NAME}).html)
    (told,) = page.all("p", role="status", data_again=None)
    assert told.text.startswith("Measuring 2 evaluators and 4 baselines on 4 traces, each on 1,000 resamples.")


def test_figures_stand_while_judgments_are_added(sqlite_store, evaluators, monkeypatch):
    dataset = fill(sqlite_store)
    results = Measurements(sqlite_store)
    found = measured(sqlite_store, NAME, results)
    for mode in found.modes:
        results.excerpt(found, mode, Errors.INVALID, patience=60)
    monkeypatch.setattr(background_cache, "_REST", 1_000.0)

    def judge_another():
        one_mind, _ = evaluators_of(sqlite_store, dataset.id)
        trace = next(iterate_traces(sqlite_store, dataset.id))
        save_judgments(sqlite_store, one_mind.id, [judge(trace, "offline")])

    def lines(query):
        page = read(ResultsPage(sqlite_store, evaluators, results).content(query).html)
        assert page.all("table")
        return [line for line in page.all("p", cls="hint") if "data-again" in line.attributes]

    assert lines({"dataset": NAME}) == lines({}) == []
    judge_another()
    for query in ({"dataset": NAME}, {}):
        (line,) = lines(query)
        assert line.text.startswith("The figures of three_way are as of 20")
        assert line.text.endswith("Judgments have been added since; newer figures will appear here.")
        assert int(line["data-again"]) >= 5
    monkeypatch.setattr(background_cache, "_REST", 0.0)
    found = measured(sqlite_store, NAME, results)
    # Tables and figures that are still being drawn anew stand as well.
    monkeypatch.setattr(background_cache, "_REST", 1_000.0)
    assert len(lines({"dataset": NAME})) == 1
    monkeypatch.setattr(background_cache, "_REST", 0.0)
    results.excerpt(found, Mode.OFFLINE, Errors.INVALID, patience=60)
    assert lines({"dataset": NAME}) == lines({}) == []


def test_a_dataset_that_nobody_has_judged_says_how_to_score_it(sqlite_store, show):
    add(sqlite_store, [Trace.of(f"q{i}", ["a", "b"], ["pos", "neg"], id=str(i)) for i in range(3)], dataset="new")
    page = show(dataset="new")
    assert "No evaluator has judged new, so only baselines are shown." in page.text
    assert "baseline:length" in page.text


def test_traces_that_stop_at_their_error_are_warned_of(sqlite_store, show):
    fill(sqlite_store, [["pos", "pos", "neg"]] * 4)
    page = show(dataset=NAME, mode="offline")
    assert any("stop at their first error" in notice for notice in notices(page))
    assert selected(page, "mode") == "online"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"mode": "sideways"}, "mode is 'sideways', expected one of offline, online"),
        ({"dataset": "nowhere"}, "There is no dataset 'nowhere'"),
        ({"dataset": "plain"}, "plain has no gold labels to measure against"),
        ({"dataset": "none"}, "none has no traces"),
        ({"dataset": NAME, "group": "x"}, "three_way has no group 'x'"),
    ],
)
def test_an_address_that_makes_no_sense_gets_a_notice_and_links_on(sqlite_store, evaluators, query, message):
    fill(sqlite_store)
    add(sqlite_store, [Trace.of("q", ["s"], id="1")], dataset="plain")
    add(sqlite_store, [], dataset="none")
    results = Measurements(sqlite_store)
    if query.get("dataset") == "plain":
        measured(sqlite_store, "plain", results)
    if query.get("group"):
        with pytest.raises(Exception, match="no group"):
            measured(sqlite_store, NAME, results, query["group"])
    page = read(ResultsPage(sqlite_store, evaluators, results).content(query).html)
    assert any(message in notice for notice in notices(page))
    assert page.all("a") or page.all("form")


def test_figures_with_accepted_disputes_stand_beside_what_these_change(sqlite_store, evaluators, show):
    dataset = fill(sqlite_store)
    assert show(dataset=NAME).all("select", name="gold") == []
    boss = person(sqlite_store, "boss", Role.ADMIN)
    trace = next(iterate_traces(sqlite_store, dataset.id))
    dispute = open_dispute(sqlite_store, trace.trace_id, 1, "pos", "It is right.", boss)
    assert add_entry(sqlite_store, dispute.id, boss, "", DisputeState.ACCEPTED).state == DisputeState.ACCEPTED
    results = Measurements(sqlite_store)
    patched = results.measure(dataset, patience=60, patched=True).result
    results.excerpt(patched, Mode.OFFLINE, Errors.INVALID, patience=60)
    page = read(ResultsPage(sqlite_store, evaluators, results).content({"dataset": NAME, "gold": "patched"}).html)
    assert selected(page, "gold") == "patched"
    assert "1 label of 1 trace" in page.one("p", cls="lead").text
    section = page.all("section")[0]
    assert section.one("h2").text == "What the patch changes"
    assert [row.one("th").text for row in section.one("tbody").all("tr")][:2] == ["one_mind", "words"]
    # Browse counts by other labels.
    assert not [link for link in page.all("a") if link["href"].startswith("/browse?dataset=three_way&evaluator")]
    client = TestClient(let_in(ResultsPage(sqlite_store, evaluators, results).files()))
    asked = {"dataset": NAME, "gold": "patched", "table": "three-way-patched-change-invalid-offline"}
    assert "step_auc_change" in client.get("/results/table", params=asked).text
    report = client.get("/results/report", params={"dataset": NAME, "gold": "patched"}).text
    assert "three_way, patched" in report
    assert "It is right." in report


def test_labels_of_disputes_are_asked_for_where_none_is_accepted(page_of):
    assert notices(page_of(dataset=NAME, gold="patched")) == [
        "No dispute of three_way is accepted. Choose the benchmark's own gold."
    ]


def test_a_table_of_a_dataset_in_each_format(client):
    asked = {"dataset": NAME, "mode": "online", "errors": "invalid", "table": "three-way-invalid-online"}
    answers = {kind: client.get("/results/table", params=asked | {"format": kind}) for kind in ("csv", "tex", "md")}
    assert {answer.status_code for answer in answers.values()} == {200}
    rows = list(csv.DictReader(io.StringIO(answers["csv"].text.removeprefix("\ufeff"))))
    assert [row["evaluator"] for row in rows][:2] == ["one_mind", "baseline:constant"]
    assert answers["csv"].headers["content-disposition"] == 'attachment; filename="three-way-invalid-online.csv"'
    assert r"\begin{tabular}" in answers["tex"].text
    assert "| one\\_mind" in answers["md"].text


def test_the_overview_with_its_differences(client):
    def rows(**query):
        answer = client.get("/results/table", params={"figure": "sol_f1"} | query)
        return list(csv.DictReader(io.StringIO(answer.text.removeprefix("\ufeff"))))

    baseline = rows()[-1]
    first = rows(against=baseline["evaluator"])[0]
    assert first["evaluator"] == "one_mind"
    assert float(first["three-way-invalid-minus"]) == pytest.approx(
        float(first["three-way-invalid"]) - float(baseline["three-way-invalid"])
    )


def test_a_table_that_is_not_there_yet_is_to_be_asked_for_again(sqlite_store, evaluators):
    fill(sqlite_store)

    class Slow(Measurements):
        def summary(self, dataset, reference="", patience=0.0):
            return Pending()

    client = TestClient(let_in(ResultsPage(sqlite_store, evaluators, Slow(sqlite_store)).files()))
    answer = client.get("/results/table")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")


def test_the_classes_of_the_evaluator_asked_for(client):
    asked = {"dataset": NAME, "table": "three-way-confusion", "evaluator": "one_mind"}
    assert client.get("/results/table", params=asked).text.count("one_mind") == 3


def test_mcnemars_tests_against_the_evaluator_asked_for(client):
    tests = {"dataset": NAME, "mode": "offline", "table": "three-way-mcnemar-words", "against": "words"}
    assert client.get("/results/table", params=tests).text.count("one_mind") == 2


def test_the_report_is_a_file_that_no_browser_shows_here(client):
    answer = client.get("/results/report", params={"dataset": NAME})
    assert answer.headers["content-disposition"] == 'attachment; filename="three-way-report.html"'
    assert answer.headers["content-type"] == "application/octet-stream"
    assert "one_mind" in answer.text


def test_plotly_is_the_package_s_own(client):
    answer = client.get(PLOTLY)
    assert answer.headers["content-type"].startswith("text/javascript")
    assert "immutable" in answer.headers["cache-control"]
    assert "plotly.js v" in answer.text[:200]


@pytest.mark.parametrize(
    ("path", "query", "message"),
    [
        ("/results/table", {"dataset": NAME, "table": "nothing"}, "three_way has no table 'nothing'"),
        ("/results/table", {"dataset": NAME, "format": "exe"}, "The format is 'exe', expected csv, tex, md"),
        ("/results/table", {"mode": "x"}, "mode is 'x'"),
        ("/results/report", {"dataset": "nowhere"}, "There is no dataset 'nowhere'"),
        ("/results/report", {}, "the name of the dataset is empty"),
    ],
)
def test_a_missing_table_or_report_is_refused(client, path, query, message):
    assert message in client.get(path, params=query).json()["error"]
