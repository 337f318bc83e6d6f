"""The report on fine-tuning with subsets of a pool, from the paper's table, from new runs, or from both."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from stepsight.core.errors import UserError
from stepsight.training.experiments.finetuning.plots import printed_plots, subset_plots
from stepsight.training.experiments.finetuning.results import is_paper, read_printed, read_results
from stepsight.training.experiments.finetuning.tables import printed_table, run_table, sentences, subset_table
from stepsight.training.report.html import Content, Part, Section
from stepsight.training.report.report import Report


def make_filtering_report(paths: Sequence[Path], day: date | None = None) -> Report:
    """Return a report on the results in the given folders, on the paper's printed table, or on both. Raises
    `UserError` if a folder contains no results, or if a model or the paper's table is given twice."""
    printed = [path for path in paths if is_paper(path)]
    if len(printed) > 1:
        raise UserError("the paper's table is given twice.", "Give it once.")
    parts = []
    if len(printed) < len(paths):
        results = read_results([path for path in paths if path not in printed])
        own = [subset_table(results), run_table(results)]
        lead = f"{len(results)} runs, each of one model that was fine-tuned on one subset."
        parts.append(
            _part("Subsets of a pool", lead, [" ".join(sentences(results)), own[0], subset_plots(results), own[1]])
        )
    if printed:
        rows = read_printed(printed[0])
        table = printed_table(rows)
        lead = "Mistral-7B-v0.1, the mean of three seeds."
        parts.append(_part("The paper", lead, [table, printed_plots(rows)]))
    lead = f"pass@1 of greedy answers, graded with math-verify; {day or date.today():%d %B %Y}"
    return Report.of("StepSight filtering", lead, parts)


def _part(title: str, lead: str, contents: Sequence[Content]) -> Part:
    return Part(title, lead, [Section("Pass@1 and length", [content for content in contents if content])])
