"""The corpus of injections on every page, in headless Chromium: nothing runs, nothing is lost."""

import base64
import csv
import io
import json
from pathlib import Path
from urllib.parse import unquote_to_bytes, urlencode

import pytest
from playwright.sync_api import expect

from stepsight.app.markup.markdown import markdown_html
from stepsight.app.markup.text import text_html
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.judgment import Mode
from stepsight.core.trace import Label, Step, Trace
from stepsight.storage.judgments.judgments import missing_traces, save_judgments
from stepsight.storage.traces.queries import find_dataset
from stepsight.storage.traces.writer import TraceWriter
from tests.app.browser.acts import score
from tests.app.elements import read
from tests.app.injection import LONG, NAMES, PAYLOADS
from tests.browser import until
from tests.checkpoints import write_evaluator
from tests.serving import served

pytestmark = pytest.mark.slow

SHORT = [text for text in PAYLOADS if text not in LONG]
PART = 20
PARTS = [SHORT[i : i + PART] for i in range(0, len(SHORT), PART)]
EVALUATORS = ["<img src=x onerror=window.hit=1>", "${window.hit=1} {{7*7}} =1+1"]
DATASETS = NAMES[:2]
# What none of our pages holds, and what would act.
FOREIGN = "script, iframe, object, embed, base, link, meta, template, plaintext, noscript, mglyph, video, x"
FOUND = f"""() => {{
  const all = [...document.querySelectorAll("main *")];
  const bad = all.filter((e) => e.matches("{FOREIGN}")
    || [...e.attributes].some((a) => a.name.startsWith("on") || a.name.startsWith("v-"))
    || /^(javascript|data:text)/i.test(e.getAttribute("href") ?? e.getAttribute("xlink:href") ?? "")
    || /evil/.test(e.getAttribute("src") ?? e.getAttribute("action") ?? e.getAttribute("style") ?? ""));
  return [window.hit ?? null, bad.map((e) => e.outerHTML.slice(0, 200))];
}}"""


def hostile_trace(number, texts):
    """A trace that says `texts` everywhere: every third step has sub-steps, every third no gold."""
    labels = [(Label.POS, Label.NEG, None)[i % 3] for i in range(len(texts))]
    steps = tuple(
        Step((text, f"{text} .") if i % 3 == 0 else (text,), label)
        for i, (text, label) in enumerate(zip(texts, labels, strict=True))
    )
    name = NAMES[number % len(NAMES)]
    return Trace(f"{number} {name}", texts[0], steps, {name: texts[1][:120], "classification": name})


TRACES = [hostile_trace(i, part) for i, part in enumerate([*PARTS, LONG])]


@pytest.fixture(scope="module")
def store(module_store):
    for name, traces in zip(DATASETS, (TRACES, TRACES[:2]), strict=True):
        with module_store.write() as session:
            TraceWriter(session, name, "jsonl", NAMES[0]).add([(trace.id, trace) for trace in traces])
    return module_store


@pytest.fixture(scope="module")
def hostile(store, tmp_path_factory):
    """The address of a store and evaluators that are hostile throughout."""
    folder = tmp_path_factory.mktemp("evaluators")
    folders = [
        write_evaluator(folder / name, seed=i, max_position_embeddings=6000, is_causal=i == 1)
        for i, name in enumerate(EVALUATORS)
    ]
    evaluators = Evaluators(folders, shipped=False)
    for name in EVALUATORS:
        row = evaluators.register(store, name)
        for dataset in datasets(store):
            missing = missing_traces(store, dataset.id, row.id, Mode.HINDSIGHT)
            judged = evaluators.scorer(name).score(missing, Mode.HINDSIGHT, on_skip=lambda *_: None)
            save_judgments(store, row.id, judged)
    with served(store, evaluators) as address:
        yield address


def datasets(store):
    return [find_dataset(store, name) for name in DATASETS]


@pytest.fixture
def view(opened, hostile):
    """A page of the hostile store. What acts late is found when it is left."""
    with opened(hostile) as page:
        yield page
        page.wait_for_timeout(300)
        quiet(page)


def read_markdown(text):
    """What is left to read of a text once its Markdown is rendered."""
    rendered = read(str(markdown_html(text))).text
    return text if rendered == read(str(text_html(text))).text else rendered


def quiet(page):
    """Nothing ran, and nothing that could has come onto the page. Requests and the console are the fixture's."""
    assert page.evaluate(FOUND) == [None, []]


def drawn(page):
    """Wait until every formula is drawn and what that brought had a frame to act."""
    until(page, "!document.querySelector('main span.math:not([data-done])')")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")


def holds(page, texts, within="main"):
    """Nothing acts once the formulas are drawn, and with them at their source each text is as it was written."""
    drawn(page)
    quiet(page)
    page.evaluate(
        "document.querySelectorAll('span.math').forEach((span) => { span.textContent = span.dataset.source; })"
    )
    says(page, texts, within)
    quiet(page)


def visit(page, url, there):
    """Ask the page for another address of its own, and wait for what is `there` alone."""
    page.evaluate("(url) => history.pushState(null, '', url)", url)
    page.evaluate("dispatchEvent(new PopStateEvent('popstate'))")
    expect(page.locator(there).first).to_be_visible()


def says(page, texts, within="main"):
    """Each text is on the page as it was written; HTML keeps no carriage return, and `\\$` is a dollar sign."""
    shown = page.locator(within).first.evaluate("e => e.textContent")
    missing = [text for text in texts if text.replace("\r", "\n").replace("\\$", "$").strip() not in shown]
    assert missing == []


def downloads(page):
    """What the links to CSV files on the page bring, those that hold their file themselves among them."""
    links = page.locator("main a").evaluate_all("all => all.map((a) => [a.href, a.download])")
    return [fetched(page, href) for href, name in links if "csv" in href or name.endswith(".csv")]


def fetched(page, href):
    if not href.startswith("data:"):
        return page.request.get(href).text()
    kind, _, data = href.partition(",")
    return (base64.b64decode(data) if kind.endswith("base64") else unquote_to_bytes(data)).decode()


def no_formula(text):
    """Check every cell of a CSV file, and return how many there are."""
    cells = [cell for row in csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline="")) for cell in row]
    assert [cell for cell in cells if cell.lstrip().startswith(("=", "+", "-", "@")) and not is_number(cell)] == []
    return len(cells)


def is_number(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return True


def test_traces_on_browse(view):
    view.goto("/browse?trace=1")
    for number, trace in enumerate(TRACES, 1):
        expect(view.locator(f".pager[data-trace='{number}']")).to_be_visible()
        holds(view, [trace.problem, *map(read_markdown, trace.substeps)])
        (exported,) = downloads(view)
        assert no_formula(exported) > len(trace.substeps)
        if number < len(TRACES):
            view.locator("a.next").click()


def test_the_list_its_filters_and_search(view):
    view.goto("/browse")
    expect(view.locator("a.open").first).to_be_visible()
    holds(view, DATASETS[:1])
    visit(view, f"/browse?{urlencode({'dataset': DATASETS[1]})}", f"a.open >> nth={len(TRACES[:2]) - 1}")
    expect(view.locator("h1")).to_have_text(DATASETS[1])
    holds(view, DATASETS[1:])
    query = {"dataset": DATASETS[0], "q": "window.hit=1", "group": NAMES[2]}
    visit(view, f"/browse?{urlencode(query)}", ".chips .chip >> nth=1")
    holds(view, [DATASETS[0], query["q"], query["group"]])


def test_a_pasted_solution_on_score(view):
    token = None
    for part in PARTS:
        texts = [text for text in part if text.strip()]
        if token is None:
            score(view, texts[0], json.dumps(texts))
        else:
            view.get_by_label("Problem").fill(texts[0])
            view.get_by_role("textbox", name="Solution").fill(json.dumps(texts))
            view.get_by_role("button", name="Score", exact=True).click()
        shown = "(before) => (document.querySelector('#result section')?.dataset.token ?? before) !== before"
        until(view, shown, arg=token)
        token = view.locator("#result section").get_attribute("data-token")
        holds(view, texts, "#result")
        (exported,) = downloads(view)
        assert no_formula(exported) > len(texts)


def test_evidence(view):
    view.goto("/evidence")
    expect(view.locator("h1")).to_have_count(1)
    holds(view, [])
    visit(view, f"/evidence?{urlencode({'dataset': DATASETS[0]})}", "nav.kinds")
    holds(view, DATASETS[:1])
    for i, part in enumerate(PARTS, 1):
        query = urlencode({"trace": i, "evaluator": EVALUATORS[0]})
        visit(view, f"/evidence?{query}", f".pager[data-trace='{i}']")
        holds(view, [part[0], EVALUATORS[0]])
        drawn(view)
        quiet(view)


def test_results_and_jobs(view):
    cells = 0
    for path in ("/results", f"/results?{urlencode({'dataset': DATASETS[0]})}"):
        view.goto(path)
        expect(view.locator("#results table").first).to_be_visible()
        expect(view.locator("main [data-again]")).to_have_count(0)
        holds(view, DATASETS[:1])
        cells += sum(no_formula(text) for text in downloads(view))
    assert cells > 20
    view.goto("/jobs")
    expect(view.get_by_role("heading", level=1)).to_have_count(1)
    holds(view, [])


def test_evidence_that_is_sent_to_someone(opened, hostile, tmp_path):
    sent = []
    with opened(hostile) as page:
        for number in range(1, len(PARTS) + 1):
            query = urlencode({"trace": number, "evaluator": EVALUATORS[0]})
            answer = page.request.get(f"/evidence/file?{query}")
            assert answer.ok
            sent.append(Path(tmp_path / f"{number}.html"))
            sent[-1].write_bytes(answer.body())
    with opened("file://") as page:
        for path in sent:
            page.goto(path.as_uri())
            expect(page.get_by_role("heading", level=1)).to_have_count(1)
            page.wait_for_timeout(200)
            assert page.evaluate("window.hit ?? null") is None
            says(page, [EVALUATORS[0]], "body")
