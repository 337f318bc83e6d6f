import pytest

from stepsight.app.results.measurements import Measurements
from stepsight.app.results.tables import Links, gather, overview_html, overview_table, sections_html
from stepsight.app.web.background_cache import BackgroundCache
from stepsight.core.judgment import Mode
from stepsight.core.metrics.reasoneval import Errors
from stepsight.core.trace import Trace
from stepsight.storage.judgments.evaluators import Threshold, evaluators_of, save_calibration
from stepsight.storage.traces.queries import find_dataset, list_datasets
from stepsight.storage.traces.writer import TraceWriter
from stepsight.training.report.tables import CellKind, to_csv
from tests.app.elements import read
from tests.app.results.measured import measured
from tests.storage.samples import add
from tests.training.judged import NAME, fill, row_of

KEYS = {"one_mind": "one mind", "words": "words"}


@pytest.fixture(scope="module")
def page(module_store):
    fill(module_store)
    results = Measurements(module_store)
    drawn = results.excerpt(measured(module_store, NAME, results), Mode.OFFLINE, Errors.INVALID, patience=60)
    address = {"dataset": NAME, "mode": "offline"}
    return sections_html(drawn.result.shown("one_mind"), Links(NAME, "g", Mode.OFFLINE, KEYS), address)


def test_sections_lead_to_the_traces_that_they_count_and_to_files(page, drawn):
    """one_mind offline: 3 right, 1 missed, no false alarm and no wrong step (see test_step_findings). Gold neg is
    called neg and pos once each, neu likewise neu and pos, and pos neu once and else pos."""
    drawn(page)


def test_an_evaluator_that_browse_does_not_know_leads_nowhere():
    links = Links(NAME, "", Mode.ONLINE, {})
    assert links.browse("one_mind", "online") == ""


@pytest.fixture
def results(sqlite_store):
    return Measurements(sqlite_store)


def shown(store, results, mode=Mode.OFFLINE, reference=""):
    """The overview of everything, once it is measured."""
    for dataset in list_datasets(store):
        found = measured(store, dataset.name, results)
        if reference:
            results.minus(found, reference, patience=60)
    overview = gather(results, list_datasets(store), mode, reference)
    assert not overview.waiting
    return overview


def test_a_row_for_each_evaluator_and_a_column_for_each_dataset_and_kind_of_error(sqlite_store, results):
    fill(sqlite_store)
    fill(sqlite_store, name="second")
    found = shown(sqlite_store, results)
    table = overview_table(found.columns, "step_auc", Mode.OFFLINE)
    assert [column.title for column in table.columns] == [
        "Evaluator", "second, invalid errors, 4 traces", "second, redundant errors, 4 traces",
        "three_way, invalid errors, 4 traces", "three_way, redundant errors, 4 traces",
    ]  # fmt: skip
    # Of the baselines, the best on each.
    assert [row[0] for row in table.rows] == ["one_mind", "words", "baseline:position", "baseline:constant"]
    assert table.rules == (2,)
    row = row_of(measured(sqlite_store, NAME, results).evaluation, Mode.OFFLINE)
    assert table.rows[0][3] == row.measured["step_auc"]
    assert not table.rows[1][3].exists
    assert "words on second, words on three_way: the evaluator gives no scores to rank by" in table.notes


def test_published_figures_stand_apart_and_are_never_measured(sqlite_store, results):
    # The importer's kind and the number of traces make it the paper's benchmark.
    made = [Trace.of(f"q{i}", ["a", "b"], ["neg" if i % 2 else "pos", "pos"], id=str(i)) for i in range(159)]
    with sqlite_store.write() as session:
        writer = TraceWriter(session, "bench", "mr-math-invalid", "f")
        writer.add([(f"row {i}", trace) for i, trace in enumerate(made)])
        writer.finish("f", "0" * 64)
    found = shown(sqlite_store, results)
    table = overview_table(found.columns, "sol_auc", Mode.OFFLINE)
    rows = {row[0]: row for row in table.rows}
    assert rows["LLaDA-PRM, published"][1].number == pytest.approx(0.972)
    assert [table.rows[i][0] for i in table.faint] == [name for name in rows if name.endswith(", published")]
    # Of the online mode the paper prints one evaluator only.
    online = overview_table(
        gather(results, list_datasets(sqlite_store), Mode.ONLINE).columns, "sol_auc", Mode.ONLINE
    )
    assert [online.rows[i][0] for i in online.faint] == ["LLaDA-PRM, published"]
    page = read(overview_html(found.columns, "sol_auc", Mode.OFFLINE, "", ""))
    faint = [row.one("th", scope="row").text for row in page.all("tr", cls="faint")]
    assert "LLaDA-PRM, published" in faint


def test_differences_to_a_reference_are_below_the_figures_and_columns_of_the_file(sqlite_store, results):
    fill(sqlite_store)
    found = shown(sqlite_store, results, reference="baseline:constant")
    table = overview_table(found.columns, "step_auc", Mode.OFFLINE, "baseline:constant")
    assert [column.kind for column in table.columns[1:]] == [CellKind.PERCENT, CellKind.POINTS] * 2
    # Minus the constant's 0.5.
    assert table.rows[0][2].number == pytest.approx(table.rows[0][1].number - 0.5)
    assert "three-way-invalid-minus_low" in to_csv(table).splitlines()[0]
    page = read(overview_html(found.columns, "step_auc", Mode.OFFLINE, "baseline:constant", ""))
    (first, *_) = page.all("small", cls="minus")
    assert first.text.startswith(f"{100 * table.rows[0][2].number:+.1f} [")


def test_marks_tell_what_does_not_beat_the_baselines_and_whose_thresholds_were_chosen_here(sqlite_store, results):
    dataset = fill(sqlite_store)
    one_mind, _ = evaluators_of(sqlite_store, dataset.id)
    save_calibration(sqlite_store, one_mind.id, dataset, Threshold.VALIDITY, 0.5, {})
    found = shown(sqlite_store, results)
    row = row_of(measured(sqlite_store, NAME, results).evaluation, Mode.OFFLINE)
    page = read(overview_html(found.columns, "step_auc", Mode.OFFLINE, "", ""))
    (mine,) = [line for line in page.all("tr") if line.all("th", scope="row") and line.one("th").text == "one_mind"]
    marks = [mark.text for mark in mine.all("td")[0].all("small", cls="mark")]
    assert ("not clearly above the best baseline" in marks) == (row.above_baselines is False)
    assert "thresholds chosen here" in marks


def test_a_dataset_leads_to_its_figures(sqlite_store, results):
    fill(sqlite_store, name="a&b <x>")
    page = read(overview_html(shown(sqlite_store, results).columns, "step_auc", Mode.OFFLINE, "", ""))
    (first, _) = page.one("thead").all("a")
    assert first["href"] == "/results?dataset=a%26b+%3Cx%3E&mode=offline&errors=invalid"
    assert first.text == "a&b <x>"
    assert [told.text for told in page.one("thead").all("small")] == [
        "invalid errors, 4 traces", "redundant errors, 4 traces"
    ]  # fmt: skip


def test_one_dataset_at_a_time_is_set_going(sqlite_store):
    fill(sqlite_store)
    fill(sqlite_store, name="second")
    results = Measurements(sqlite_store, BackgroundCache())
    results.measure(find_dataset(sqlite_store, "second"), patience=60)
    asked = []
    measure = results.measure

    def count(dataset, *args, **options):
        asked.append(dataset.name)
        return measure(dataset, patience=0)

    results.measure = count
    found = gather(results, [find_dataset(sqlite_store, name) for name in (NAME, "second", NAME)], Mode.OFFLINE)
    # The one that is there is shown though another one, before it, is not.
    assert [place.name for place in found.columns] == ["second", "second"]
    assert [dataset.name for dataset in found.waiting] == [NAME, NAME]
    assert asked == [NAME, "second"]


def test_more_datasets_than_the_cache_holds_are_measured_once(sqlite_store, monkeypatch):
    results = Measurements(sqlite_store, BackgroundCache(kept=0))
    for name in ("one", "two", "three", "four"):
        results.summary(fill(sqlite_store, name=name), "baseline:constant", patience=60)
    monkeypatch.setattr(results, "measure", lambda *args, **options: pytest.fail("measured again"))
    found = gather(results, list_datasets(sqlite_store), Mode.OFFLINE, "baseline:constant")
    assert {column.name for column in found.columns} == {"one", "two", "three", "four"}
    table = overview_table(found.columns, "step_auc", Mode.OFFLINE, "baseline:constant")
    assert table.rows[0][2].number == pytest.approx(table.rows[0][1].number - 0.5)


def test_a_missing_figure_is_explained(sqlite_store, results):
    add(sqlite_store, [], dataset="none")
    add(sqlite_store, [Trace.of("q", ["s"], id="1")], dataset="plain")
    fill(sqlite_store, [["pos", "pos", "neg"]] * 4, name="cut")
    found = shown_but(sqlite_store, results, "none")
    assert found.reasons == [
        "none has no traces. Import a file into it.",
        "plain has no gold labels to measure against.",
    ]
    assert [warning[:49] for warning in found.warnings] == [
        "The traces of cut stop at their first error, so th"[:49]
    ]
    # Of what stops at its first error the online figures are shown, and the heads say so.
    table = overview_table(found.columns, "step_auc", Mode.OFFLINE)
    assert {place.mode for place in found.columns} == {Mode.ONLINE}
    assert all(column.title.endswith("traces, online") for column in table.columns[1:])
    assert len(table.columns) > 1
    assert len(table.rows) > 0


def shown_but(store, results, left_out):
    for dataset in list_datasets(store):
        if dataset.name != left_out:
            measured(store, dataset.name, results)
    return gather(results, list_datasets(store), Mode.OFFLINE)
