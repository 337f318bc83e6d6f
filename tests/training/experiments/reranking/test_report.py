"""The report's tables and curves."""

from datetime import date

from stepsight.core.metrics.best_of_n import NO_ANSWER, RankingMethod
from stepsight.training.experiments.reranking.accuracy import measure
from stepsight.training.experiments.reranking.report import about, curve, make_rerank_report, tables_of
from stepsight.training.report.report import write_report
from stepsight.training.report.table_files import to_csv, to_markdown
from tests.training.experiments.reranking.test_accuracy import PROBLEMS, ranked


def test_the_tables_hold_every_way_and_every_number_of_candidates():
    accuracy, gains = tables_of(measure(PROBLEMS, draws=10))
    assert accuracy.title == ("Way of choosing", "N = 1", "N = 2", "N = 3")
    shown = {row[0]: row[1:] for row in accuracy.rows}
    assert len(shown) == 11
    assert shown["best of N by product"][2].number == 0.5
    header, first = to_csv(accuracy).splitlines()[:2]
    assert header.startswith("way,n1,n1_low,n1_high,n2")
    assert first.startswith("first candidate,0.0,")
    assert gains.title == (
        "Way of choosing", "over the first candidate", "over a random candidate", "over the shortest",
        "over the majority vote",
    )  # fmt: skip
    assert gains.rows[0][0] == "majority vote"
    assert gains.rows[0][4] is None
    assert "+50.0" in to_markdown(gains)


def test_the_problems_behind_the_figures_are_stated():
    text = about(measure([*PROBLEMS, ranked([0.5], [0], None)], draws=10))
    assert text.startswith("2 problems, up to 3 candidates each.")
    assert "1 problem with fewer candidates count" in text
    assert "1 problem without a right answer" in text


def test_the_curves_lie_between_the_baselines_and_what_no_choice_can_pass():
    plot = curve(measure(PROBLEMS, draws=10), RankingMethod.BEST_OF_N)
    names = [trace.name for trace in plot.figure.data]
    assert names == [
        "any candidate right (pass@N)", "best of N by min", "best of N by product", "best of N by last",
        "majority vote", "shortest candidate", "random candidate", "first candidate",
    ]  # fmt: skip
    assert list(plot.figure.data[0].x) == [1, 2, 3]
    assert list(plot.figure.data[1].y) == [0.1667, 0.3333, 0.5]
    assert plot.figure.layout.xaxis.type == "log"


def test_without_answers_the_curves_say_why_there_is_no_vote():
    found = measure([ranked([0.2, 0.9], [NO_ANSWER, NO_ANSWER], [0, 1])], draws=10)
    plot = curve(found, RankingMethod.WEIGHTED_VOTE)
    assert len(plot.figure.data) == 4
    (note,) = plot.notes
    assert note.startswith("weighted vote by min, ")
    assert note.endswith("majority vote: no candidate has an answer")
    assert tables_of(found)[0].notes == ("–: no candidate has an answer.",)


def test_the_page_is_whole_and_written_with_its_tables(tmp_path):
    found = measure(PROBLEMS, draws=10)
    report = make_rerank_report(found, "c & d.jsonl", "Scored by tiny.", date(2026, 1, 2))
    assert "c &amp; d.jsonl; 02 January 2026" in report.page
    assert report.page.count("data-figure=") == 2
    page = write_report(report, tmp_path / "report")
    assert page.read_text(encoding="utf-8") == report.page
    assert {path.name for path in (tmp_path / "report" / "tables").iterdir()} == {
        f"rerank-{name}.{suffix}" for name in ("accuracy", "gains") for suffix in ("tex", "csv", "md")
    }
