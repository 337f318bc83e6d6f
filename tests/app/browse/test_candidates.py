"""The candidates of one problem beside each other."""

import pytest

from stepsight.app.browse.page import browse_page
from stepsight.storage.judgments.score_files import import_scores
from stepsight.storage.traces.imports import import_file
from stepsight.storage.traces.queries import find_trace
from tests.app.elements import read
from tests.training.experiments.reranking.samples import CANDIDATES, SCORES, score_rows, write_rows


@pytest.fixture
def pool(sqlite_store, tmp_path):
    path = write_rows(tmp_path / "c.jsonl", CANDIDATES)
    import_file(sqlite_store, "strict-prmbench", path, "pool")
    return sqlite_store


@pytest.fixture
def page(pool, evaluators):
    def page(id, **query):
        trace = find_trace(pool, "pool", id).trace_id
        return read(browse_page(pool, evaluators, {"trace": str(trace), **query}).html)

    return page


def add_scores(store, tmp_path, name="qwen_prm", scores=SCORES, count=3):
    import_scores(store, "pool", write_rows(tmp_path / f"{name}.jsonl", score_rows(name, scores)[:count]))


def rules_of(page):
    return [[cell.text for cell in row.children] for row in page.one("table", cls="rules").one("tbody").all("tr")]


def test_each_rule_names_the_solution_that_it_chooses(pool, page, tmp_path):
    add_scores(pool, tmp_path)
    shown = page("a/0", view="candidates")
    # 0.5 and 0.75, right, against 1 and 0.25, wrong; both means are equal, and the first is taken.
    assert rules_of(shown) == [
        ["min", "solution 1", "0.500", "5 ✓ right"],
        ["product authors’ rule", "solution 1", "0.375", "5 ✓ right"],
        ["last", "solution 1", "0.750", "5 ✓ right"],
        ["geometric mean", "solution 1", "0.612", "5 ✓ right"],
        ["mean", "solution 1", "0.625", "5 ✓ right"],
        ["majority", "solution 1", "–", "5 ✓ right"],
        ["weighted vote by product", "solution 1", "–", "5 ✓ right"],
    ]
    cards = shown.one("ol", cls="candidates").children
    assert [card["id"] for card in cards] == ["solution-1", "solution-2"]
    assert [[chip.text for chip in card.all("span", cls="chip")] for card in cards] == [
        [row[0] for row in rules_of(shown)],
        [],
    ]
    assert [[num.text for num in card.all("span", cls="num")] for card in cards] == [
        ["0.50", "0.75"],
        ["1.00", "0.25"],
    ]
    assert "6 ✕ wrong" in cards[1].text


def test_the_evaluator_is_chosen_and_those_chosen_come_first(pool, page, tmp_path):
    add_scores(pool, tmp_path)
    add_scores(pool, tmp_path, "skywork_prm", [theirs[::-1] for theirs in SCORES])
    shown = page("a/1", view="candidates", beside="skywork_prm")
    assert [row[:2] for row in rules_of(shown)][2:5] == [
        ["last", "solution 2"],
        ["geometric mean", "solution 1"],
        ["mean authors’ rule", "solution 1"],
    ]
    (chosen,) = [one for one in shown.one("form", cls="beside").all("input") if "checked" in one.attributes]
    assert chosen["value"] == "skywork_prm"


def test_without_all_scores_only_a_majority_chooses(pool, page, tmp_path):
    shown = page("a/0", view="candidates")
    assert rules_of(shown) == [["majority", "solution 1", "–", "5 ✓ right"]]
    assert "No evaluator has scored these steps" in shown.text
    add_scores(pool, tmp_path, count=1)
    shown = page("a/0", view="candidates")
    assert len(rules_of(shown)) == 1
    assert "qwen_prm has no scores of 1 of the 2 solutions" in shown.text


def test_a_trace_with_others_of_its_problem_leads_to_them(page):
    (link,) = page("a/1").all("a", cls="pool")
    assert link.text == "The 2 solutions of this problem beside each other"
    assert "view=candidates" in link["href"]
    assert not page("b/0").all("a", cls="pool")
    # Alone it is shown all the same.
    assert len(page("b/0", view="candidates").one("ol", cls="candidates").children) == 1
