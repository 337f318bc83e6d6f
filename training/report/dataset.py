"""The parts of a report: what there is to say of one dataset, section by section.

Where evaluators cannot be measured a section says so in words instead of staying empty.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from stepsight.core.judgment import Mode
from stepsight.core.label import Label
from stepsight.core.metrics.position import Third
from stepsight.core.metrics.reasoneval import Errors, Level
from stepsight.core.metrics.table import SILENT
from stepsight.core.metrics.value import Value
from stepsight.core.patch import Patch
from stepsight.storage.judgments.evaluators import StoredEvaluator
from stepsight.training.evaluate.diagnostics import by_class, by_retroactive_change, pairs
from stepsight.training.evaluate.evaluation import MODES, Evaluation, Row
from stepsight.training.report.html import Content, Part, Section
from stepsight.training.report.plots import (
    Plot,
    Styles,
    change_plot,
    class_plot,
    class_roc_plot,
    confusion_plot,
    position_plot,
    reliability_plot,
    roc_plot,
    share_plot,
    styles,
    sweep_plot,
)
from stepsight.training.report.results import (
    CALIBRATION,
    FIRST_ERRORS,
    POSITION,
    THREE_WAY,
    Thirds,
    changes,
    classes,
    confusions,
    decisions,
    differences,
    has_pairs,
    judges,
    measured_on,
    measures,
    ordered,
    outcomes,
    position_gains,
    position_values,
    positions,
    prm_titles,
    published,
    results,
    scored_rows,
    slug,
    three_way_rows,
    why_missing,
)
from stepsight.training.report.tables import CellKind, Table

_NO_PAIR = "No evaluator has judged these traces both online and offline; hindsight judgments give both."


def dataset_part(found: Evaluation) -> Part:
    """Everything that is reported of an evaluation."""
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
    return Part(measured_on(found), lead(found), sections, found.warning)


def lead(found: Evaluation) -> str:
    """What was measured on, and how much of it there is, as a sentence."""
    dataset = found.dataset
    told = f"{dataset.kind}, from {dataset.source} (SHA-256 {dataset.sha256[:12]}…): {found.size}"
    if not found.group:
        told += f", {dataset.errors:,} with a wrong step, {dataset.steps:,} steps"
    return f"{told}.{f' {patched_by(found.patch)}' if found.patch else ''}"


def patched_by(patch: Patch) -> str:
    """Which patch the gold was changed by, as a sentence."""
    return f"Gold changed by the label patch {patch.name} (digest {patch.digest[:12]}…): {patch.size}."


@dataclass(frozen=True)
class Excerpt:
    """Of a part what a screen shows at a time: its sections in one mode for one kind of error, and, by the name
    of an evaluator, what is told of its classes."""

    sections: Sequence[Section]
    classes: Mapping[str, Section]

    def shown(self, evaluator: str = "") -> list[Section]:
        """The sections, with the classes of an evaluator."""
        return [*self.sections, *([self.classes[evaluator]] if evaluator in self.classes else [])]

    def find_table(self, name: str, evaluator: str = "") -> Table | None:
        """The table of that name, those of the evaluator's classes among them; None where there is none."""
        return next((table for table in _tables(self.shown(evaluator)) if table.name == name), None)


def excerpt(found: Evaluation, mode: Mode, errors: Errors) -> Excerpt:
    """The part in one mode for one kind of error. What later steps change is told of both modes."""
    found = replace(found, rows=[row for row in found.rows if row.mode in _modes(found)])
    look = styles(ordered(found.rows))
    of_mode, of_errors = _only(found, mode=mode), _only(found, errors=errors)
    printed = published(_only(of_mode, errors=errors), errors)
    contents: list[Content] = [results(found, mode, errors)]
    contents += [printed] if printed else []
    sections = [
        Section("Solutions and steps", [*contents, _roc_plots(found, look, mode, errors)]),
        _first_errors(of_mode),
        *_prm_score(of_mode),
        _by_mode(of_errors, look),
        _by_position(of_errors, look),
        _calibration(of_mode, look),
        _classes(of_mode, look),
    ]
    rows = three_way_rows(of_mode)
    return Excerpt(sections, {row.evaluator: _of_classes(of_mode, row, look) for row in rows})


def _only(found: Evaluation, mode: Mode | None = None, errors: Errors | None = None) -> Evaluation:
    rows = [row for row in found.rows if mode in (None, row.mode) and errors in (None, row.errors)]
    return replace(found, rows=rows)


def _of_classes(found: Evaluation, row: Row, look: Styles) -> Section:
    """The classes of one evaluator, in one mode."""
    alone = replace(found, rows=[one for one in found.rows if one.evaluator == row.evaluator])
    plots = [*_class_figures(row), share_plot([row], look, row.mode)]
    return Section(f"The classes of {row.evaluator}", [confusions(alone), plots, decisions(alone)])


def evaluators_part(evaluators: Sequence[StoredEvaluator], draws: int) -> Part:
    """Who was measured, and how."""
    contents: list[Content] = [
        f"Intervals hold the middle 95 % of {draws:,} resamples of the traces, the same for every evaluator, so"
        " that differences are paired.",
        "Solution and step figures follow ReasonEval's protocol: a solution is as valid as its least valid step,"
        " and steps after the first error are not counted. A dash stands where there is no value, and a note says"
        " why. Baselines do not read what a step says.",
    ]
    contents += [judges(evaluators)] if evaluators else ["No evaluator has judged; the baselines stand alone."]
    return Part("How this was measured", "From stored judgments.", [Section("Evaluators", contents)])


def tables_of(parts: Sequence[Part]) -> list[Table]:
    """Every table, in the order of the page."""
    return _tables(section for part in parts for section in part.sections)


# Of a figure's name, in signs: file systems take 255, some less.
_LONGEST = 150


def plots_of(parts: Sequence[Part]) -> dict[str, Plot]:
    """Every group's figures by a name of their own, in the order of the page."""
    found: dict[str, Plot] = {}
    for part in parts:
        for section in part.sections:
            for plot in _plots(section):
                name = slug(f"{part.title} {section.title} {plot.caption}").lower()[:_LONGEST].rstrip("-.")
                number = sum(other.partition("--")[0] == name for other in found)
                found[f"{name}--{number + 1}" if number else name] = plot
    return found


def _plots(section: Section) -> Iterator[Plot]:
    for content in section.contents:
        if not isinstance(content, str | Table):
            yield from content


def _tables(sections: Iterable[Section]) -> list[Table]:
    return [content for section in sections for content in section.contents if isinstance(content, Table)]


def _kinds(found: Evaluation) -> list[Errors]:
    return list(dict.fromkeys(row.errors for row in found.rows))


def _modes(found: Evaluation) -> list[Mode]:
    """The modes in which an evaluator has judged; where none has, those of the baselines."""
    judged = dict.fromkeys(row.mode for row in found.rows if not row.is_baseline)
    return list(judged or dict.fromkeys(row.mode for row in found.rows))


def _results(found: Evaluation, look: Styles) -> Section:
    contents: list[Content] = []
    for errors in _kinds(found):
        plots = []
        for mode in _modes(found):
            contents.append(results(found, mode, errors))
            plots += _roc_plots(found, look, mode, errors)
        printed = published(found, errors)
        contents += [printed, plots] if printed else [plots]
    if Errors.INVALID not in _kinds(found):
        contents.append(
            "The gold has no wrong step, so that there is no ROC of validity; that of redundancy is shown."
        )
    silent = [mode for mode in MODES if mode not in _modes(found)]
    if not found.warning:
        contents += [f"No evaluator has judged these traces {mode}." for mode in silent]
    return Section("Solutions and steps", contents)


def _roc_plots(found: Evaluation, look: Styles, mode: Mode, errors: Errors) -> list[Plot]:
    rows = ordered(row for row in found.rows if (row.mode, row.errors) == (mode, errors))
    steps = [row for row in rows if row.subject.outputs.has_steps]
    return [roc_plot(steps, look, errors, Level.STEP, mode), roc_plot(rows, look, errors, Level.SOLUTION, mode)]


def _calibration(found: Evaluation, look: Styles) -> Section:
    caption = "how far step validity is from the share of valid steps (ECE, ten bins; Brier score), lower is better"
    table = measures(found, "calibration", caption, CALIBRATION, CellKind.NUMBER)
    plots = [reliability_plot(scored_rows(found, mode), look, mode) for mode in _modes(found)]
    return Section("Calibration of validity", [*([table] if table else why_missing(found, CALIBRATION)), plots])


def _first_errors(found: Evaluation) -> Section:
    table = measures(found, "first-errors", "whether the first error is found", FIRST_ERRORS, CellKind.PERCENT)
    told = outcomes(found)
    return Section(
        "First errors", [*([table] if table else why_missing(found, FIRST_ERRORS)), *([told] if told else [])]
    )


def _prm_score(found: Evaluation) -> Iterator[Section]:
    titles = prm_titles(found)
    table = (
        measures(found, "prmscore", "PRMScore by category and class", titles, CellKind.PERCENT) if titles else None
    )
    if table:
        yield Section("PRMScore", [table])


def _by_mode(found: Evaluation, look: Styles) -> Section:
    """What later steps change."""
    table = differences(found)
    if table is None:
        return Section("Online and offline", [found.warning or _NO_PAIR])
    contents: list[Content] = [table]
    for errors in _kinds(found):
        moved = changes(found, errors)
        groups = {
            online.evaluator: by_retroactive_change(online, offline)
            for online, offline in pairs(ordered(row for row in found.rows if row.errors == errors))
            if online.subject.outputs.has_steps and not online.is_baseline
        }
        contents += [*([moved] if moved else []), [change_plot(groups, look, errors)]]
    return Section("Online and offline", contents)


def _by_position(found: Evaluation, look: Styles) -> Section:
    contents: list[Content] = []
    for errors in _kinds(found):
        values = position_values(found, errors)
        contents.append(positions(found, errors, values))
        gains = position_gains(found, errors, values)
        contents += [gains] if gains else []
        contents.append(_position_plots(found, look, errors, values))
    if not has_pairs(found):
        contents.append(f"Offline minus online is not shown. {found.warning or _NO_PAIR}")
    return Section("By position", contents)


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
    table = measures(found, "three-way", "neg, neu and pos told apart", THREE_WAY, CellKind.PERCENT)
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
    contents: list[Content] = [decisions(found), confusions(found)]
    modes = dict.fromkeys(row.mode for row in rows)
    contents.append([share_plot([row for row in rows if row.mode == mode], look, mode) for mode in modes])
    # One mode of each evaluator is drawn, offline where there is one; the tables have both.
    first: dict[str, Row] = {}
    for row in rows:
        first.setdefault(row.evaluator, row)
    contents += [_class_figures(row) for row in first.values()]
    return Section("The neutral class", contents)


def _class_figures(row: Row) -> list[Plot]:
    return [confusion_plot(row), class_roc_plot(row), sweep_plot(row)]
