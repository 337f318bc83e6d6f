"""The report's tables and curves."""

from datetime import date

import numpy as np

from stepsight.core.judgment import Mode
from stepsight.core.metrics.best_of_n import NO_ANSWER, Aggregation, RankingMethod, Ties
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
from tests.messages import refused
from tests.training.experiments.reranking.test_accuracy import PROBLEMS, ranked


def test_the_tables_hold_every_way_and_every_number_of_candidates():
    accuracy, gains, rules = tables_of(measure(PROBLEMS, draws=10))
    assert accuracy.title == ("Way of choosing", "N = 1", "N = 2", "N = 3")
    shown = {row[0]: row[1:] for row in accuracy.rows}
    assert len(shown) == 15
    assert shown["best of N by product"][2].number == 0.5
    header, first = to_csv(accuracy).removeprefix("\ufeff").splitlines()[:2]
    assert header.startswith('"way","n1","n1_low","n1_high","n2"')
    assert first.startswith('"first candidate",0.0,')
    assert gains.title == (
        "Way of choosing", "over the first candidate", "over a random candidate", "over the shortest",
        "over the majority vote",
    )  # fmt: skip
    assert gains.rows[0][0] == "majority vote"
    assert gains.rows[0][4] is None
    assert "+50.0" in to_markdown(gains)
    assert rules.title == (
        "Way of choosing", "over min", "over product", "over last", "over geometric mean", "over mean",
    )  # fmt: skip
    assert [row[1:][place] for place, row in enumerate(rules.rows)] == [None] * 5


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
        "best of N by geometric mean", "best of N by mean",
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


def reranking(*names):
    """The problems as ranked by evaluators of these names, every other one of which has it backwards."""
    evaluators = []
    for place, name in enumerate(names):
        theirs = [
            ranked(abs(place % 2 - np.exp(one.logs[Aggregation.MIN])), one.groups, one.correct) for one in PROBLEMS
        ]
        evaluators.append(RankedPool(name, Outputs.VALIDITY, (), theirs, measure(theirs, draws=10)))
    return Reranking(None, Mode.OFFLINE, tuple(evaluators), "as texts", Ties.RANDOM)


def test_the_rule_of_authors_stands_beside_the_best():
    given = reranking("math_shepherd", "Skywork-o1-Open-PRM-Qwen-2.5-7B", "ours")
    _, rules, between = overview_of(measured_of(given), "min")
    # Of equally good rules the authors' own is named.
    assert [row[1] for row in rules.rows] == ["min", "mean", None]
    assert [row[3] for row in rules.rows] == ["best of N by min", "best of N by mean", "best of N by min"]
    assert rules.rows[0][6].startswith("Wang et al. 2024")
    assert [cell if cell is None else cell.number for cell in between.rows[0][1:]] == [None, 0.5, 0.0]
    with refused():
        overview_of(measured_of(given), "official")


def test_the_page_is_whole_and_written_with_its_tables(tmp_path):
    report = make_rerank_report(reranking("tiny"), "min", "c & d.jsonl", "Scored by tiny.", date(2026, 1, 2))
    assert "c &amp; d.jsonl; 02 January 2026" in report.page
    assert report.page.count("data-figure=") == 2
    page = write_report(report, tmp_path / "report")
    assert page.read_text(encoding="utf-8") == report.page
    assert {path.name for path in (tmp_path / "report" / "tables").iterdir()} == {
        f"rerank-{name}.{suffix}"
        for name in ("accuracy", "gains", "between-rules")
        for suffix in ("tex", "csv", "md")
    }


def test_several_evaluators_have_a_part_each_after_one_that_compares_them():
    report = make_rerank_report(
        reranking("qwen_prm", "tiny"), "min", "c.jsonl", "Scored by both.", date(2026, 1, 2)
    )
    kinds = ("accuracy", "gains", "between-rules")
    assert [table.name for table in report.tables] == [
        *(f"rerank-{name}" for name in ("evaluators", "rules", "between")),
        *(f"rerank-{name}-{one}" for one in ("qwen-prm", "tiny") for name in kinds),
    ]
    assert report.page.count("data-figure=") == 4
