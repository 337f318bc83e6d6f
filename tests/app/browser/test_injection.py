"""The corpus of injections on every page, in headless Chromium: nothing runs, nothing is lost."""

import base64
import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote_to_bytes, urlencode

import pytest
from playwright.sync_api import Page, expect

from app.evaluators import Evaluators
from core.judgment import Mode
from core.label import Label
from core.trace import Step, Trace
from storage.judgments import missing_traces, save_judgments
from storage.queries import Dataset, find_dataset
from storage.store import Store, open_store
from storage.writer import TraceWriter
from tests.app.browser.acts import score
from tests.app.injection import LONG, NAMES, PAYLOADS
from tests.checkpoints import write_evaluator
from tests.serving import served

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


def hostile_trace(number: int, texts: list[str]) -> Trace:
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
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with open_store(str(tmp_path_factory.mktemp("hostile") / "store.db")) as store:
        for name, traces in zip(DATASETS, (TRACES, TRACES[:2]), strict=True):
            with store.write() as session:
                TraceWriter(session, name, "jsonl", NAMES[0]).add([(trace.id, trace) for trace in traces])
        yield store


@pytest.fixture(scope="module")
def hostile(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
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


def datasets(store: Store) -> list[Dataset]:
    return [find_dataset(store, name) for name in DATASETS]


@pytest.fixture(params=["rendered", "source"])
def view(request, opened, hostile) -> Iterator[tuple[Page, bool]]:
    """A page of the hostile store, and whether formulas are at their source."""
    with opened(hostile) as page:
        page.add_init_script(f"localStorage.setItem('stepsight.maths', '{request.param}')")
        yield page, request.param == "source"


def quiet(page: Page) -> None:
    """Nothing ran, and nothing that could has come onto the page. Requests and the console are the fixture's."""
    assert page.evaluate(FOUND) == [None, []]


def says(page: Page, texts: list[str], within: str = "main") -> None:
    """Each text is on the page as it was written; HTML keeps no carriage return, and `\\$` is a dollar sign."""
    shown = page.locator(within).first.evaluate("e => e.textContent")
    missing = [text for text in texts if text.replace("\r", "\n").replace("\\$", "$").strip() not in shown]
    assert missing == []


def downloads(page: Page) -> list[str]:
    """What the links to CSV files on the page bring, those that hold their file themselves among them."""
    links = page.locator("main a").evaluate_all("all => all.map((a) => [a.href, a.download])")
    return [fetched(page, href) for href, name in links if "csv" in href or name.endswith(".csv")]


def fetched(page: Page, href: str) -> str:
    if not href.startswith("data:"):
        return page.request.get(href).text()
    kind, _, data = href.partition(",")
    return (base64.b64decode(data) if kind.endswith("base64") else unquote_to_bytes(data)).decode()


def no_formula(text: str) -> int:
    """Check every cell of a CSV file, and return how many there are."""
    cells = [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row]
    assert [cell for cell in cells if cell.lstrip().startswith(("=", "+", "-", "@")) and not is_number(cell)] == []
    assert [cell for cell in cells if cell.startswith(("\t", "\r"))] == []
    return len(cells)


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("number", range(len(TRACES)))
def test_a_trace_on_browse(view, number):
    page, at_source = view
    page.goto(f"/browse?{urlencode({'trace': number + 1})}")
    expect(page.locator("ol.steps > li").first).to_be_visible()
    page.wait_for_timeout(200)
    quiet(page)
    if at_source:
        says(page, [TRACES[number].problem, *TRACES[number].substeps])
        (exported,) = downloads(page)
        assert no_formula(exported) > len(TRACES[number].substeps)


def test_the_list_its_filters_and_search(view):
    page, _ = view
    for query in ({}, {"dataset": DATASETS[1]}, {"dataset": DATASETS[0], "q": "window.hit=1", "group": NAMES[2]}):
        page.goto(f"/browse?{urlencode(query)}")
        expect(page.locator("#browse a[data-go]").first).to_be_visible()
        page.wait_for_timeout(200)
        quiet(page)
        says(page, [query.get("dataset", DATASETS[0])])


@pytest.mark.parametrize("part", range(len(PARTS)))
def test_what_is_pasted_on_score(view, part):
    page, at_source = view
    texts = [text for text in PARTS[part] if text.strip()]
    score(page, texts[0], json.dumps(texts))
    expect(page.locator("#result ol.steps > li").first).to_be_visible()
    page.wait_for_timeout(200)
    quiet(page)
    if at_source:
        says(page, texts, "#result")
        (exported,) = downloads(page)
        assert no_formula(exported) > len(texts)


def test_the_other_pages(view):
    page, at_source = view
    cells = 0
    paths = ["/evidence", "/results", "/jobs"]
    paths += [f"/evidence?{urlencode({'trace': i + 1, 'evaluator': EVALUATORS[0]})}" for i in range(len(PARTS))]
    paths += [f"/{where}?{urlencode({'dataset': DATASETS[0]})}" for where in ("evidence", "results")]
    for path in paths:
        page.goto(path)
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
        page.wait_for_timeout(500)
        quiet(page)
        if at_source:
            cells += sum(no_formula(text) for text in downloads(page))
    assert cells > 20 or not at_source


@pytest.mark.parametrize("number", range(len(PARTS)))
def test_evidence_that_is_sent_to_someone(opened, hostile, tmp_path, number):
    with opened(hostile) as page:
        query = urlencode({"trace": number + 1, "evaluator": EVALUATORS[0]})
        answer = page.request.get(f"/evidence/file?{query}")
        assert answer.ok
        sent = Path(tmp_path / "evidence.html")
        sent.write_bytes(answer.body())
    with opened("file://") as page:
        page.goto(sent.as_uri())
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
        page.wait_for_timeout(200)
        assert page.evaluate("window.hit ?? null") is None
        says(page, [EVALUATORS[0]], "body")
