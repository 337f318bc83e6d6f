import shutil

import numpy as np
import pytest

from app.pages.browse import Address, browse_html
from app.text import text_html
from core.errors import UserError
from core.hindsight import Hindsight
from core.judgment import Judgment, Mode
from core.label import Label
from core.trace import Step, Trace
from storage.judgments import save_judgments
from storage.store import open_store
from tests.app.markup import INJECTIONS, read
from tests.storage.samples import ERROR, SAMPLES, add

BAD_ID, LONG = 999, Trace.of("q", ["7" * 20_000], ["neg"], id="long")


@pytest.fixture(scope="module")
def kept(tmp_path_factory, sqlite_template):
    """A store with the small samples, 60 numbered traces, and one that no evaluator can read; not to be changed."""
    path = shutil.copy(sqlite_template, tmp_path_factory.mktemp("browse") / "store.db")
    with open_store(str(path)) as store:
        add(store, SAMPLES, "sums")
        labels = (["neg"], ["pos"], None)
        add(store, [Trace.of(f"Problem {i}", [f"Step {i}."], labels[i % 3], id=f"n{i}") for i in range(60)], "many")
        add(store, [LONG], "long")
        yield store


@pytest.fixture
def browse(kept, evaluators):
    """The page that a query string asks for, read."""

    def browse(**query):
        return read(browse_html(kept, evaluators, query))

    return browse


def trace_id(page, id):
    """The database id of a trace on a list."""
    (link,) = (link for link in page.one("ol", cls="traces").all("a") if link.one("b").text == id)
    return query_of(link["href"])["trace"]


def query_of(href):
    path, _, query = href.partition("?")
    assert path == "/browse"
    return dict(part.split("=") for part in query.split("&")) if query else {}


def ids(page):
    return [item.one("b").text for item in page.one("ol", cls="traces").all("li")]


def notices(page):
    return [alert.text for alert in page.all(role="alert")]


def selected(page, name):
    return page.one("select", name=name).one("option", selected=None)["value"]


def test_an_empty_query_shows_the_first_dataset(browse):
    page = browse()
    assert page.one("h1").text == "long"
    assert notices(page) == []
    assert selected(page, "evaluator") == "tiny"


def test_a_list_counts_and_names_its_traces(browse):
    page = browse(dataset="sums")
    # Steps 2 + 1 + 2 + 3; one of them has two sub-steps in ERROR and in FIRST_ERROR.
    assert page.one("p", cls="lead").text == "4 traces, 2 with a gold error, 8 steps, 10 sub-steps"
    assert ids(page) == ["error", "clean", "missing", "first"]
    golds = [item.all("span", cls="n")[1].text for item in page.one("ol").all("li")]
    assert golds == ["✕ error at step 2", "✓ no error", "no gold", "✕ error at step 2"]
    counts = [item.all("span", cls="n")[0].text for item in page.one("ol").all("li")]
    assert counts == ["2 steps", "1 step", "2 steps", "3 steps"]


@pytest.mark.parametrize(
    ("gold", "expected"),
    [("any", ["error", "clean", "missing", "first"]), ("error", ["error", "first"]), ("clean", ["clean"])],
)
def test_the_gold_filter(browse, gold, expected):
    page = browse(dataset="sums", gold=gold)
    assert ids(page) == expected
    assert selected(page, "gold") == gold


def test_the_text_filter_finds_problems_and_steps(browse):
    assert ids(browse(dataset="sums", q="2 + 2")) == ["clean"]
    assert ids(browse(dataset="sums", q="IT IS")) == ["error", "clean", "missing"]
    page = browse(dataset="sums", q="nowhere", gold="error")
    assert ids(page) == []
    assert page.all("p", cls="hint")[0].text == "No trace meets these conditions."
    assert page.one("input", name="q")["value"] == "nowhere"


def test_pages_hold_25_traces_and_lead_to_each_other(browse):
    first, second, third = (browse(dataset="many", page=str(number)) for number in (1, 2, 3))
    assert [len(ids(page)) for page in (first, second, third)] == [25, 25, 10]
    assert ids(first) + ids(second) + ids(third) == [f"n{i}" for i in range(60)]
    assert [page.one("p", cls="pager").one("span").text for page in (first, second, third)] == [
        "1–25 of 60",
        "26–50 of 60",
        "51–60 of 60",
    ]
    assert first.all("a", cls="prev") == third.all("a", cls="next") == []
    assert query_of(second.one("a", cls="next")["href"]) == {"dataset": "many", "page": "3"}
    # The first page is the default and needs no mention.
    assert query_of(second.one("a", cls="prev")["href"]) == {"dataset": "many"}


def test_a_filter_is_kept_from_page_to_page(browse):
    page = browse(dataset="many", gold="clean", q="Problem")
    assert page.one("p", cls="pager").text.strip() == "1–20 of 20"
    page = browse(dataset="many", q="Problem")
    assert query_of(page.one("a", cls="next")["href"]) == {"dataset": "many", "q": "Problem", "page": "2"}
    opened = browse(**query_of(page.one("ol").all("a")[3]["href"]))
    assert query_of(opened.one("a", cls="next")["href"])["q"] == "Problem"


def test_a_page_beyond_the_end_is_empty_and_leads_back(browse):
    page = browse(dataset="many", page="999999999999")
    assert ids(page) == []
    assert page.one("p", cls="pager").one("span").text == "0 of 60"
    assert page.all("a", cls="next") == []
    assert browse(dataset="many", page="0").one("p", cls="pager").one("span").text == "1–25 of 60"


def test_an_opened_trace_shows_gold_scores_and_neighbours(browse):
    page = browse(trace=trace_id(browse(dataset="sums"), "clean"))
    assert page.one("p", cls="q").text == "What is 2 + 2?"
    assert [mark.text for mark in page.all("span", cls="g")] == ["✓ pos"]
    assert len(page.all("div", cls="c")) == 2
    meta = page.one("p", cls="meta")
    assert [part.text for part in meta.all("span")] == ["scored for this page, not stored", "generator hand"]
    opened = [browse(**query_of(page.one("a", cls=kind)["href"])) for kind in ("prev", "next")]
    assert [near.one("p", cls="q").text for near in opened] == ["What is 1 + 1?", "What is 3 + 3?"]
    assert query_of(page.one("a", cls="up")["href"]) == {"dataset": "sums"}
    assert selected(page, "dataset") == "sums"


def test_neighbours_are_those_of_the_filter(browse):
    first = trace_id(browse(dataset="sums"), "error")
    page = browse(trace=first, gold="error")
    assert page.all("a", cls="prev") == []
    assert browse(**query_of(page.one("a", cls="next")["href"])).one("p", cls="q").text == "What is 4 + 4?"


def test_gold_of_validity_alone_and_unlabelled_steps_are_told_apart(browse):
    page = browse(trace=trace_id(browse(dataset="sums"), "first"))
    # Step 2 has two sub-steps and is marked once.
    assert [mark.text for mark in page.all("span", cls="g")] == ["✓ valid", "✕ neg", "unlabelled"]
    assert [item.one("b").text for item in page.one("ol", cls="steps").all("li")] == ["1", "2.1", "2.2", "3"]
    without = browse(trace=trace_id(browse(dataset="sums"), "missing"))
    assert without.all("span", cls="g") == []
    assert "gold" not in without.one("section")["class"].split()


def test_the_evaluator_of_the_address_scores(browse):
    opened = trace_id(browse(dataset="sums"), "error")
    causal, unknown = (browse(trace=opened, evaluator=name) for name in ("tiny-causal", "nobody"))
    assert causal.one("div", cls="sum").children[3].text == "evaluator tiny-causal"
    assert selected(causal, "evaluator") == "tiny-causal"
    assert unknown.one("div", cls="sum").children[3].text == "evaluator tiny"


def judged(trace, validity):
    rows = [np.array([[1 - validity, 0, validity]] * (j + 1), np.float32) for j in range(len(trace.substeps))]
    return Judgment(trace, Mode.HINDSIGHT, Hindsight(tuple(rows)))


def test_a_stored_judgment_is_shown_in_place_of_a_new_one(sqlite_store, evaluators):
    (trace,) = add(sqlite_store, [ERROR])
    row = evaluators.register(sqlite_store, "tiny")
    save_judgments(sqlite_store, row.id, [judged(trace, 0.625)])
    page = read(browse_html(sqlite_store, evaluators, {"trace": str(trace.trace_id)}))
    assert [bar.one(cls="num").text for bar in page.all("div", cls="c")] == ["0.62"] * 6
    assert page.one("p", cls="meta").all("span")[0].text == "stored judgment"
    other = {"trace": str(trace.trace_id), "evaluator": "tiny-causal"}
    page = read(browse_html(sqlite_store, evaluators, other))
    assert page.one("p", cls="meta").all("span")[0].text == "scored for this page, not stored"


def test_a_trace_that_no_evaluator_can_read_is_shown_without_scores(browse):
    page = browse(trace=trace_id(browse(dataset="long"), "long"))
    assert "tokens, tiny reads at most 1,024." in notices(page)[0]
    assert [mark.text for mark in page.all("span", cls="g")] == ["✕ neg"]
    assert page.all("div", cls="c") == []
    assert page.one("p", cls="meta").all("span")[0].text == "not scored"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"trace": "x"}, "trace is 'x', expected a number. Check the address."),
        ({"trace": "-1"}, "trace is '-1', expected a number."),
        ({"trace": "1.5"}, "trace is '1.5', expected a number."),
        ({"trace": "٣"}, "expected a number."),
        ({"trace": "1" * 5000}, "expected a number."),
        ({"trace": str(BAD_ID)}, f"There is no trace {BAD_ID}."),
        ({"trace": "999999999999"}, "There is no trace 999999999999."),
        ({"trace": "0"}, "There is no trace 0."),
        ({"page": "two"}, "page is 'two', expected a number."),
        ({"gold": "maybe"}, "The gold filter is 'maybe'. Expected any, error, clean, missing."),
        ({"q": "a\x00b"}, "the text to search for holds a NUL byte."),
        ({"q": "x" * 1001}, "The text to search for is too long. Use at most 1,000 characters."),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_query_that_makes_no_sense_gets_a_notice_above_a_list(browse, query, message):
    page = browse(**query)
    (notice,) = notices(page)
    assert message in notice
    assert page.one("h1").text == "long"


@pytest.mark.parametrize("name", ["nowhere", "a\x00b", " ", "<b>"])
def test_an_unknown_dataset_gets_a_notice_and_a_way_back(browse, name):
    page = browse(dataset=name)
    assert len(notices(page)) == 1
    assert page.one("a")["href"] == "/browse"


def test_an_empty_store_says_what_to_do(sqlite_store, evaluators):
    for query in ({}, {"dataset": "sums"}):
        page = read(browse_html(sqlite_store, evaluators, query))
        assert notices(page) == ["The store is empty. Import a file: stepsight import KIND PATH"]


def test_a_store_that_fails_gets_a_notice(tmp_path, sqlite_template, evaluators):
    path = tmp_path / "store.db"
    shutil.copy(sqlite_template, path)
    with open_store(str(path)) as store:
        path.write_bytes(b"no database any more" * 1000)
        (notice,) = notices(read(browse_html(store, evaluators, {})))
    assert notice.startswith(str(path))


def test_everything_of_a_trace_is_escaped(sqlite_store, evaluators):
    traces = [
        Trace(f"{i} {text}", text, (Step((text, text), Label.NEG),), {text: text})
        for i, text in enumerate(INJECTIONS)
    ]
    for trace in add(sqlite_store, traces, '<b>"data"</b>'):
        page = read(browse_html(sqlite_store, evaluators, {"trace": str(trace.trace_id)}))
        assert page.one("p", cls="pager").all("span")[0].text == f'<b>"data"</b> · {trace.id}'
        assert page.one("select", name="dataset").one("option")["value"] == '<b>"data"</b>'
        key = trace.problem.replace("_", " ")
        # The value may be maths, the key is only text.
        assert page.one("p", cls="meta").all("span")[1].text == f"{key} {read(text_html(trace.problem)).text}"
    listed = read(browse_html(sqlite_store, evaluators, {}))
    assert listed.one("h1").text == '<b>"data"</b>'
    assert ids(listed) == [trace.id for trace in traces]


@pytest.mark.parametrize("text", INJECTIONS)
def test_what_a_query_says_is_escaped(browse, text):
    page = browse(q=text, dataset="sums")
    assert page.one("input", name="q")["value"] == text
    assert page.one("form")["data-q"] == text
    for key in ("dataset", "trace", "gold", "page", "evaluator"):
        assert browse(**{key: text}).all()
    assert notices(browse(dataset=text))[0].startswith("There is no dataset ")


def test_an_address_is_read_and_written():
    query = {"dataset": "a b&c", "trace": "7", "gold": "error", "q": "x=1 é", "page": "2", "evaluator": "tiny"}
    address = Address.read(query)
    assert address == Address("a b&c", 7, "error", "x=1 é", 2, "tiny")
    # The value of an attribute: & is escaped.
    assert address.url() == (
        "/browse?dataset=a+b%26c&amp;trace=7&amp;gold=error&amp;q=x%3D1+%C3%A9&amp;page=2&amp;evaluator=tiny"
    )
    assert address.url(trace=None, page=1, gold="any", q="", dataset="", evaluator="") == "/browse"


def test_an_empty_part_of_an_address_is_its_default():
    assert Address.read({"trace": "", "gold": "", "page": "", "other": "x"}) == Address()
    with pytest.raises(UserError, match="page is '1e3'"):
        Address.read({"page": "1e3"})
