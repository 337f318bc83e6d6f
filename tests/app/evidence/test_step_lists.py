"""The lists of steps that carry a solution and that nothing needs, on the Evidence page without a browser."""

from collections.abc import Callable
from pathlib import Path

import pytest

from stepsight.app.evidence.page import evidence_page
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.trace import Trace
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.score_files import import_scores
from tests.app.elements import Element, read
from tests.storage.samples import add, write_lines

Show = Callable[[str], Element]


@pytest.fixture
def show(sqlite_store: Store, evaluators: Evaluators, tmp_path: Path) -> Show:
    """30 traces, whose first step carries the last one more and more, and whose second one nothing needs."""
    traces = [Trace.of(f"P{n}", ["<b>first", "second", "third"], id=f"t{n}") for n in range(30)]
    add(sqlite_store, traces, "rests")
    add(sqlite_store, traces, "bare")
    rows = [
        {"id": trace.id, "left_out": step, "whole": [0.9, 0.9, 0.9], "scores": scores}
        for n, trace in enumerate(traces)
        for step, scores in ((1, [0.9, 0.79 - n / 100]), (2, [0.9, 0.9]), (3, [0.1, 0.1]))
    ]
    for name in ("one", "other"):
        import_scores(sqlite_store, "rests", write_lines(tmp_path / f"{name}.jsonl", rows), name)

    def shown(query: str) -> Element:
        pairs = dict(part.split("=") for part in query.split("&") if part)
        return read(str(evidence_page(sqlite_store, evaluators, pairs).html))

    return shown


def rows(page: Element) -> list[str]:
    return [one.text for one in page.all("li")]


def links(page: Element) -> dict[str, str]:
    return {one.text: one["href"] for one in page.all("a")}


def test_a_dataset_without_hindsight_opens_with_its_steps(show: Show) -> None:
    page = show("")
    assert [one.text for one in page.all("a") if "kind=" in one["href"]][:2] == [
        "Steps that carry a solution 30",
        "Steps that nothing needs 30",
    ]
    first, *_ = page.all("li")
    assert [one.text for one in first.all("b") + first.all("span", cls="t")] == ["t29, step 1", "<b>first"]
    assert first.one("span", cls="say").text == "Without step 1, a later step loses 0.40 of its validity."
    assert first.one("div", cls="d").text.endswith("−0.40")
    assert len(rows(page)) == 20
    (address, *_) = (href for text, href in links(page).items() if text.startswith("t29"))
    assert address == "/evidence?trace=30&evaluator=one&kind=carries&step=1"
    assert "1–20 of 30" in page.text
    rest = show(links(page)["Next"].partition("?")[2])
    assert (len(rows(rest)), "21–30 of 30" in rest.text, "Next" in links(rest)) == (10, True, False)


def test_a_step_that_nothing_needs_opens_at_that_step(show: Show) -> None:
    page = show("dataset=rests&evaluator=other&kind=unused")
    first, *_ = rows(page)
    assert "Without step 2, no later step loses any of its validity." in first
    (address,) = (href for text, href in links(page).items() if text.startswith("t0,"))
    trace = show(address.partition("?")[2])
    assert links(trace)["The gallery"] == "/evidence?dataset=rests&evaluator=other&kind=unused"
    (section,) = trace.all("section", cls="evidence")
    assert section["data-step"] == "1"
    # Its earlier scores change with what comes later, and only the offline ones are known.
    assert "Of other only the scores with the whole solution in view are stored" in trace.text


def test_a_dataset_without_such_scores_has_no_list(show: Show) -> None:
    assert "No trace of bare has been scored without its steps." in show("dataset=bare&kind=carries").text
    assert "Nobody has judged bare in hindsight mode yet." in show("dataset=bare").text
    assert "There is no dataset" in show("dataset=nowhere&kind=carries").text


@pytest.mark.parametrize(
    ("query", "notice"),
    [
        ("evaluator=nobody&kind=carries", "nobody has no scores of rests without its steps. These are of one."),
        ("evaluator=other&kind=carries&gap=placeholder", "other has no scores of rests with its steps replaced."),
        ("kind=carries&page=9", "The list ends before page 9."),
    ],
)
def test_a_list_says_what_was_asked_for_and_is_not_there(show: Show, query: str, notice: str) -> None:
    assert notice in show(query).text


def test_a_last_page_that_is_full_leads_to_no_empty_one(
    sqlite_store: Store, evaluators: Evaluators, tmp_path: Path
) -> None:
    add(sqlite_store, [Trace.of(f"P{n}", ["first", "last"], id=f"t{n}") for n in range(20)], "full")
    scores = [{"id": f"t{n}", "left_out": 1, "whole": [0.9, 0.9], "scores": [0.1]} for n in range(20)]
    import_scores(sqlite_store, "full", write_lines(tmp_path / "full.jsonl", scores), "one")
    page = read(str(evidence_page(sqlite_store, evaluators, {"kind": "carries"}).html))
    assert ("1–20 of 20" in page.text, "Next" in links(page)) == (True, False)
