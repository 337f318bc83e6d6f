"""The chapters of a report: what there is to say of one dataset, section by section.

Where evaluators cannot be measured a section says so in words instead of staying empty.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from core.judgment import Mode
from core.label import Label
from core.metrics.position import Third
from core.metrics.reasoneval import Errors, Level
from core.metrics.table import SILENT
from core.metrics.value import Value
from storage.evaluators import StoredEvaluator
from training.class_findings import classes, confusions, decisions, three_way_rows
from training.class_plots import class_plot, class_roc_plot, confusion_plot, share_plot, sweep_plot
from training.diagnostics import by_class, by_retroactive_change, pairs
from training.evaluation import MODES, Evaluation, Row
from training.findings import (
    CALIBRATION,
    FIRST_ERRORS,
    THREE_WAY,
    judges,
    measured_on,
    measures,
    ordered,
    prm_titles,
    published,
    results,
    scored_rows,
    why_missing,
)
from training.page import Block, Chapter, Section
from training.plots import Plot, Styles, change_plot, position_plot, reliability_plot, roc_plot, styles
from training.step_findings import (
    POSITION,
    Thirds,
    changes,
    differences,
    has_pairs,
    position_gains,
    position_values,
    positions,
)
from training.tables import Kind, Table

_NO_PAIR = "No evaluator has judged these traces both online and offline; hindsight judgments give both."


def dataset_chapter(found: Evaluation) -> Chapter:
    """Everything that is reported of an evaluation."""
    dataset = found.dataset
    lead = f"{dataset.kind}, from {dataset.source} (SHA-256 {dataset.sha256[:12]}…): {found.size}"
    if not found.group:
        lead += f", {dataset.errors:,} with a wrong step, {dataset.steps:,} steps"
    found = replace(found, rows=[row for row in found.rows if row.mode in _modes(found)])
    look = styles(ordered(found.rows))
    sections = [
        _results(found, look),
        _calibration(found, look),
        _first_errors(found),
        *_prm_score(found),
        _by_mode(found, look),
        _by_position(found, look),
        _classes(found, look),
        _neutral(found, look),
    ]
    return Chapter(measured_on(found), f"{lead}.", sections, found.warning)


def evaluators_chapter(evaluators: Sequence[StoredEvaluator], draws: int) -> Chapter:
    """Who was measured, and how."""
    blocks: list[Block] = [
        f"Intervals hold the middle 95 % of {draws:,} resamples of the traces, the same for every evaluator, so"
        " that differences are paired.",
        "Solution and step figures follow ReasonEval's protocol: a solution is as valid as its least valid step,"
        " and steps after the first error are not counted. A dash stands where there is no value, and a note says"
        " why. Baselines do not read what a step says.",
    ]
    blocks += [judges(evaluators)] if evaluators else ["No evaluator has judged; the baselines stand alone."]
    return Chapter("How this was measured", "From stored judgments.", [Section("Evaluators", blocks)])


def tables_of(chapters: Sequence[Chapter]) -> list[Table]:
    """Every table, in the order of the page."""
    blocks = [block for chapter in chapters for section in chapter.sections for block in section.blocks]
    return [block for block in blocks if isinstance(block, Table)]


def _kinds(found: Evaluation) -> list[Errors]:
    return list(dict.fromkeys(row.errors for row in found.rows))


def _modes(found: Evaluation) -> list[Mode]:
    """The modes in which an evaluator has judged; where none has, those of the baselines."""
    judged = dict.fromkeys(row.mode for row in found.rows if not row.is_baseline)
    return list(judged or dict.fromkeys(row.mode for row in found.rows))


def _results(found: Evaluation, look: Styles) -> Section:
    blocks: list[Block] = []
    for errors in _kinds(found):
        plots = []
        for mode in _modes(found):
            rows = ordered(row for row in found.rows if (row.mode, row.errors) == (mode, errors))
            blocks.append(results(found, mode, errors))
            steps = [row for row in rows if row.subject.outputs.has_steps]
            plots += [
                roc_plot(steps, look, errors, Level.STEP, mode),
                roc_plot(rows, look, errors, Level.SOLUTION, mode),
            ]
        printed = published(found, errors)
        blocks += [printed, plots] if printed else [plots]
    if Errors.INVALID not in _kinds(found):
        blocks.append(
            "The gold has no wrong step, so that there is no ROC of validity; that of redundancy is shown."
        )
    silent = [mode for mode in MODES if mode not in _modes(found)]
    if not found.warning:
        blocks += [f"No evaluator has judged these traces {mode}." for mode in silent]
    return Section("Solutions and steps", blocks)


def _calibration(found: Evaluation, look: Styles) -> Section:
    caption = "how far step validity is from the share of valid steps (ECE, ten bins; Brier score), lower is better"
    table = measures(found, "calibration", caption, CALIBRATION, Kind.NUMBER)
    plots = [reliability_plot(scored_rows(found, mode), look, mode) for mode in _modes(found)]
    return Section("Calibration of validity", [*([table] if table else why_missing(found, CALIBRATION)), plots])


def _first_errors(found: Evaluation) -> Section:
    table = measures(found, "first-errors", "whether the first error is found", FIRST_ERRORS, Kind.PERCENT)
    return Section("First errors", [table] if table else why_missing(found, FIRST_ERRORS))


def _prm_score(found: Evaluation) -> Iterator[Section]:
    titles = prm_titles(found)
    table = measures(found, "prmscore", "PRMScore by category and class", titles, Kind.PERCENT) if titles else None
    if table:
        yield Section("PRMScore", [table])


def _by_mode(found: Evaluation, look: Styles) -> Section:
    """What later steps change."""
    table = differences(found)
    if table is None:
        return Section("Online and offline", [found.warning or _NO_PAIR])
    blocks: list[Block] = [table]
    for errors in _kinds(found):
        moved = changes(found, errors)
        groups = {
            online.evaluator: by_retroactive_change(online, offline)
            for online, offline in pairs(ordered(row for row in found.rows if row.errors == errors))
            if online.subject.outputs.has_steps and not online.is_baseline
        }
        blocks += [*([moved] if moved else []), [change_plot(groups, look, errors)]]
    return Section("Online and offline", blocks)


def _by_position(found: Evaluation, look: Styles) -> Section:
    blocks: list[Block] = []
    for errors in _kinds(found):
        values = position_values(found, errors)
        blocks.append(positions(found, errors, values))
        gains = position_gains(found, errors, values)
        blocks += [gains] if gains else []
        blocks.append(_position_plots(found, look, errors, values))
    if not has_pairs(found):
        blocks.append(f"Offline minus online is not shown. {found.warning or _NO_PAIR}")
    return Section("By position", blocks)


def _position_plots(found: Evaluation, look: Styles, errors: Errors, values: Thirds) -> list[Plot]:
    plots = []
    for name, title in POSITION.items():
        for mode in _modes(found):
            parts = _of(values, mode, name)
            if parts:
                plots.append(position_plot(parts, look, f"{title} by third, {errors} errors, {mode}", title))
        gains = {key: part for key, part in _of(values, Mode.OFFLINE, f"{name}_gain").items() if has_pairs(found)}
        if gains:
            caption = f"{title} by third, {errors} errors, offline minus online"
            plots.append(position_plot(gains, look, caption, title, difference=True))
    return plots


def _of(values: Thirds, mode: Mode, name: str) -> dict[str, dict[Third, Value]]:
    """One figure of one mode, by evaluator."""
    return {
        evaluator: {third: figures[name] for third, figures in parts.items()}
        for (evaluator, said), parts in values.items()
        if said == mode and name in parts[Third.EARLY]
    }


def _classes(found: Evaluation, look: Styles) -> Section:
    rows = three_way_rows(found)
    if not rows:
        return Section("By class", [_no_classes(found)])
    table = measures(found, "three-way", "neg, neu and pos told apart", THREE_WAY, Kind.PERCENT)
    plots = []
    for mode in dict.fromkeys(row.mode for row in rows):
        figures = {row.evaluator: by_class(row.subject, found.weights) for row in rows if row.mode == mode}
        plots += [class_plot(figures, look, key, key.upper(), mode) for key in ("auc", "f1")]
    return Section("By class", [*([table] if table else []), classes(found), plots])


def _no_classes(found: Evaluation) -> str:
    labels = {Label(label).text for row in found.rows[:1] for label in row.subject.table.label if label != SILENT}
    if len(labels) < 2:
        said = f"labels steps {labels.pop()} and no others" if labels else "labels no step"
        return (
            f"The gold {said} (of some it may say that they are valid), so that there are no classes to tell apart."
        )
    return "No evaluator gives probabilities of the three classes."


def _neutral(found: Evaluation, look: Styles) -> Section:
    rows = three_way_rows(found)
    if not rows:
        return Section("The neutral class", [_no_classes(found)])
    blocks: list[Block] = [decisions(found), confusions(found)]
    modes = dict.fromkeys(row.mode for row in rows)
    blocks.append([share_plot([row for row in rows if row.mode == mode], look, mode) for mode in modes])
    # One mode of each evaluator is drawn, offline where there is one; the tables have both.
    first: dict[str, Row] = {}
    for row in rows:
        first.setdefault(row.evaluator, row)
    for row in first.values():
        blocks.append([confusion_plot(row), class_roc_plot(row), sweep_plot(row)])
    return Section("The neutral class", blocks)
