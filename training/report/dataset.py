"""The part of a report that covers one dataset, section by section.

If a figure cannot be measured, its section says why.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from stepsight.core.judgment import Mode
from stepsight.core.metrics.figures import CALIBRATION, FIRST_ERRORS, THREE_WAY, Metrics
from stepsight.core.metrics.reasoneval import Errors, Level
from stepsight.core.metrics.table import SILENT
from stepsight.core.trace import Label
from stepsight.storage.judgments.evaluators import StoredEvaluator
from stepsight.training.evaluate.diagnostics import by_class, by_retroactive_change, pairs
from stepsight.training.evaluate.evaluation import MODES, Evaluation, Row
from stepsight.training.report.differences import (
    Compared,
    Patched,
    change_tables,
    changes,
    difference_table,
    differences,
    entries,
    mcnemar_table,
)
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
    CLASS_FIGURES,
    POSITION,
    Thirds,
    calibration_figures,
    classes,
    confusions,
    decisions,
    evaluators_table,
    first_error_figures,
    has_gold,
    has_pairs,
    has_shares,
    measures,
    of_thirds,
    ordered,
    outcomes,
    position_gains,
    position_values,
    positions,
    prm_score,
    published,
    results,
    scored_rows,
    share_figures,
    three_way_rows,
    why_missing,
)
from stepsight.training.report.tables import Table

_SHARES_ALONE = (
    "These traces have soft labels alone. A share says neither valid nor wrong, so that figures of verdicts, first"
    " errors, calibration and classes are left out."
)
_DETAILS = ("Calibration of validity", "By position", "By class")
_NO_PAIR = "No evaluator has judged these traces both online and offline; hindsight judgments give both."


def dataset_part(evaluation: Evaluation) -> Part:
    """Return the part of a report on an evaluation, in all its modes and for all kinds of error."""
    evaluation = replace(evaluation, rows=[row for row in evaluation.rows if row.mode in _modes(evaluation)])
    look = styles(ordered(evaluation.rows))
    sections = _sections(evaluation, evaluation, evaluation, look)
    if has_gold(evaluation) or not has_shares(evaluation):
        sections[0] = Section(sections[0].title, [*sections[0].contents, *_left_out(evaluation)])
        sections.append(Section("The neutral class", _neutral(evaluation, look)))
    return Part(evaluation.view.name, lead(evaluation), sections, evaluation.warning)


def _sections(both: Evaluation, of_mode: Evaluation, of_errors: Evaluation, look: Styles) -> list[Section]:
    """Return the sections of a report on a dataset. Their evaluations may be restricted to one mode (`of_mode`), to
    one kind of error (`of_errors`) or to `both`; how later steps change validity takes both modes.
    A section without contents is left out."""
    if has_shares(of_mode) and not has_gold(both):
        return [Section("Soft labels", [_SHARES_ALONE, share_figures(of_mode)])]
    redundant = outcomes(of_mode, of_redundancy=True) if Errors.REDUNDANT in _kinds(of_mode) else None
    reliability = [reliability_plot(scored_rows(of_mode, mode), look, mode) for mode in _modes(of_mode)]
    contents: dict[str, Sequence[Content | None]] = {
        "Solutions and steps": _results(both, look),
        "Calibration of validity": [*_table_or_reasons(calibration_figures, of_mode, CALIBRATION), reliability],
        "Soft labels": [share_figures(of_mode) if has_shares(of_mode) else None],
        "First errors": [*_table_or_reasons(first_error_figures, of_mode, FIRST_ERRORS), outcomes(of_mode)],
        "Redundant solutions": [redundant],
        "PRMScore": [prm_score(of_mode)],
        "Online and offline": _mode_contents(of_errors, look),
        "By position": _position_contents(of_errors, look),
        "By class": _classes(of_mode, look),
    }
    sections = [
        Section(title, [content for content in parts if content is not None], title in _DETAILS)
        for title, parts in contents.items()
    ]
    return [section for section in sections if section.contents]


def _table_or_reasons(
    table: Callable[[Evaluation], Table | None], evaluation: Evaluation, metrics: Metrics
) -> Sequence[Content]:
    """Return the table of metrics, or the reasons why there is none."""
    made = table(evaluation)
    return why_missing(evaluation, metrics) if made is None else [made]


def patched_part(patched: Patched) -> Part:
    """Return the part of a report on the patched gold labels. Its first section says what the patch changes."""
    part = dataset_part(patched.after)
    changed = Section("What the patch changes", [*change_tables(patched).values(), entries(patched)])
    return Part(part.title, part.lead, [changed, *part.sections], part.warning)


def change_section(before: Evaluation, after: Evaluation, mode: Mode, errors: Errors) -> Section:
    """Return a section on what the patch of `after` changes in one mode and for one kind of error. `before` is the
    evaluation with the benchmark's own labels."""
    tables = change_tables(Patched(before, after))
    none = "The patched gold has no such error, so nothing is compared."
    return Section("What the patch changes", [tables.get((mode, errors), none)])


def lead(evaluation: Evaluation) -> str:
    """Return a sentence that gives the kind, origin and extent of the dataset."""
    dataset = evaluation.dataset
    return f"{dataset.kind}, from {dataset.source} (SHA-256 {dataset.sha256[:12]}…): {extent(evaluation)}"


def extent(evaluation: Evaluation) -> str:
    """Return a sentence that gives the number of traces, errors and steps, and the patch of gold if any."""
    dataset, sentence = evaluation.dataset, str(evaluation.size)
    if not evaluation.view.group:
        wrong = f"{dataset.errors:,} with a wrong step" if dataset.labelled else "no hard labels"
        sentence += f", {wrong}, {dataset.steps:,} steps"
    if patch := evaluation.view.patch:
        sentence += f". Gold changed by the label patch {patch.name} (digest {patch.digest[:12]}…): {patch.size}"
    return f"{sentence}."


@dataclass(frozen=True)
class Excerpt:
    """The sections of a report that cover one mode and one kind of error, for a page of the app.

    `sections` holds the sections that cover all evaluators. `classes` maps an evaluator's name to the section on
    its figures by class.
    """

    sections: Sequence[Section]
    classes: Mapping[str, Section]

    def shown(self, evaluator: str = "") -> list[Section]:
        """Return the sections on all evaluators and, if `evaluator` is given, its section by class."""
        return [*self.sections, *([self.classes[evaluator]] if evaluator in self.classes else [])]

    @property
    def plots(self) -> list[Plot]:
        """All figures of the excerpt."""
        return plots_of([*self.sections, *self.classes.values()])

    def find_table(self, name: str, evaluator: str = "") -> Table | None:
        """Return the table called `name` in the sections that `shown` returns, or None if it is missing."""
        return next((table for table in _tables(self.shown(evaluator)) if table.name == name), None)


def excerpt(evaluation: Evaluation, mode: Mode, errors: Errors) -> Excerpt:
    """Return the excerpt of a report for one mode and one kind of error. The section on how later steps change
    validity covers both modes."""
    evaluation = replace(evaluation, rows=[row for row in evaluation.rows if row.mode in _modes(evaluation)])
    look = styles(ordered(evaluation.rows))
    of_mode, of_errors = _restrict(evaluation, mode=mode), _restrict(evaluation, errors=errors)
    sections = _sections(_restrict(of_mode, errors=errors), of_mode, of_errors, look)
    if not has_gold(evaluation):
        return Excerpt(sections, {})
    alone = {
        row.evaluator: replace(of_mode, rows=[other for other in of_mode.rows if other.evaluator == row.evaluator])
        for row in three_way_rows(of_mode)
    }
    classes_of = {name: Section(f"The classes of {name}", _neutral(own, look), True) for name, own in alone.items()}
    return Excerpt(sections, classes_of)


def difference_section(evaluation: Evaluation, compared: Compared) -> Section:
    """Return the section on the differences of rows from a reference. `compared` holds at least one row."""
    tests = mcnemar_table(evaluation, compared)
    contents: list[Content] = [difference_table(evaluation, compared), *([tests] if tests else [])]
    return Section(f"Difference from {compared[0][1].second}", contents)


def _restrict(evaluation: Evaluation, mode: Mode | None = None, errors: Errors | None = None) -> Evaluation:
    rows = [row for row in evaluation.rows if mode in (None, row.mode) and errors in (None, row.errors)]
    return replace(evaluation, rows=rows)


def evaluators_part(evaluators: Sequence[StoredEvaluator], draws: int) -> Part:
    """Return the part of a report that lists the evaluators and explains how they were measured."""
    contents: list[Content] = [
        f"Intervals hold the middle 95 % of {draws:,} resamples of the traces, the same for every evaluator, so"
        " that differences are paired.",
        "Solution and step figures follow ReasonEval's protocol: a solution is as valid as its least valid step,"
        " and steps after the first error are not counted. A dash stands where there is no value, and a note says"
        " why. Baselines do not read what a step says.",
    ]
    contents += (
        [evaluators_table(evaluators)]
        if evaluators
        else ["No evaluator has judged these datasets, so only baselines are shown."]
    )
    return Part("How this was measured", "From stored judgments.", [Section("Evaluators", contents)])


def tables_of(parts: Sequence[Part]) -> list[Table]:
    """Return all tables in the order of the page."""
    return _tables(section for part in parts for section in part.sections)


def plots_of(sections: Iterable[Section]) -> list[Plot]:
    """Return all figures of the sections."""
    groups = (content for section in sections for content in section.contents)
    return [plot for content in groups if not isinstance(content, str | Table) for plot in content]


def _tables(sections: Iterable[Section]) -> list[Table]:
    return [content for section in sections for content in section.contents if isinstance(content, Table)]


def _kinds(evaluation: Evaluation) -> list[Errors]:
    return list(dict.fromkeys(row.errors for row in evaluation.rows))


def _modes(evaluation: Evaluation) -> list[Mode]:
    return list(dict.fromkeys(mode for mode, _ in evaluation.judged))


def _results(evaluation: Evaluation, look: Styles) -> list[Content | None]:
    contents: list[Content | None] = []
    for errors in _kinds(evaluation):
        plots = []
        for mode in _modes(evaluation):
            contents.append(results(evaluation, mode, errors))
            rows = ordered(row for row in evaluation.rows if (row.mode, row.errors) == (mode, errors))
            steps = [row for row in rows if row.subject.outputs.has_steps]
            plots.append(roc_plot(steps, look, errors, Level.STEP, mode))
            plots.append(roc_plot(rows, look, errors, Level.SOLUTION, mode))
        contents += [published(evaluation, errors), plots]
    return contents


def _left_out(evaluation: Evaluation) -> list[str]:
    """Return sentences on the ROC of validity and on modes, if the evaluation lacks them."""
    contents = []
    if Errors.INVALID not in _kinds(evaluation):
        contents.append(
            "The gold has no wrong step, so that there is no ROC of validity; that of redundancy is shown."
        )
    silent = [mode for mode in MODES if mode not in _modes(evaluation)]
    if not evaluation.warning:
        contents += [f"No evaluator has judged these traces {mode}." for mode in silent]
    return contents


def _mode_contents(evaluation: Evaluation, look: Styles) -> list[Content | None]:
    """Return the contents of the section on how online and offline judgments differ."""
    table = differences(evaluation)
    if table is None:
        return [evaluation.warning or _NO_PAIR]
    contents: list[Content | None] = [table]
    for errors in _kinds(evaluation):
        groups = {
            online.evaluator: by_retroactive_change(online, offline)
            for online, offline in pairs(ordered(row for row in evaluation.rows if row.errors == errors))
            if online.subject.outputs.has_steps and not online.is_baseline
        }
        contents += [changes(evaluation, errors), [change_plot(groups, look, errors)]]
    return contents


def _position_contents(evaluation: Evaluation, look: Styles) -> list[Content | None]:
    contents: list[Content | None] = []
    for errors in _kinds(evaluation):
        values = position_values(evaluation, errors)
        contents += [positions(evaluation, errors, values), position_gains(evaluation, errors, values)]
        contents.append(_position_plots(evaluation, look, errors, values))
    if not has_pairs(evaluation):
        contents.append(f"Offline minus online is not shown. {evaluation.warning or _NO_PAIR}")
    return contents


def _position_plots(evaluation: Evaluation, look: Styles, errors: Errors, values: Thirds) -> list[Plot]:
    drawn = [(mode, "", mode.value) for mode in _modes(evaluation)]
    drawn += [(Mode.OFFLINE, "_gain", "offline minus online")] if has_pairs(evaluation) else []
    plots = []
    for name, metric in POSITION.items():
        for mode, end, what in drawn:
            parts = {
                evaluator: by_third
                for (evaluator, of_mode), of_row in values.items()
                if of_mode == mode and (by_third := of_thirds(of_row, name + end))
            }
            caption = f"{metric.title} by third, {errors} errors, {what}"
            plots += [position_plot(parts, look, caption, metric.title, difference=bool(end))] if parts else []
    return plots


def _classes(evaluation: Evaluation, look: Styles) -> list[Content | None]:
    rows = three_way_rows(evaluation)
    if not rows:
        return [_no_classes(evaluation)]
    plots = []
    for mode in dict.fromkeys(row.mode for row in rows):
        figures = {
            row.evaluator: by_class(row.subject.table, evaluation.weights) for row in rows if row.mode == mode
        }
        plots += [class_plot(figures, look, key, title, mode) for key, title in CLASS_FIGURES.items()]
    table = measures(evaluation, "three-way", "neg, neu and pos told apart", THREE_WAY)
    return [table, classes(evaluation), plots]


def _no_classes(evaluation: Evaluation) -> str:
    labels = {
        Label(label).text for row in evaluation.rows[:1] for label in row.subject.table.label if label != SILENT
    }
    if len(labels) < 2:
        what = f"The only label in this gold is {labels.pop()}" if labels else "This gold labels no step"
        return f"{what} (it may call a step valid without one), so there are no classes to tell apart."
    return "No evaluator gives probabilities of the three classes."


def _neutral(evaluation: Evaluation, look: Styles) -> list[Content]:
    rows = three_way_rows(evaluation)
    if not rows:
        return [_no_classes(evaluation)]
    modes = dict.fromkeys(row.mode for row in rows)
    shares = [share_plot([row for row in rows if row.mode == mode], look, mode) for mode in modes]
    # One mode of each evaluator is drawn, offline if available; the tables have both.
    first: dict[str, Row] = {}
    for row in rows:
        first.setdefault(row.evaluator, row)
    figures = [[confusion_plot(row), class_roc_plot(row), sweep_plot(row)] for row in first.values()]
    return [decisions(evaluation), confusions(evaluation), shares, *figures]
