"""The report's tables and curves."""

from datetime import date

import numpy as np

from stepsight.core.judgment import Mode
from stepsight.core.metrics.best_of_n import NO_ANSWER, Aggregation, Ties
from stepsight.core.scores import Outputs
from stepsight.training.experiments.reranking.accuracy import measure
from stepsight.training.experiments.reranking.report import (
    about,
    curve,
    make_rerank_report,
    measured_of,
    overview_of,
    tables_of,
)
from stepsight.training.experiments.reranking.reranking import RankedPool, Reranking
from stepsight.training.report.report import write_report
from stepsight.training.report.tables import to_csv, to_markdown
from tests.training.experiments.reranking.test_accuracy import PROBLEMS, ranked


def pool(problems, name="tiny"):
    return RankedPool(name, Aggregation.MIN, Outputs.VALIDITY, (), problems, measure(problems, draws=10))


def test_the_tables_hold_every_way_and_every_number_of_candidates():
    ranking = pool(PROBLEMS)
    accuracy, gains = tables_of(ranking, ranking.accuracy)
    assert accuracy.title == ("Way of choosing, by min", "N = 1", "N = 2", "N = 3")
    shown = {row[0]: row[1:] for row in accuracy.rows}
    assert len(shown) == 7
    assert shown["best of N"][2].number == 0.5
    header, first = to_csv(accuracy).removeprefix("\ufeff").splitlines()[:2]
    assert header.startswith('"way","n1","n1_low","n1_high","n2"')
    assert first.startswith('"first candidate",0.0,')
    assert gains.title[1:] == (
        "over first candidate", "over random candidate", "over shortest candidate", "over majority vote",
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
    ranking = pool(PROBLEMS)
    plot = curve(ranking, ranking.accuracy)
    names = [trace.name for trace in plot.figure.data]
    assert names == [
        "any candidate right (pass@N)", "best of N", "weighted vote", "majority vote", "shortest candidate",
        "random candidate", "first candidate",
    ]  # fmt: skip
    assert list(plot.figure.data[0].x) == [1, 2, 3]
    assert list(plot.figure.data[1].y) == [0.1667, 0.3333, 0.5]
    assert plot.figure.layout.xaxis.type == "log"


def test_without_answers_the_curves_say_why_there_is_no_vote():
    ranking = pool([ranked([0.2, 0.9], [NO_ANSWER, NO_ANSWER], [0, 1])])
    plot = curve(ranking, ranking.accuracy)
    assert len(plot.figure.data) == 5
    assert plot.notes[0].endswith("majority vote: no candidate has an answer")
    accuracy, gains = tables_of(ranking, ranking.accuracy)
    assert accuracy.notes == ("–: no candidate has an answer.",)
    assert len(gains.title) == 4


def reranking(*names):
    """The problems as ranked by evaluators of these names, every other one of which has it backwards."""
    evaluators = [
        pool([ranked(abs(place % 2 - np.exp(one.logs)), one.groups, one.correct) for one in PROBLEMS], name)
        for place, name in enumerate(names)
    ]
    return Reranking(None, Mode.OFFLINE, tuple(evaluators), "as texts", Ties.RANDOM)


def test_evaluators_are_compared_by_best_of_n():
    _, between = overview_of(measured_of(reranking("math_shepherd", "skywork", "ours")))
    assert [cell if cell is None else cell.number for cell in between.rows[0][1:]] == [None, 0.5, 0.0]


def test_the_page_is_whole_and_written_with_its_tables(tmp_path):
    report = make_rerank_report(reranking("tiny"), "c & d.jsonl", "Scored by tiny.", date(2026, 1, 2))
    assert "c &amp; d.jsonl; 02 January 2026" in report.page
    assert report.page.count("data-figure=") == 1
    page = write_report(report, tmp_path / "report")
    assert page.read_text(encoding="utf-8") == report.page
    assert {path.name for path in (tmp_path / "report" / "tables").iterdir()} == {
        f"rerank-{name}.{suffix}" for name in ("accuracy", "gains") for suffix in ("tex", "csv", "md")
    }


def test_several_evaluators_have_a_part_each_after_one_that_compares_them():
    report = make_rerank_report(reranking("qwen_prm", "tiny"), "c.jsonl", "Scored by both.", date(2026, 1, 2))
    assert [table.name for table in report.tables] == [
        *(f"rerank-{name}" for name in ("evaluators", "between")),
        *(f"rerank-{name}-{one}" for one in ("qwen-prm", "tiny") for name in ("accuracy", "gains")),
    ]
    assert report.page.count("data-figure=") == 2
